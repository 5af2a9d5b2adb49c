"""Processes that answer within bounds: one that takes too long or dies is replaced, and nobody waits for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from postroom.engine.bounded_process import BoundedProcesses, Ended

MODULE = """
import os, sys, time
from postroom.engine.bounded_process import attend

def answer(request, tell):
    if request == b"die":
        os._exit(3)
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
