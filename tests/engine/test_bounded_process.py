"""Processes that answer within bounds: one that takes too long or dies is replaced, and nobody waits for it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from threading import Timer

import pytest

from postroom.engine.bounded_process import BoundedProcesses, Ended

MODULE = """
import os, sys, time
from postroom.engine.bounded_process import attend

def answer(request, tell):
    if request == b"die":
        os._exit(3)
    if request == b"leave a child":
        if os.fork():
            os._exit(3)
        time.sleep(60)
    if request == b"sleep":
        time.sleep(60)
    if request == b"print":
        print("no answer")
    tell(b"under way")
    return request[::-1]

attend(answer, lambda request: 0.3)
"""


@pytest.fixture
def processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BoundedProcesses:
    (tmp_path / "attending_for_a_test.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return BoundedProcesses("attending_for_a_test")


def test_a_request_is_answered_and_news_are_heard_on_the_way(processes: BoundedProcesses) -> None:
    heard: list[bytes] = []
    assert processes.ask(b"abc", heard.append) == b"cba"
    assert heard == [b"under way"]
    assert processes.ask(b"print") == b"tnirp", "what is printed is no answer"
    assert len(processes._idle) == 1, "it is kept for the next"


def test_what_takes_too_long_ends_and_the_next_is_answered(processes: BoundedProcesses) -> None:
    with pytest.raises(Ended) as raised:
        processes.ask(b"sleep")
    assert not raised.value.in_time
    assert processes.ask(b"abc") == b"cba"


def test_what_dies_as_often_as_it_is_tried_is_guilty(processes: BoundedProcesses) -> None:
    with pytest.raises(Ended) as raised:
        processes.ask(b"die")
    assert raised.value.in_time
    assert processes._idle == []


def test_a_request_is_not_guilty_of_processes_that_ended_before_they_began_with_it(processes: BoundedProcesses) -> None:
    """A signal that is on its way ends a process a moment later: it is still there when it is asked."""
    attendants = [processes._taken(), processes._taken()]
    for attendant in attendants:
        assert attendant.ask(b"abc", None) == b"cba"
        processes._give_back(attendant)
        assert attendant._process is not None
        os.kill(attendant._process, signal.SIGSTOP)
        Timer(0.2, os.kill, (attendant._process, signal.SIGKILL)).start()
    assert processes.ask(b"abc", tries=1) == b"cba"


def test_the_end_of_a_process_is_noticed_although_its_child_holds_the_pipe(processes: BoundedProcesses) -> None:
    with pytest.raises(Ended):
        processes.ask(b"leave a child", tries=1)
    assert processes.ask(b"abc") == b"cba"
