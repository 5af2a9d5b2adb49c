"""What is passed on of the words of Spark's Java, and how it ends."""

from __future__ import annotations

import subprocess
import threading

import pytest

from postroom.engine.spark import internals, launch
from postroom.engine.spark.launch import _REAPED, _pieces

REAPED = b"""Traceback (most recent call last):
  File "python/lib/pyspark.zip/pyspark/daemon.py", line 264, in manager
  File "python/lib/pyspark.zip/pyspark/daemon.py", line 95, in worker
BrokenPipeError: [Errno 32] Broken pipe
"""
OTHER = b"""Traceback (most recent call last):
  File "rule.py", line 1, in rule
    x = y
ValueError: no y
"""


def test_a_traceback_stays_in_one_piece_and_other_lines_apart() -> None:
    said = b"one\n  two\n" + OTHER + b"three\n" + REAPED + b"Traceback (most"
    pieces = list(_pieces(said.splitlines(keepends=True)))
    assert pieces == [b"one\n", b"  two\n", OTHER, b"three\n", REAPED, b"Traceback (most"]


def test_the_end_of_an_idle_worker_is_no_news_and_any_other_failure_is() -> None:
    assert _REAPED.search(REAPED)
    assert not _REAPED.search(OTHER)
    assert not _REAPED.search(b"BrokenPipeError\n")


@pytest.mark.parametrize("program", [["cat"], ["sleep", "600"]], ids=["ends", "hangs"])
def test_javas_end_needs_no_thread(monkeypatch: pytest.MonkeyPatch, program: list[str]) -> None:
    """It is ended when the interpreter ends, where Python 3.12 starts no thread any more."""
    java = subprocess.Popen(program, stdin=subprocess.PIPE)

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(launch, "END_SECONDS", 0.5 if program[0] == "sleep" else 60)
    monkeypatch.setattr(launch._Ear, "deafen", lambda: None)
    monkeypatch.setattr(internals, "end_session", lambda: java)
    monkeypatch.setattr(threading.Thread, "start", refused)
    launch.end()
    assert java.returncode == (-9 if program[0] == "sleep" else 0)
