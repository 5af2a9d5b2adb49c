"""Keeps what Java makes of Spark's classes in a file: ``python tests/shared_classes.py FILE``.

A Java that is given the file starts a session and its first job in half the time, and the tests start dozens.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from postroom.engine.spark import launch
from postroom.engine.spark import session as spark

_WRITING_SECONDS = 300


def unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def write(file: Path) -> None:
    """Run a session through what the engine uses of Spark; Java writes the file when it ends."""
    made = file.with_suffix(".new")
    made.unlink(missing_ok=True)
    os.environ["SPARK_SUBMIT_OPTS"] = f"-Xlog:disable -XX:ArchiveClassesAtExit={made}"
    launch.END_SECONDS = _WRITING_SECONDS
    session = spark.session("local[2]")
    some = session.createDataFrame(pa.table({"packed": pa.array([b"1", b"2"], pa.binary()), "n": [1, 2]}))
    some.mapInArrow(unchanged, "packed binary, n bigint").toArrow()
    some.createOrReplaceTempView("some")
    session.sql("SELECT a.n, count(*) FROM some a JOIN some b ON a.n = b.n WHERE a.n > 0 GROUP BY a.n").toArrow()
    spark.stop()
    made.touch()  # a Java that cannot write one is not asked again
    made.replace(file)


if __name__ == "__main__":
    write(Path(sys.argv[1]).resolve())
