"""Files of messages: sent into a queue, and exported from it.

python bench/files.py [FOLDER]            200,000 rows of each kind
python bench/files.py --quick [FOLDER]    a few, to see that it runs

Beside it, in the same rounds: one plain ``executemany`` of the same bodies into a table with one index, which reads and
checks nothing, in one commit. Both are durable.
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import sqlite3
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import postroom

ROWS = 200_000
ROUNDS = 5
GOAL = 100_000


def rows(count: int) -> list[dict[str, object]]:
    note = "bolts and nuts, as they came " * 2
    return [
        {"order": n, "customer": f"customer {n % 977}", "total": n * 7 % 1000 / 4, "note": note} for n in range(count)
    ]


def write(folder: Path, count: int) -> dict[str, Path]:
    every, files = rows(count), {kind: folder / f"orders.{kind}" for kind in ("jsonl", "csv", "txt")}
    files["jsonl"].write_text("".join(f"{json.dumps(row)}\n" for row in every))
    files["txt"].write_text("".join(f"order {row['order']} of {row['customer']}: {row['note']}\n" for row in every))
    with files["csv"].open("w", newline="") as stream:
        writer = csv.DictWriter(stream, every[0])
        writer.writeheader()
        writer.writerows(every)
    return files


def plain(file: Path, bodies: list[str]) -> None:
    database = sqlite3.connect(file)
    database.executescript("pragma journal_mode = wal; pragma synchronous = full; pragma page_size = 1024;")
    database.executescript(
        "create table q(id integer primary key, body text, taken int); create index i on q(taken, id);"
    )
    with database:
        database.executemany("insert into q(body, taken) values (?, 0)", ((body,) for body in bodies))
    database.close()


def processor_seconds() -> float:
    """Of this process and of those that it started and that have ended."""
    both = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)


def timed(do: Callable[[], object], count: int) -> tuple[float, float]:
    """Rows a second, and microseconds of processor time for each."""
    begun, at_work = perf_counter(), processor_seconds()
    do()
    return count / (perf_counter() - begun), (processor_seconds() - at_work) * 1e6 / count


def measure(folder: Path, count: int, rounds: int) -> dict[str, list[tuple[float, float]]]:
    files, found = write(folder, count), dict[str, list[tuple[float, float]]]()
    bodies = files["jsonl"].read_text().splitlines()
    for number in range(rounds):
        found.setdefault("plain", []).append(timed(lambda: plain(folder / f"{number}.plain", bodies), count))  # noqa: B023
        for kind, file in files.items():
            with postroom.open(str(folder / f"{number}-{kind}.db")) as room:
                room.queues.create("q")
                found.setdefault(kind, []).append(timed(lambda: room.queues.send_file("q", file), count))  # noqa: B023
                assert room.count("q").queues[0].unprocessed == count
                if kind == "jsonl":
                    out = folder / f"{number}-out.jsonl"
                    found.setdefault("export", []).append(timed(lambda: room.queues.export("q", out), count))  # noqa: B023
    return found


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("folder", nargs="?", type=Path, help="where the files are: on the disk to be measured")
    given.add_argument("--quick", action="store_true")
    said = given.parse_args()
    count, rounds = (2_000, 1) if said.quick else (ROWS, ROUNDS)
    with tempfile.TemporaryDirectory(dir=said.folder) as folder:
        found = measure(Path(folder), count, rounds)
    print(f"{count:,} rows, {rounds} rounds; asked: {GOAL:,} a second")
    for kind, turns in found.items():
        ratios = [rate / other for (rate, _), (other, _) in zip(turns, found["plain"], strict=True)]
        rate, cost = (statistics.median(column) for column in zip(*turns, strict=True))
        print(f"{kind:8} {rate:10,.0f}/s  {statistics.median(ratios):5.2f} of plain  {cost:6.1f} µs of processor time")


if __name__ == "__main__":
    main()
