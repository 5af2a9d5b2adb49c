"""Several processes at once on one room: every message once, in the order of its sender, and counts that fit."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import postroom
from postroom.store.kernel.transaction import Transaction

SENDER = """
import sys, postroom
url, name, many = sys.argv[1], sys.argv[2], int(sys.argv[3])
with postroom.open(url) as room:
    for number in range(many):
        if number % 10 == 9:
            room.send_many("q", [f"{name} {number} a", f"{name} {number} b"])
        else:
            room.send("q", f"{name} {number}")
"""
RECEIVER = """
import sys, postroom
with postroom.open(sys.argv[1]) as room:
    while True:
        received = room.receive("q", wait=3.0)
        if received.message is None:
            break
        print(received.message.body, flush=True)
"""


def start(script: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", script, *words], stdout=subprocess.PIPE, text=True)


def expected(name: str, many: int) -> list[str]:
    bodies = []
    for number in range(many):
        bodies += [f"{name} {number} a", f"{name} {number} b"] if number % 10 == 9 else [f"{name} {number}"]
    return bodies


def test_many_senders_and_receivers_lose_double_and_reorder_nothing(url: str) -> None:
    many = 150
    with postroom.open(url) as room:
        room.queues.create("q")
    receivers = [start(RECEIVER, url) for _ in range(2)]
    senders = [start(SENDER, url, name, str(many)) for name in "abc"]
    for process in senders:
        process.communicate(timeout=120)
        assert process.returncode == 0
    received = [process.communicate(timeout=120)[0].splitlines() for process in receivers]
    everything = Counter(body for bodies in received for body in bodies)
    wanted = [body for name in "abc" for body in expected(name, many)]
    assert everything == Counter(wanted)
    for bodies in received:
        for name in "abc":
            mine = [body for body in bodies if body.startswith(f"{name} ")]
            assert mine == [body for body in expected(name, many) if body in set(mine)]
    with postroom.open(url) as room:
        (count,) = room.queues.accept("q").queues
        assert (count.unprocessed, count.processed) == (0, len(wanted))
        # Receives at the same time end in either order; those of one process end in its own.
        history = [message.body for message in room.queues.history("q")]
        assert Counter(history) == everything
        for bodies in received:
            own = set(bodies)
            assert [body for body in history if body in own] == bodies


def test_counts_follow_departures_from_the_middle_and_the_end(url: str) -> None:
    """Counts come from the newest number: they must hold when the newest message is the first to leave."""
    with postroom.open(url) as room:
        for name in ("q", "other"):
            room.queues.create(name)
        keys = [room.send("q", str(number)).number for number in range(4)]

        def move(key: int) -> None:
            def work(tx: Transaction) -> None:
                source, target = tx.queues.named("q"), tx.queues.named("other")
                stored = tx.messages.find(key)
                assert source is not None
                assert target is not None
                assert stored is not None
                tx.messages.move(stored, source, target)

            room.store.transact("send", work)

        for key, left in ((keys[3], 3), (keys[1], 2), (keys[2], 1)):
            move(key)
            assert room.queues.accept("q").queues[0].unprocessed == left == len(room.queues.info("q").messages)
        room.send("q", "4")
        assert [message.body for message in room.queues.info("q")] == ["0", "4"]
        assert room.queues.accept("q").queues[0].unprocessed == 2
        assert [message.body for message in room.queues.info("other")] == ["3", "1", "2"]
        assert room.queues.accept("other").queues[0].unprocessed == 3
        while room.receive("q"):
            pass
        assert room.queues.accept("q").queues[0].unprocessed == 0
        move_back = room.send("q", "5")
        assert room.queues.accept("q").queues[0].unprocessed == 1
        assert room.journal.locate(move_back.key) == "q"
