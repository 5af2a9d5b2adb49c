"""Ctrl-C at any moment of a call: the room goes on, and what was begun is done or undone."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import postroom
from postroom.errors import StoreStopped
from postroom.room import Postroom

PROGRAM = """
import json, random, signal, sys, time, postroom
from postroom.errors import CommitUnknown, PostroomError

url, name, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
call = {
    "read": lambda room: room.count("q"),
    "send": lambda room: room.send("q", "x"),
    "write": lambda room: room.consumers.set_policy("q", attempts=2),
    "lease": lambda room: room.receive("q", lease=0.001),
    "receive": lambda room: room.receive("q"),
    "schedules": lambda room: room.consumers.schedules(),
}[name]

def timed(room):
    begun = time.perf_counter()
    call(room)
    return time.perf_counter() - begun

signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))  # Ctrl-C
room = postroom.open(url)
room.send_many("q", ["x"] * 50)
usual = sorted(timed(room) for _ in range(20))[10]
interrupts, unknown, wrong = 0, 0, []
end = time.monotonic() + seconds
while time.monotonic() < end and not wrong:
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, max(random.random() * usual * 1.2, 1e-6))
            call(room)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupts += 1
    except CommitUnknown:
        unknown += 1
        room.close()
        room = postroom.open(url)
    except PostroomError as error:
        wrong.append(f"the call itself: {error.code}: {error}")
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        wrong.append("Ctrl-C was left off")
    if room.store._mutex._is_owned():
        wrong.append("other threads can no longer use the room")
    try:
        room.send("q", "after")
        room.count("q")
    except PostroomError as error:
        wrong.append(f"after {interrupts} interrupts: {error.code}: {error}")
print(json.dumps([interrupts, unknown, wrong, list(map(str, room.journal.verify().differences))]))
"""


@pytest.mark.parametrize("call", ["read", "send", "write", "lease", "receive", "schedules"])
def test_an_interrupted_call_leaves_a_room_that_works(url: str, call: str) -> None:
    with postroom.open(url) as room:
        room.queues.create("q")
    out = subprocess.run([sys.executable, "-c", PROGRAM, url, call, "1"], capture_output=True, text=True, timeout=60)
    assert out.returncode == 0, out.stderr
    interrupts, unknown, wrong, differences = json.loads(out.stdout)
    assert (wrong, differences) == ([], [])
    assert interrupts + unknown >= 3


@contextmanager
def interrupted(every: float) -> Iterator[None]:
    """In this block Ctrl-C is pressed again and again."""
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, every, every)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_long_read_is_interrupted_at_once(room: Postroom) -> None:
    room.queues.create("q")
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), interrupted(0.2):
        room.store.read(lambda tx: time.sleep(30))
    assert time.monotonic() - begun < 10
    assert room.send("q", "x").status == "00"


def test_a_write_that_hangs_is_cut_off_by_a_second_interrupt(url: str) -> None:
    with postroom.open(url) as room:
        room.queues.create("q")
        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt), interrupted(0.2):
            room.store.transact("send", lambda tx: time.sleep(30))
        assert time.monotonic() - begun < 10
        with pytest.raises(StoreStopped, match="a call was interrupted twice"):
            room.send("q", "x")
    with postroom.open(url) as room:
        assert room.send("q", "x").status == "00"


def test_one_interrupt_lets_a_write_end(room: Postroom) -> None:
    room.queues.create("q")
    with pytest.raises(KeyboardInterrupt), interrupted(0.3):
        room.store.transact("send", lambda tx: time.sleep(0.4))
    assert room.send("q", "x").status == "00"


def test_another_handler_of_signals_is_left_alone(room: Postroom) -> None:
    room.queues.create("q")
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        with interrupted(0.1):
            room.store.transact("send", lambda tx: time.sleep(0.35))
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(seen) >= 2


TAKING = """
import json, random, signal, sys, time, postroom

url, name = sys.argv[1:]
room = postroom.open(url)

def received():
    seen.append(room.receive("q").message.key)

def leased():
    message = room.receive("q", lease=600).message
    seen.append(message.key)
    message.done()

def several():
    messages = room.receive_many("q", count=3, lease=600)
    seen.extend(message.key for message in messages)
    room.consumers.done_many(messages)

def looped():
    for message in room.each("q", lease=600):
        seen.append(message.key)

take = {"receive": received, "lease": leased, "many": several, "each": looped}[name]
seen, interrupts = [], 0
room.send_many("q", ["0", "1", "2", "3"])
while room.count("q").queues[0].unprocessed:
    take()  # what it needs is loaded then
room.send_many("q", [str(number) for number in range(3000)])
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
end = time.monotonic() + 3
while time.monotonic() < end and room.count("q").queues[0].unprocessed > 100:
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.005 + random.random() * 0.02)
            while True:
                take()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupts += 1
count = room.count("q").queues[0]
signal.signal(signal.SIGALRM, signal.SIG_IGN)
print(json.dumps([interrupts, len(set(seen)), count.processed + count.leased]))
"""


@pytest.mark.parametrize("take", ["receive", "lease", "many", "each"])
def test_what_an_interrupted_call_has_taken_is_put_back(url: str, take: str) -> None:
    """Only an interrupt between the end of the call and the next instruction of the program can take a message away."""
    with postroom.open(url) as room:
        room.queues.create("q")
    out = subprocess.run([sys.executable, "-c", TAKING, url, take], capture_output=True, text=True, timeout=60)
    assert out.returncode == 0, out.stderr
    interrupts, seen, taken = json.loads(out.stdout)
    assert interrupts >= 5
    assert taken - seen <= interrupts / 10, f"{taken - seen} of {interrupts} interrupts took a message away"
