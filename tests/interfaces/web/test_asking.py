"""What takes long: it is followed, stopped and kept, by and for whoever began it."""

from __future__ import annotations

import threading

import pytest

from postroom.errors import StationUnknown, TooManyRequests
from postroom.interfaces.web.asking import Askings, Stopped
from postroom.limits import ASKINGS_KEPT_MAX, ASKINGS_OF_ONE
from postroom.model.progress import OnProgress


@pytest.fixture
def askings() -> Askings:
    return Askings()


def test_what_is_done_is_told_and_kept_for_whoever_asked(askings: Askings) -> None:
    half, go = threading.Event(), threading.Event()

    def work(progress: OnProgress) -> list[int]:
        progress(1, 2)
        half.set()
        go.wait(30)
        progress(2, 2)
        return [1, 2, 3]

    asking = askings.begin("ann", "claims", work)
    assert half.wait(30)
    assert (asking.done, asking.total, asking.is_over) == (1, 2, False)
    go.set()
    assert asking._coming.result(30) == [1, 2, 3]
    assert askings.known("ann", asking.id) is asking
    assert asking.rows == 3
    assert askings.known("ben", asking.id) is None
    assert askings.close(60)


def test_what_is_stopped_ends_and_nobody_else_can_stop_it(askings: Askings) -> None:
    began, ended = threading.Event(), threading.Event()

    def work(progress: OnProgress) -> None:
        began.set()
        try:
            while True:
                progress(0, 1)
        except Stopped:
            ended.set()
            raise

    asking = askings.begin("ann", "", work)
    assert began.wait(30)
    assert not askings.stop("ben", asking.id)
    assert askings.stop("ann", asking.id)
    assert ended.wait(30)
    while not asking.wait():
        pass
    assert asking.result() is None  # for a page that was waiting for it
    assert asking.rows == 0
    assert askings.known("ann", asking.id) is None
    assert askings.close(60)


def test_an_error_is_told_whenever_one_asks(askings: Askings) -> None:
    def work(progress: OnProgress) -> None:
        raise StationUnknown(station="Nowhere", nearest="")

    asking = askings.begin("ann", "", work)
    while not asking.wait():
        pass
    for _ in range(2):
        with pytest.raises(StationUnknown):
            asking.result()
    assert askings.close(60)


def test_nobody_asks_for_more_than_so_much_at_once_and_close_ends_all(askings: Askings) -> None:
    def work(progress: OnProgress) -> None:
        while True:
            progress(0, 1)

    several = [askings.begin("ann", "", work) for _ in range(ASKINGS_OF_ONE)]
    with pytest.raises(TooManyRequests):
        askings.begin("ann", "", work)
    waits = askings.begin("ben", "", work)
    assert askings.close(60)
    assert all(each.is_over for each in several)
    assert not waits.is_over  # it was never begun


def test_old_answers_are_forgotten(askings: Askings) -> None:
    first = askings.begin("u", "", lambda progress: "x" * 10)
    while not first.wait():
        pass
    for number in range(ASKINGS_KEPT_MAX):
        last = askings.begin(f"u{number}", "", lambda progress: 1)
        while not last.wait():
            pass
    assert askings.known("u", first.id) is None
    assert askings.known(last.user, last.id) is last
    assert askings.close(60)
