"""Segments and locks (commands 9 and 10 of the Multics text)."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

import postroom
from postroom.errors import QueueLocked
from postroom.limits import LOCK_LEASE_SECONDS
from postroom.model.key import key_text
from postroom.queues.locks import locked_error, next_segment
from postroom.queues.results import Received
from postroom.room import Postroom

FIVE = "one\ntwo\nthree\nfour\nfive"


@pytest.fixture
def pair(url: str) -> Iterator[tuple[Postroom, Postroom]]:
    """Two users of one room with a message of five segments."""
    with postroom.open(url, actor="ann") as ann, postroom.open(url, actor="bob") as bob:
        ann.queues.create("q")
        ann.send("q", FIVE)
        yield ann, bob


def segment(room: Postroom, *queue: str) -> tuple[str, bool]:
    received = room.receive(*(queue or ("q",)), segment=True)
    assert received.message is not None
    return received.message.body, received.end_of_message


def test_segments_come_one_at_a_time_and_the_last_is_told(pair: tuple[Postroom, Postroom]) -> None:
    ann, _ = pair
    got = [segment(ann) for _ in range(5)]
    assert got == [("one", False), ("two", False), ("three", False), ("four", False), ("five", True)]
    assert ann.queues.accept("q").queues[0].processed == 1


def test_the_date_processed_is_set_by_the_last_segment_only(pair: tuple[Postroom, Postroom]) -> None:
    ann, _ = pair
    received = [ann.receive("q", segment=True) for _ in range(5)]
    times = [answer.message.processed for answer in received if answer.message]
    assert times[:4] == [None] * 4
    assert times[4] is not None


def test_a_message_of_one_segment_never_locks(room: Postroom) -> None:
    room.queues.create("q")
    for body in ("single", "single\n", ""):
        room.send("q", body)
        received = room.receive("q", segment=True)
        assert received.end_of_message
        assert received.message is not None
        assert received.message.body == body.removesuffix("\n")
        assert room.queues.accept("q").queues[0].locked_by is None


def test_after_three_of_five_a_whole_receive_gives_all_five_and_unlocks(pair: tuple[Postroom, Postroom]) -> None:
    ann, bob = pair
    for _ in range(3):
        segment(ann)
    whole = ann.receive("q")
    assert whole.message is not None
    assert whole.message.body == FIVE
    assert whole.end_of_message
    ann.send("q", "next")
    assert bob.receive("q").message is not None


def test_others_wait_a_bounded_time_and_are_told_who_holds_it(pair: tuple[Postroom, Postroom]) -> None:
    ann, bob = pair
    segment(ann)
    started = monotonic()
    with pytest.raises(QueueLocked) as caught:
        bob.receive("q", wait=0.2)
    assert "ann" in str(caught.value)
    assert caught.value.status == "91"
    assert monotonic() - started < 5
    with pytest.raises(QueueLocked):
        bob.receive("q", segment=True, wait=0)


def test_a_waiting_user_gets_the_queue_when_it_is_unlocked(pair: tuple[Postroom, Postroom], url: str) -> None:
    ann, _ = pair
    segment(ann)
    ann_is_done = threading.Event()
    answers: list[Received] = []

    def wait() -> None:
        with postroom.open(url, actor="bob") as bob:
            ann_is_done.set()
            answers.append(bob.receive("q", wait=30))

    thread = threading.Thread(target=wait)
    thread.start()
    ann_is_done.wait()
    for _ in range(4):
        segment(ann)
    with postroom.open(url) as carol:
        carol.send("q", "for bob")
    thread.join(20)
    assert answers[0].message is not None
    assert answers[0].message.body == "for bob"


def test_only_receives_may_enter_a_locked_queue_even_for_its_locker(pair: tuple[Postroom, Postroom]) -> None:
    ann, bob = pair
    segment(ann)
    for user in (ann, bob):
        for verb in (user.queues.accept, user.queues.info, user.queues.history):
            with pytest.raises(QueueLocked):
                verb("q")
        with pytest.raises(QueueLocked):
            user.send("q", "x")
        with pytest.raises(QueueLocked):
            user.queues.disable("q", password="pw")
        with pytest.raises(QueueLocked):
            user.queues.set_mode("q", keep_processed=False)
    assert ann.queues.accept().queues[0].locked_by == "ann"  # the overview of the room enters no queue
    assert segment(ann) == ("two", False)


def test_closing_a_room_gives_its_locks_back_and_the_message_starts_again(url: str) -> None:
    with postroom.open(url) as ann:
        ann.queues.create("q")
        ann.send("q", FIVE)
        segment(ann)
        segment(ann)
    with postroom.open(url) as bob:
        assert segment(bob) == ("one", False)


def test_a_user_whose_process_ended_loses_the_lock(url: str) -> None:
    with postroom.open(url) as room:
        room.queues.create("q")
        room.send("q", FIVE)
        script = (
            "import os, sys, postroom\n"
            "room = postroom.open(sys.argv[1])\n"
            "room.receive('q', segment=True); room.receive('q', segment=True)\n"
            "os._exit(0)\n"  # no closing, no goodbye
        )
        subprocess.run([sys.executable, "-c", script, url], check=True)
        assert segment(room) == ("one", False)
        verbs = [event.verb for event in room.journal.last(20)]
        assert "unlock" in verbs


def test_a_lock_ends_with_its_lease(url: str) -> None:
    now = [1_000_000_000_000]
    with postroom.open(url, clock=lambda: now[0]) as ann, postroom.open(url, clock=lambda: now[0]) as bob:
        ann.queues.create("q")
        ann.send("q", FIVE)
        segment(ann)
        now[0] += int(LOCK_LEASE_SECONDS * 1_000_000) - 1
        with pytest.raises(QueueLocked):
            bob.receive("q", wait=0)
        now[0] += 2
        assert segment(bob) == ("one", False)
        with pytest.raises(QueueLocked):
            ann.receive("q", segment=True, wait=0)


def test_a_message_begun_over_a_level_goes_on_though_an_earlier_queue_fills(room: Postroom, tmp_path: Path) -> None:
    file = tmp_path / "t.qdl"
    file.write_text("01 INPUT-QUEUE (M)\n02 SUB-QUEUE-1 (A)\n02 SUB-QUEUE-1 (B)\n99")
    room.load(file)
    room.send("INP_0001", "b1\nb2\nb3")
    assert segment(room, "M") == ("b1", False)
    room.send("INP_0000", "a1")
    assert segment(room, "M") == ("b2", False)
    assert segment(room, "INP_0000") == ("a1", True)  # another reference is another conversation
    assert segment(room, "M") == ("b3", True)


def test_a_search_stops_at_the_first_non_empty_queue_also_if_it_is_locked(url: str, tmp_path: Path) -> None:
    file = tmp_path / "t.qdl"
    file.write_text("01 INPUT-QUEUE (M)\n02 SUB-QUEUE-1 (A)\n02 SUB-QUEUE-1 (B)\n99")
    with postroom.open(url, actor="ann") as ann, postroom.open(url) as bob:
        ann.load(file)
        ann.send("INP_0000", "a1\na2")
        ann.send("INP_0001", "b")
        segment(ann, "INP_0000")
        with pytest.raises(QueueLocked, match="INP_0000"):
            bob.receive("M", segment=True, wait=0)
        assert segment(ann, "M") == ("a2", True)


def test_a_lock_says_how_far_its_user_is_in_its_own_message(sqlite_url: str) -> None:
    with postroom.open(sqlite_url, actor="ann") as ann:
        ann.queues.create("q")
        ann.send("q", FIVE)
        segment(ann)
        segment(ann)
        (queue,) = (each for each in ann.store.read(lambda tx: tx.queues.all()) if each.name == "q")
        assert queue.lock_message is not None
        assert next_segment(queue, queue.lock_message) == 2
        assert next_segment(queue, queue.lock_message + 1) == 0
        told = str(locked_error(queue))
        assert "ann" in told
        assert key_text(queue.lock_message) in told
