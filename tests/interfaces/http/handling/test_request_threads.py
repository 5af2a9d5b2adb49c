"""RequestThreads end in time, whatever they do."""

from __future__ import annotations

import threading
from time import monotonic

import pytest

from postroom.interfaces.http.handling.request_threads import RequestThreads


def test_what_takes_too_long_is_left_behind_and_what_waits_is_never_begun() -> None:
    workers = RequestThreads(1, "test")
    begun, over = threading.Event(), threading.Event()
    ran: list[int] = []

    def work() -> None:
        begun.set()
        over.wait(60)

    workers.submit(work)
    behind = workers.submit(ran.append, 1)
    assert begun.wait(60)
    began = monotonic()
    assert not workers.end(0.2)
    assert monotonic() - began < 60
    assert behind.cancelled()
    over.set()
    assert workers.end(60)
    assert ran == []
    with pytest.raises(RuntimeError):
        workers.submit(print)


def test_what_ends_in_time_is_waited_for() -> None:
    workers = RequestThreads(2, "test")
    done = [workers.submit(pow, 2, number) for number in range(20)]
    assert all(each.result(60) == 2**number for number, each in enumerate(done))
    assert workers.end(60)
