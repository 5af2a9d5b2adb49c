"""Archives as Spark writes them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet
import pytest

from postroom.engine import archiving
from postroom.room import Postroom

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_spark_writes_what_is_read_back_line_by_line(
    room: Postroom, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archiving, "ARCHIVE_LINES", 400)
    room.queues.create("q")
    room.queues.create("short")
    room.queues.set_mode("short", keep_processed=False)
    sent = [room.send("q", "é\n\t\u2028", properties={"a": 1}).key for _ in range(3)]
    room.send_many("q", [str(number) for number in range(900)])
    gone = room.send("short", "x").key
    room.receive("short")
    room.receive("q")
    before = [room.trace(key) for key in (*sent, gone)]
    seen: list[tuple[int, int]] = []
    (made,) = room.journal.archive(
        timedelta(0), tmp_path / "old", master="local[2]", progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (2 * (made.lines + made.departed),) * 2
    files = sorted(Path(made.folder).iterdir())
    assert [file.name.partition("-")[0] for file in files] == ["departed", "lines", "lines", "lines", "manifest.json"]
    assert "parquet-mr" in pyarrow.parquet.ParquetFile(files[1]).metadata.created_by, "it was Spark that wrote it"
    assert [room.trace(key) for key in (*sent, gone)] == before
    assert room.journal.verify(archives=True).differences == ()


def test_a_stream_that_is_behind_the_archive_is_told_so(room: Postroom, tmp_path: Path) -> None:
    from tests.faults.upkeep_workload import write_here

    from postroom.engine.datasource.tail import Tail
    from postroom.errors import JournalArchived

    for name in ("q", "quiet"):
        room.queues.create(name)
    first = room.store.read(lambda tx: tx.journal.newest())
    room.send("q", "x")
    archiving.archive(room.store, 2**62, tmp_path / "old", write_here)
    with pytest.raises(JournalArchived, match=f"from entry {first}.*startingOffset latest"):
        Tail(room.store, "q").check(first)
    tail = Tail(room.store, "quiet")
    tail.check(first)
    tail.check(first)
    room.send("quiet", "y")
    assert tail.last(first) == room.store.read(lambda tx: tx.journal.newest())
