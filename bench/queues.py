"""Measure Postroom beside the same work by hand on ``sqlite3``, beside two queue libraries, and as a room grows.

Everyone works in one run, on one disk, in turns. What counts are the ratios: the absolute figures are the machine's.
A missed bound is said in the table and is no failure of the program.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from commands import measure_commands
from contenders import PEERS, PLAIN, Contender, Durability, open_all, open_batching
from growth import measure_growth
from lines import Line, table
from machine import machine, versions
from rounds import Round, cost, cost_ratio, run_round

BODY_BYTES = 100
SEND_RATIO_MIN = 0.5
RECEIVE_RATIO_MIN = 0.4
BATCH_RATIO_MIN = 0.4
PEER_RATIO_ABOVE = 1.0


@dataclass(frozen=True, slots=True)
class Sizes:
    rounds: int
    warm_up: int  # in full: enough for the log to be written over; while it still grows, commits cost more
    singles: int
    batch: int
    rooms: tuple[int, int]
    operations: int  # of each verb, in each room, in each round
    commands: int


FULL = Sizes(rounds=7, warm_up=600, singles=3_000, batch=100_000, rooms=(1_000, 1_000_000), operations=200, commands=7)
QUICK = Sizes(rounds=3, warm_up=50, singles=300, batch=10_000, rooms=(1_000, 20_000), operations=100, commands=3)


def main() -> int:
    options = _options()
    sizes = QUICK if options.quick else FULL
    start = perf_counter()
    build = Path("build")
    build.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=build) as name:
        directory = Path(name).absolute()
        _tell("single sends and receives")
        sends, receives, durability = measure_singles(directory, sizes)
        _tell("sends of many")
        batches = measure_batches(directory, sizes)
        lines = [*single_lines("send", SEND_RATIO_MIN, sends), *single_lines("receive", RECEIVE_RATIO_MIN, receives)]
        lines.append(_rate_line(f"send of {sizes.batch:,}", PLAIN, ">=", BATCH_RATIO_MIN, batches))
        _tell(f"rooms with {sizes.rooms[0]:,} and {sizes.rooms[1]:,} messages")
        lines += measure_growth(directory / "growth", sizes.rooms, sizes.rounds, sizes.operations, body_number(0))
        _tell("the command line")
        lines += measure_commands(directory / "commands", sizes.commands)
    print(report(sizes, durability, lines, perf_counter() - start))
    if options.json is not None:
        figures = {
            "machine": machine(),
            "versions": versions(),
            "durability": {name: value._asdict() for name, value in durability.items()},
            "lines": [line.as_dict() for line in lines],
        }
        options.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


def measure_singles(directory: Path, sizes: Sizes) -> tuple[list[Round], list[Round], dict[str, Durability]]:
    """Sends, then receives of the same messages; in new files each round, so that no round inherits from another."""
    sends: list[Round] = []
    receives: list[Round] = []
    durability: dict[str, Durability] = {}
    bodies = [(body_number(number),) for number in range(sizes.singles)]
    for number in range(sizes.rounds):
        place = directory / f"singles-{number}"
        contenders = open_all(place)
        durability = {one.name: one.durability for one in contenders}
        for one in contenders:
            _warm_up(one, sizes.warm_up)
        sends.append(run_round({one.name: (one.send, bodies) for one in contenders}, first=number))
        # The last message stays for the check below.
        calls: list[tuple[()]] = [()] * (sizes.singles - 1)
        receives.append(run_round({one.name: (one.receive, calls) for one in contenders}, first=number))
        for one in contenders:
            last = one.body_of(one.receive())
            assert last == bodies[-1][0], f"{one.name} gave out {last!r} as its last message"
            one.close()
        shutil.rmtree(place)
    return sends, receives, durability


def measure_batches(directory: Path, sizes: Sizes) -> list[Round]:
    """Seconds per message, of one commit with very many."""
    rounds: list[Round] = []
    bodies = [body_number(number) for number in range(sizes.batch)]
    for number in range(sizes.rounds):
        place = directory / f"batch-{number}"
        contenders = open_batching(place)
        for one in contenders:
            _warm_up(one, sizes.warm_up)
        actions = {one.name: (one.send_many, [(bodies,)]) for one in contenders if one.send_many is not None}
        taken = run_round(actions, first=number, slices=1)
        rounds.append({name: seconds / sizes.batch for name, seconds in taken.items()})
        for one in contenders:
            assert one.body_of(one.receive()) == bodies[0]
            one.close()
        shutil.rmtree(place)
    return rounds


def single_lines(verb: str, plain_min: float, rounds: Sequence[Round]) -> list[Line]:
    beside_plain = _rate_line(verb, PLAIN, ">=", plain_min, rounds)
    return [beside_plain, *(_rate_line(verb, peer, ">", PEER_RATIO_ABOVE, rounds) for peer in PEERS)]


def report(sizes: Sizes, durability: dict[str, Durability], lines: Sequence[Line], seconds: float) -> str:
    missed = sum(not line.met for line in lines)
    facts = {**machine(), **versions()}
    width = max(map(len, facts))
    parts = [
        *(f"{name.ljust(width)}  {value}" for name, value in facts.items()),
        "",
        "Durability, read back from each connection:",
        *(
            f"{name.ljust(width)}  synchronous {value.synchronous} (FULL), journal_mode {value.journal_mode}, "
            f"wal_autocheckpoint {value.wal_autocheckpoint}"
            for name, value in durability.items()
        ),
        "",
        f"{sizes.rounds} rounds in turns; bodies of {BODY_BYTES} bytes; {sizes.singles:,} sends and receives, "
        f"{sizes.operations} operations per grown room and round; {sizes.commands} runs of each command.",
        "Measured figures and results are medians of the rounds. A result is a ratio (rates: postroom / other; costs: "
        "large room / small room) taken",
        "inside each round, or seconds for a command.",
        "",
        table(lines),
        "",
        f"{len(lines) - missed} of {len(lines)} bounds met, {missed} missed; {seconds:.0f} s",
    ]
    return "\n".join(parts)


def body_number(number: int) -> str:
    """Each its own, so that a message lost or given out twice would be seen."""
    return f"message {number} ".ljust(BODY_BYTES, ".")


def _warm_up(contender: Contender, times: int) -> None:
    """Statements get compiled and files made; and the contender is seen to give back what it was given."""
    for number in range(times):
        contender.send(body_number(-number))
    for number in range(times):
        assert contender.body_of(contender.receive()) == body_number(-number), contender.name


def _rate_line(measure: str, other: str, relation: str, bound: float, rounds: Sequence[Round]) -> Line:
    ratio = cost_ratio(rounds, other, "postroom")  # a ratio of rates is that of the costs the other way round
    return Line(
        measure=measure,
        measured=1 / cost(rounds, "postroom"),
        unit="/s",
        result=ratio.median,
        lowest=ratio.lowest,
        highest=ratio.highest,
        relation=relation,
        bound=bound,
        against=other,
        other=1 / cost(rounds, other),
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure Postroom beside plain sqlite3 and queue libraries.")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run, not how fast it is")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    return parser.parse_args()


def _tell(what: str) -> None:
    print(f"measuring {what} ...", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
