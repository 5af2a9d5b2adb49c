"""Measure a lease and its end beside two queue libraries that can do the same, and as the messages that wait grow.

Everyone works in one run, on one disk, in turns, and every commit is on disk (``synchronous = FULL``).

python bench/leases.py            some minutes
python bench/leases.py --quick    seconds, for a look
"""

from __future__ import annotations

import multiprocessing
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median
from typing import Any

import persistqueue
from litequeue import LiteQueue

import postroom
from rounds import Round, run_round, timed

OURS, LOOP = "postroom", "postroom, a loop"
BODY = "x" * 100


def open_postroom(folder: Path, messages: int) -> Callable[[], object]:
    room = postroom.open(folder / "postroom.db")
    room.queues.create("q")
    room.send_many("q", [BODY] * messages)

    def work() -> None:
        message = room.receive("q", lease=30).message
        assert message is not None
        message.done()

    return work


def open_loop(folder: Path, messages: int) -> Callable[[], object]:
    """Messages one after another: the end of one and the lease of the next are one commit."""
    room = postroom.open(folder / "loop.db")
    room.queues.create("q")
    room.send_many("q", [BODY] * (messages + 1))
    return partial(next, room.consumers.each("q", lease=30))


def open_persist_queue(folder: Path, messages: int) -> Callable[[], object]:
    queue = persistqueue.SQLiteAckQueue(str(folder / "persist-queue"), auto_commit=True)
    putter: Any = queue._putter
    getter: Any = queue._getter
    for connection in (putter, getter):
        connection.execute("PRAGMA synchronous = FULL")
    for _ in range(messages):
        queue.put(BODY)

    def work() -> None:
        queue.ack(queue.get(block=False))

    return work


def open_litequeue(folder: Path, messages: int) -> Callable[[], object]:
    queue = LiteQueue(folder / "litequeue.db")
    queue.conn.execute("PRAGMA synchronous = FULL")
    for _ in range(messages):
        queue.put(BODY)

    def work() -> None:
        message = queue.pop()
        assert message is not None
        queue.done(message.message_id)

    return work


def beside_peers(folder: Path, rounds: int, messages: int) -> list[Round]:
    found = []
    openers = {
        OURS: open_postroom,
        LOOP: open_loop,
        "persist-queue": open_persist_queue,
        "litequeue": open_litequeue,
    }
    for number in range(rounds):
        place = folder / f"peers-{number}"
        place.mkdir()
        actions = {name: (opener(place, messages), [()] * messages) for name, opener in openers.items()}
        found.append(run_round(actions, number))
        loop: Any = actions[LOOP][0]
        loop.args[0].close()
        shutil.rmtree(place)
    return found


def as_it_grows(folder: Path, rounds: int, sizes: tuple[int, int], messages: int) -> list[Round]:
    actions = {}
    for size in sizes:
        place = folder / f"grown-{size}"
        place.mkdir()
        actions[str(size)] = (open_postroom(place, size + (rounds + 1) * messages), [()] * messages)
    run_round(actions, 0)
    return [run_round(actions, number) for number in range(rounds)]


def _send(url: Path, calls: int, ready: Barrier, told: Any) -> None:
    with postroom.open(url) as room:
        room.send("q", BODY)
        ready.wait()
        told.put([timed(lambda: room.send("q", BODY), [()]) for _ in range(calls)])


def side_by_side(folder: Path, clients: int, calls: int) -> tuple[float, float]:
    """Sends a second of many processes in one room, and the longest that one of them has waited, in seconds."""
    url = folder / "shared.db"
    with postroom.open(url) as room:
        room.queues.create("q")
    ready = multiprocessing.Barrier(clients)
    told: Any = multiprocessing.Queue()
    processes = [multiprocessing.Process(target=_send, args=(url, calls, ready, told)) for _ in range(clients)]
    for process in processes:
        process.start()
    took = [told.get(timeout=300) for _ in processes]
    for process in processes:
        process.join()
    return clients * calls / max(map(sum, took)), max(map(max, took))


def main() -> None:
    quick = "--quick" in sys.argv
    rounds, messages = (3, 200) if quick else (7, 1_000)
    sizes = (1_000, 50_000 if quick else 1_000_000)
    folder = Path(tempfile.mkdtemp(prefix="leases"))
    try:
        peers = beside_peers(folder, rounds, messages)
        for name in peers[0]:
            rate = median(1 / each[name] for each in peers)
            by_verbs, by_loop = (median(each[name] / each[ours] for each in peers) for ours in (OURS, LOOP))
            print(f"lease and done, {name:16} {rate:8,.0f}/s   of it, two verbs: {by_verbs:.2f}, loop: {by_loop:.2f}")
        grown = as_it_grows(folder, rounds, sizes, messages)
        few, many = map(str, sizes)
        ratio = median(each[many] / each[few] for each in grown)
        print(f"lease and done with {sizes[1]:,} waiting, of {sizes[0]:,}: {ratio:.2f}")
        rate, longest = side_by_side(folder, 16, 50 if quick else 500)
        print(f"16 processes send {rate:,.0f}/s together, and one of them waits {1_000 * longest:.0f} ms at the most")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
