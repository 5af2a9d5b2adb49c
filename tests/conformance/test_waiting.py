"""Waiting receivers are woken by the commit that concerns them, from threads and other processes, without polling."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

import postroom
from postroom.errors import ArgumentInvalid
from postroom.limits import RECHECK_SECONDS
from postroom.queues.leases.leased import LeasedMessage
from postroom.queues.leases.leasing import Leasing
from postroom.queues.results import Received
from postroom.room import Postroom
from postroom.store.files import wakeup
from postroom.store.postgres import store as postgres


def wait_in_thread(url: str, seconds: float) -> tuple[threading.Thread, list[Received], threading.Event]:
    answers: list[Received] = []
    ready = threading.Event()

    def receive() -> None:
        with postroom.open(url) as room:
            ready.set()
            answers.append(room.receive("q", wait=seconds))

    thread = threading.Thread(target=receive)
    thread.start()
    return thread, answers, ready


def test_a_send_wakes_a_waiting_receiver(url: str) -> None:
    with postroom.open(url) as room:
        room.queues.create("q")
        thread, answers, ready = wait_in_thread(url, 30)
        ready.wait()
        started = monotonic()
        room.send("q", "wake up")
        thread.join(20)
    assert answers[0].message is not None
    assert answers[0].message.body == "wake up"
    assert monotonic() - started < RECHECK_SECONDS  # by the wake-up, not by looking again


def test_a_send_from_another_process_wakes(url: str) -> None:
    with postroom.open(url) as room:
        room.queues.create("q")
    thread, answers, ready = wait_in_thread(url, 60)
    ready.wait()
    subprocess.run(
        [sys.executable, "-m", "postroom", "--room", url, "send", "q", "--body", "from afar"],
        check=True,
        capture_output=True,
        env={**os.environ},
    )
    thread.join(30)
    assert answers[0].message is not None
    assert answers[0].message.body == "from afar"


def test_enable_wakes_a_receiver_that_waits_below_a_level(url: str, tmp_path: Path) -> None:
    description = tmp_path / "t.qdl"
    description.write_text('01 INPUT-QUEUE (M)\n02 SUB-QUEUE-1 (A) PASSWORD IS "A"\n02 SUB-QUEUE-1 (B)\n99\n')
    with postroom.open(url) as room:
        room.load(description)
        room.send("INP_0000", "held back")
        room.queues.disable("INP_0000", password="A")
        answers: list[Received] = []

        def receive() -> None:
            with postroom.open(url) as mine:
                answers.append(mine.receive("M", wait=30))

        thread = threading.Thread(target=receive)
        thread.start()
        room.queues.enable("INP_0000", password="A")
        thread.join(20)
    assert answers[0].message is not None
    assert answers[0].message.body == "held back"


def test_the_wait_ends_when_its_time_is_up(room: Postroom) -> None:
    room.queues.create("q")
    started = monotonic()
    received = room.receive("q", wait=0.3)
    assert not received
    assert received.passed == ("q",)
    assert 0.25 < monotonic() - started < 5


def test_another_thread_ends_a_wait(room: Postroom) -> None:
    with room.store.waiter() as waiter:
        woken: list[bool] = []
        thread = threading.Thread(target=lambda: woken.append(waiter.wait(30)))
        thread.start()
        waiter.wake()
        thread.join(RECHECK_SECONDS / 2)
        assert woken == [True]
        assert not waiter.wait(0), "it was woken once"


def test_who_has_left_is_not_woken_and_no_other_file_is_written(room: Postroom, tmp_path: Path) -> None:
    """The numbers of its files belong to others then: a byte would fall into a file of theirs."""
    with room.store.waiter() as waiter:
        pass
    victims = [tmp_path / f"victim-{number}" for number in range(32)]
    with ExitStack() as stack:
        for victim in victims:
            stack.enter_context(victim.open("wb", buffering=0))
        waiter.wake()
    assert [victim.read_bytes() for victim in victims] == [b""] * len(victims)


def test_a_wake_up_never_waits(room: Postroom) -> None:
    with room.store.waiter() as waiter:
        for _ in range(70_000):  # more than a pipe holds
            waiter.wake()
        assert waiter.wait(1)


def test_one_message_wakes_many_and_one_gets_it(url: str) -> None:
    with postroom.open(url) as room:
        room.queues.create("q")
        waiters = [wait_in_thread(url, 2) for _ in range(4)]
        for _, _, ready in waiters:
            ready.wait()
        room.send("q", "only one")
        for thread, _, _ in waiters:
            thread.join(20)
    got = [answer for _, answers, _ in waiters for answer in answers if answer]
    assert len(got) == 1


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf"), 1e9])
def test_a_wait_that_is_no_time_is_refused(room: Postroom, seconds: float) -> None:
    room.queues.create("q")
    with pytest.raises(ArgumentInvalid):
        room.receive("q", wait=seconds)


def test_pipes_of_the_dead_are_cleared_away(sqlite_url: str) -> None:
    with postroom.open(sqlite_url) as room:
        room.queues.create("q")
        folder = Path(sqlite_url + "-wake")
        folder.mkdir()
        os.mkfifo(folder / "999999-dead")
        room.send("q", "anyone?")
        assert list(folder.iterdir()) == []


# --- the line of a queue ---


class Waits:
    """Threads that wait for a lease, one behind another; what each was given, and how often they tried."""

    def __init__(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.url = url
        self.given: list[tuple[int, LeasedMessage]] = []
        self.tries: list[int] = []
        self.asleep: set[int] = set()
        self.changed = threading.Condition()
        self.threads: list[threading.Thread] = []
        self.over = threading.Event()
        for module in (wakeup, postgres):
            monkeypatch.setattr(module, "RECHECK_SECONDS", 600)  # nobody looks by itself
        for waiter in (wakeup.PipeWaiter, postgres.ListenWaiter):
            monkeypatch.setattr(waiter, "wait", self._counted(waiter.wait))
        real = Leasing._try

        def counted(leasing: Leasing, *words: Any) -> Any:
            self.tries.append(threading.get_ident())
            return real(leasing, *words)

        monkeypatch.setattr(Leasing, "_try", counted)

    def _counted(self, real: Callable[..., bool]) -> Callable[..., bool]:
        def wait(waiter: Any, seconds: float) -> bool:
            with self.changed:
                self.asleep.add(threading.get_ident())
                self.changed.notify_all()
            return real(waiter, seconds)

        return wait

    def start(self, number: int) -> None:
        def run() -> None:
            with postroom.open(self.url) as room:
                message = room.receive("q", lease=600, wait=60).message
                assert message is not None
                with self.changed:
                    self.given.append((number, message))
                    self.changed.notify_all()
                self.over.wait(60)

        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.asleep) == number + 1, 60)

    def until(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.given) >= count, 60)

    def end(self) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join(60)


@pytest.mark.parametrize("end", ["done", "fail", "release"])
def test_the_end_of_a_lease_wakes_the_first_who_waits_and_nobody_else(
    url: str, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    with postroom.open(url) as room:
        room.queues.create("q")
        room.consumers.set_policy("q", order="strict")
        room.send_many("q", [str(number) for number in range(6)])
        message = room.receive("q", lease=600).message
        waits = Waits(url, monkeypatch)
        for number in range(5):
            waits.start(number)
        for number in range(5):
            waits.tries.clear()
            assert message is not None
            lease = room.consumers.lease(message.lease)
            ends: dict[str, Callable[[], object]] = {
                "done": lease.done,
                "release": lease.release,
                "fail": partial(lease.fail, "no"),
            }
            ends[end]()
            waits.until(number + 1)
            assert len(waits.tries) == 1, "who was woken, and nobody else"
            message = waits.given[-1][1]
        assert [number for number, _ in waits.given] == list(range(5)), "in the order of their coming"
        assert {given.body for _, given in waits.given} == ({"1", "2", "3", "4", "5"} if end == "done" else {"0"})
        waits.end()
        assert room.journal.verify().differences == ()


def test_several_that_come_back_wake_as_many(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with postroom.open(url) as room:
        room.queues.create("q")
        room.send_many("q", ["1", "2", "3"])
        leased = room.receive_many("q", count=3, lease=600)
        waits = Waits(url, monkeypatch)
        for number in range(4):
            waits.start(number)
        waits.tries.clear()
        room._parts.leasing.release_each([message.lease for message in leased])
        waits.until(3)
        assert {number for number, _ in waits.given} == {0, 1, 2}
        room.consumers.lease(waits.given[0][1].lease).release()
        waits.until(4)
        waits.end()


def test_who_was_woken_for_one_message_and_sees_more_has_the_next_one_woken(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A send to a queue that is not empty wakes nobody: whoever was woken for what made it so is to see to it."""
    with postroom.open(url) as room:
        room.queues.create("q")
        room.send("q", "1")
        message = room.receive("q", lease=600).message
        assert message is not None
        waits = Waits(url, monkeypatch)
        looks, sent = threading.Event(), threading.Event()
        real = Leasing._may_lease

        def late(leasing: Leasing, *words: Any) -> bool:
            looks.set()
            sent.wait(60)
            return real(leasing, *words)

        monkeypatch.setattr(Leasing, "_may_lease", late)
        for number in range(2):
            waits.start(number)
        message.release()
        assert looks.wait(60)
        room.send("q", "2")
        sent.set()
        waits.until(2)
        assert sorted((number, given.body) for number, given in waits.given) == [(0, "1"), (1, "2")]
        waits.end()


def test_who_is_woken_and_fails_has_the_next_one_woken(room: Postroom, url: str) -> None:
    queue = 7
    with room.store.waiter(queue) as second:
        with room.store.waiter() as anyone:
            with pytest.raises(RuntimeError), postroom.open(url) as other, other.store.waiter(queue):
                raise RuntimeError
            assert second.wait(30), "one that fails may not have looked"
            assert not second.wait(0)
            assert not anyone.wait(0)
        room.store.transact("done", lambda tx: tx.wake_next(queue))
        assert second.wait(30)


def test_one_that_leaves_with_a_wake_up_unread_passes_it_on(room: Postroom) -> None:
    with ExitStack() as stack:
        with room.store.waiter(7):
            second = stack.enter_context(room.store.waiter(7))
            room.store.transact("done", lambda tx: tx.wake_next(7))
            assert not second.wait(0), "the first was woken"
        assert second.wait(30)
        with room.store.waiter(7) as third:
            second.pass_on()
            stack.close()
            assert third.wait(30), "there was more than the one before could take"
