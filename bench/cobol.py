"""Measure pairs of RECEIVE and SEND of compiled COBOL programs, each durable on SQLite before the next.

python bench/cobol.py [FOLDER]            3,000 pairs, three rounds
python bench/cobol.py --quick [FOLDER]    300 pairs, one round

It needs GnuCOBOL. One program waits for the disk once in each pair, so the bound of its speed is how often the disk of
the folder can sync: that is measured beside it, in the same round, as are the same pairs in Python in one process, and
8 and 16 programs at one server, which share syncs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, sleep

import postroom
from machine import processor_seconds
from postroom.interfaces.cobol.building import built
from postroom.interfaces.cobol.precompiler import Options
from postroom.queues.segments import Area

BODY = "x" * 80
GOAL = 1_500
PROGRAMS = (8, 16)


def main(where: Path, pairs: int, rounds: int) -> None:
    source = Path(__file__).with_name("pairs.cob")
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(dir=where) as name:
            folder = Path(name)
            syncs = syncs_of(folder)
            (one, work), python = in_cobol(source, folder, pairs, 1), in_python(folder, pairs)
            many = {programs: in_cobol(source, folder, pairs, programs) for programs in PROGRAMS}
        several = ", ".join(
            f"{programs} programs {rate:,.0f} ({each:.2f} ms)" for programs, (rate, each) in many.items()
        )
        print(
            f"one program {one:,.0f} pairs/s (goal {GOAL:,}), {work:.2f} ms of the server's processor time each, "
            f"{one / syncs:.2f} for each sync that the disk can do ({syncs:,.0f}/s); the same in Python {python:,.0f}; "
            f"{several}",
            flush=True,
        )


def syncs_of(folder: Path) -> float:
    """How often 4 KiB that are written over others can be synced in a second."""
    file = os.open(folder / "syncs", os.O_CREAT | os.O_RDWR)
    many = 200
    os.write(file, bytes(4096 * many))
    os.fdatasync(file)
    begun = perf_counter()
    for place in range(many):
        os.pwrite(file, b"x" * 4096, place * 4096)
        os.fdatasync(file)
    seconds = perf_counter() - begun
    os.close(file)
    return many / seconds


def in_cobol(source: Path, folder: Path, pairs: int, programs: int) -> tuple[float, float]:
    """Programs at one server, each with queues of its own: pairs a second, and milliseconds of its work for each."""
    made = []
    for number in range(programs):
        file = folder / f"pairs{number}.cob"
        file.write_text(source.read_text().replace('"IN"', f'"IN{number}"').replace('"OUT"', f'"OUT{number}"'))
        made.append(built(file, Options()))
    url = _room(folder / f"cobol{programs}.db", pairs // programs, programs)
    with serving(url, folder / "session") as (session, pid):
        begun, work = perf_counter(), processor_seconds(pid)
        running = [subprocess.Popen([file], env={**os.environ, "POSTROOM_SESSION": session}) for file in made]
        codes = [each.wait() for each in running]
        seconds, work = perf_counter() - begun, processor_seconds(pid) - work
    with postroom.open(url) as room:
        done = sum(room.count(f"OUT{number}").queues[0].unprocessed for number in range(programs))
    assert (set(codes), done) == ({0}, pairs // programs * programs), (codes, done)
    return done / seconds, work * 1000 / done


@contextmanager
def serving(url: str, session: Path) -> Iterator[tuple[str, int]]:
    """A server for sessions; the path of its socket, and its number."""
    words = ["-m", "postroom", "serve", "--room", url, "--port", "0", "--session", str(session)]
    with subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL) as server:
        try:
            while not session.exists():
                sleep(0.01)
            yield str(session), server.pid
        finally:
            server.terminate()


def in_python(folder: Path, pairs: int) -> float:
    with postroom.open(_room(folder / "python.db", pairs, 1)) as room:
        session = room.queues.session()
        begun = perf_counter()
        for _ in range(pairs):
            message = session.receive(("IN0",), area=Area(200)).message
            assert message is not None
            session.send([("OUT0",)], message.body)
        seconds = perf_counter() - begun
        session.close()
    return pairs / seconds


def _room(file: Path, pairs: int, programs: int) -> str:
    with postroom.open(str(file)) as room:
        for number in range(programs):
            for name in ("IN", "OUT"):
                room.queues.create(f"{name}{number}")
            room.queues.send_many(f"IN{number}", [BODY] * (pairs - 1))
            room.queues.send_segments(f"IN{number}", [BODY], group=True)
    return str(file)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--quick"]
    quick = "--quick" in sys.argv[1:]
    if shutil.which("cobc") is None:
        sys.exit("GnuCOBOL is missing: apt-get install gnucobol")
    main(Path(words[0]) if words else Path.cwd(), 300 if quick else 3_000, 1 if quick else 3)
