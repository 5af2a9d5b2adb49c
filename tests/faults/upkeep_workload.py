"""What whoever looks after a room does: archive, sweep, back up and restore."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

import postroom
from postroom.engine import archiving


def write_here(table: pyarrow.Table, order: tuple[str, ...], place: Path) -> None:
    """What Spark writes, without Spark: the same columns in one file of small pages."""
    place.mkdir()
    ordered = table.sort_by([(name, "ascending") for name in order])
    pyarrow.parquet.write_table(ordered, place / "part-0.parquet", row_group_size=50)


def without_spark(spark: Any) -> archiving.Write:
    return write_here


def begin(url: str) -> None:
    """A room with something of all that goes."""
    with postroom.open(url) as room:
        room.queues.create("q")
        room.queues.create("short")
        room.queues.set_mode("short", keep_processed=False)
        room.send_many("q", [str(number) for number in range(20)])
        room.send_many("short", ["a", "b"])
        room.receive("q")
        room.receive("short")
        room.send("q", "once", idempotency_key="once")
        with room.sphere("good") as good:
            good.send("q", "book", compensation="cancel")
        for kind in ("spheres", "receipts", "heartbeats"):
            room.engine.set_retention(kind, timedelta(0))


def work(url: str, folder: str) -> None:
    archiving.spark_writer = without_spark  # in this process alone
    at = Path(folder)
    with postroom.open(url) as room:
        room.engine.set_retention("receipts", timedelta(0))
        room.journal.archive(timedelta(0), at / "old")
        room.engine.sweep()
        room.send("q", "more")
        room.journal.archive(timedelta(0), at / "old")
        room.backup(at / "backup.db", replace=True)
    with postroom.open(at / "restored.db") as copy:
        copy.operations.restore(at / "backup.db", replace=True)
    print("done", flush=True)
