"""A dry run of arcs: what it tells, and that it ends."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.flows.conftest import Load

from postroom.errors import TryExpired
from postroom.flows.language import sql
from postroom.room import Postroom

NUMBERS = "[n: int, t: string]"


def stored(room: Postroom, queue: str) -> list[str]:
    return [message.body for message in room.queues.info(queue)]


def test_a_dry_run_tells_where_stored_events_would_go_and_changes_nothing(
    room: Postroom, load: Load, tmp_path: Path, spark: SparkSession
) -> None:
    load(f"domain d space A : {NUMBERS} space B : {NUMBERS}")
    room.flows.publish_many("A", ['[1, "x"]', '[5, "y"]'])
    proposed = tmp_path / "p.flow"
    proposed.write_text(f"domain d space A : {NUMBERS} space B : {NUMBERS} arc new : A -> B select [n: n > 2]")
    before = room.store.read(lambda tx: tx.journal.newest())
    tried = [each.as_dict()["actions"] for each in room.definitions.try_out(proposed, master="local[2]")]
    assert tried == [[], [{"action": "enqueue", "rule": "new", "queue": "B", "body": '{"n":5,"t":"y"}'}]]
    assert room.store.read(lambda tx: tx.journal.newest()) == before


def test_a_dry_run_ends_when_its_time_is_over(
    room: Postroom, load: Load, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function that never ends stands in for work without end: its job is ended from outside."""
    load("domain d space A : [n: int] space B : [n: int]")
    room.publish("A", "[1]")
    file = tmp_path / "proposed.flow"
    file.write_text(
        "domain d space A : [n: int] space B : [n: int] arc b : A -> B transform [n: n] => [n: length(string(n))]"
    )
    sleeping = "CAST(concat(length({}), java_method('java.lang.Thread', 'sleep', 60000L)) AS BIGINT)"
    monkeypatch.setitem(sql.FUNCTIONS, "length", sleeping.format)
    began = time.monotonic()
    with pytest.raises(TryExpired, match="in 1 s"):
        list(room.definitions.try_out(file, master="local[2]", timeout=1))
    assert time.monotonic() - began < 30
    assert stored(room, "A") == ['{"n":1}']
    monkeypatch.undo()
    file.write_text(file.read_text().replace("arc b", "arc c"))  # a plan is kept, and that of b sleeps
    assert [len(each.as_dict()["actions"]) for each in room.definitions.try_out(file, master="local[2]")] == [1]
