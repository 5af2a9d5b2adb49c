"""What is passed on of the words of Spark's Java."""

from __future__ import annotations

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
