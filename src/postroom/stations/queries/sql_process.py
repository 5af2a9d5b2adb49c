"""The process that answers statements in Spark SQL, with a Spark of its own.

Spark cannot cancel a large join, and a result that fills the memory kills Java. So it has its own Java: ``python -m
postroom.stations.queries.sql_process``.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from postroom.engine.bounded_process import attend, seconds_of
from postroom.engine.spark import internals, jobs
from postroom.engine.spark.internals import Py4JError, Py4JNetworkError
from postroom.engine.spark.launch import one_line
from postroom.engine.spark.session import session as spark_session
from postroom.errors import SqlRefused
from postroom.stations.queries.cells import packed, unpacked

_SETTINGS = {"spark.driver.memory": "1g"}
_LOOK_SECONDS = 0.2
_GROUP = "postroom sql"
Tell = Callable[[bytes], None]


def answer(request: bytes, tell: Tell) -> bytes:
    """Process a request: the tables that a statement names, or its result, or why it is refused."""
    _, verb, *rest = json.loads(request)
    reply: dict[str, Any]
    try:
        session = _session()
        reply = {"tables": tables(session, *rest)} if verb == "tables" else run(session, tell, *rest)
    except SqlRefused as error:
        reply = {"refused": error.facts["why"]}
    except (Py4JNetworkError, OSError):  # Java has ended: it had not enough memory
        os._exit(1)
    except (PySparkException, Py4JError) as error:
        if "OutOfMemoryError" in str(error) or _has_ended():  # Java is about to end, or Spark has stopped in it
            os._exit(1)
        why = one_line(error)
        reply = {"refused": why if isinstance(error, PySparkException) else f"Spark cannot work it out ({why[:200]})"}
    return json.dumps(reply).encode()


def _session() -> SparkSession:
    """A session for one statement, with views and settings of its own."""
    _sessions[:] = [spark_session(conf=_SETTINGS)]
    session = _sessions[0].newSession()
    session.conf.set("spark.sql.runSQLOnFiles", "false")
    session.conf.set("spark.sql.variable.substitute", "false")  # ${env:…} would tell what is in our environment
    return session


def _has_ended() -> bool:
    return not _sessions or internals.has_ended(_sessions[0])


_sessions: list[SparkSession] = []  # the one of this process


def run(
    session: SparkSession,
    tell: Tell,
    statement: str,
    given: Mapping[str, tuple[str, list[Any]]],
    rows_max: int,
    size_max: int,
) -> dict[str, Any]:
    """The result of a statement over tables, each with columns and rows."""
    with _telling(session, tell):
        tables(session, statement, list(given))
        for name, (types, rows) in given.items():
            table = session.createDataFrame(unpacked(rows), StructType.fromJson(json.loads(types)))
            table.createOrReplaceTempView(name)
        frame = session.sql(statement)
        _check(internals.analyzed(frame), internals.ANALYZED.union(_functions(session).values()))
        return {"columns": list(frame.columns), "rows": _collected(frame, rows_max, size_max)}


def _collected(frame: DataFrame, rows_max: int, size_max: int) -> list[Any]:
    """The rows; raises if there are too many."""
    rows: list[Any] = []
    size = 0
    for row in frame.limit(rows_max + 1).toLocalIterator():
        rows.append([packed(cell) for cell in row])
        size += sum(_size(cell) for cell in row)
        if len(rows) > rows_max:
            raise SqlRefused(why=f"the answer has more than {rows_max} rows")
        if size > size_max:
            raise SqlRefused(why=f"the answer has more than {size_max} characters")
    return rows


def _size(cell: Any) -> int:
    if isinstance(cell, (list, tuple, dict)):
        return 8 + sum(map(_size, cell))
    return len(cell) if isinstance(cell, (str, bytes, bytearray)) else 8


@contextmanager
def _telling(session: SparkSession, tell: Tell) -> Iterator[None]:
    """Report progress during the block: parts done, and parts known."""
    session.sparkContext.setJobGroup(_GROUP, _GROUP)
    over = threading.Event()

    def look() -> None:
        with suppress(Py4JError, OSError):  # Java has ended, which whoever waits for the answer is told
            while not over.wait(_LOOK_SECONDS):
                done, total = jobs.progress(session, _GROUP)
                tell(json.dumps((done, max(total, 1))).encode())

    thread = threading.Thread(target=look, daemon=True, name="progress")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


# --- what a statement may say ---

#: Groups of Spark's own functions that look at their arguments alone. Others reach files, classes or the machine.
_GROUPS = frozenset(
    f"{group}_funcs"
    for group in (
        "agg array bitwise collection conditional conversion datetime generator hash json lambda map math operator "
        "predicate string struct window"
    ).split()
)


def tables(session: SparkSession, statement: str, known: Sequence[str]) -> list[str]:
    """The temporary tables in a statement; raises if it uses anything else."""
    nodes = internals.parsed(session, statement)
    _check([kind for _, kind in nodes], internals.PARSED)
    there = {name.lower(): name for name in known}
    local = {name.lower() for node, kind in nodes if kind == "UnresolvedWith" for name in internals.names_of_with(node)}
    used: dict[str, None] = {}
    for node, kind in nodes:
        if kind == "UnresolvedRelation":
            name = internals.relation_name(node)
            if name.lower() in there:
                used[there[name.lower()]] = None
            elif name.lower() not in local:
                raise SqlRefused(why=f"there is no temporary table {name}; there are: {', '.join(known) or 'none'}")
        if kind == "UnresolvedFunction" and internals.function_name(node).lower() not in _functions(session):
            why = f"the function {internals.function_name(node)} is not one that a statement may use"
            raise SqlRefused(why=why)
    return list(used)


def _check(kinds: Iterable[str], allowed: Container[str]) -> None:
    """Raise for anything not on the allow-list, so that new classes of a later Spark are refused."""
    for kind in kinds:
        if kind not in allowed:
            raise SqlRefused(why=f"only queries of temporary tables are run, and nothing with {kind}")


def _functions(session: SparkSession) -> Mapping[str, str]:
    """The Spark functions that a statement may use, with their expression classes."""
    if not _known:
        known = internals.functions(session).items()
        _known.update({name: kind for name, (group, kind) in known if group in _GROUPS})
    return _known


_known: dict[str, str] = {}


if __name__ == "__main__":
    spark_session(conf=_SETTINGS)  # before the time counts
    attend(answer, seconds_of)
