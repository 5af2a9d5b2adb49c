"""Waiting receivers are woken by the commit that concerns them, from threads and other processes, without polling."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from time import monotonic

import pytest

import postroom
from postroom.errors import ArgumentInvalid
from postroom.limits import RECHECK_SECONDS
from postroom.queues.results import Received
from postroom.room import Postroom


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
