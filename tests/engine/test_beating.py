"""A lease is renewed at an interval, whatever the work beside it does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic, sleep

import pytest

import postroom
from postroom.engine.beating import beating
from postroom.errors import LeaseLost, PostroomError, StoreBusy
from postroom.room import Postroom


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom.engine.beating.ENGINE_LEASE_SECONDS", 0.05)


def wait_until(true: Callable[[], object]) -> None:
    end = monotonic() + 20
    while not true():
        assert monotonic() < end, "it did not happen in time"
        sleep(0.005)


def test_it_beats_until_the_block_ends_though_the_store_is_busy(room: Postroom) -> None:
    beats: list[int] = []

    def beat() -> None:
        beats.append(1)
        raise StoreBusy(seconds=1, why="someone writes")

    with beating(room.store, beat, lambda lost: None):
        wait_until(lambda: len(beats) > 2)
    count = len(beats)
    sleep(0.05)
    assert len(beats) == count


def test_a_lost_lease_is_told(room: Postroom) -> None:
    told: list[PostroomError] = []

    def beat() -> None:
        raise LeaseLost(lease="effects", ours=1, theirs=2)

    with beating(room.store, beat, told.append):
        wait_until(lambda: told)
    assert told[0].facts["theirs"] == 2


def test_a_closed_store_ends_it(url: str) -> None:
    beats: list[int] = []
    with postroom.open(url) as room:
        room.store.close()

        def beat() -> None:
            beats.append(1)
            room.store.read(lambda tx: tx.now)

        with beating(room.store, beat, lambda lost: None):
            wait_until(lambda: beats)
            sleep(0.1)
    assert len(beats) == 1


class InterruptedStart(threading.Thread):
    """A thread during whose start Ctrl-C comes."""

    def start(self) -> None:
        super().start()
        raise KeyboardInterrupt


def test_an_interrupt_at_its_start_leaves_no_beat_behind(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom.engine.beating.threading.Thread", InterruptedStart)
    beats: list[int] = []
    with pytest.raises(KeyboardInterrupt), beating(room.store, lambda: beats.append(1), lambda lost: None):
        raise AssertionError("it is interrupted before")
    wait_until(lambda: not any(thread.name == "postroom-lease" for thread in threading.enumerate()))


def test_a_run_that_was_interrupted_at_its_beginning_does_not_count_as_running(
    room: Postroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: object, *given: object) -> None:
        raise KeyboardInterrupt

    room.queues.create("q")
    with monkeypatch.context() as patch:
        patch.setattr("postroom.engine.runner._Job.__init__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            room.run_until_idle()
    assert room.run_until_idle() == 0
