"""The process that answers statements in Spark SQL, with a Spark of its own.

Spark cannot end a job that is in the middle of a large join, and an answer that fills the memory ends its Java. Here
that is nobody else's Java: ``python -m postroom.stations.queries.sql_process``.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from py4j.java_gateway import JavaObject, is_instance_of
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from postroom.engine.bounded_process import attend
from postroom.engine.spark.launch import one_line
from postroom.engine.spark.session import session as spark_session
from postroom.errors import SqlRefused
from postroom.stations.queries.cells import packed, unpacked

_SETTINGS = {"spark.driver.memory": "1g"}
_LOOK_SECONDS = 0.2
_GROUP = "postroom sql"
Tell = Callable[[bytes], None]


def answer(request: bytes, tell: Tell) -> bytes:
    """What to say to a request: the tables that a statement names, or its answer; or why it is refused."""
    _, verb, *rest = json.loads(request)
    said: dict[str, Any]
    try:
        session = _session()
        said = {"tables": tables(session, *rest)} if verb == "tables" else run(session, tell, *rest)
    except SqlRefused as error:
        said = {"refused": error.facts["why"]}
    except (Py4JNetworkError, OSError):  # Java has ended: it had not enough memory
        os._exit(1)
    except (PySparkException, Py4JError) as error:
        if "OutOfMemoryError" in str(error):  # Java is about to end
            os._exit(1)
        why = one_line(error)
        said = {"refused": why if isinstance(error, PySparkException) else f"Spark cannot work it out ({why[:200]})"}
    return json.dumps(said).encode()


def _session() -> SparkSession:
    """A session for one statement, with views and settings of its own."""
    session = spark_session(conf=_SETTINGS).newSession()
    session.conf.set("spark.sql.runSQLOnFiles", "false")
    session.conf.set("spark.sql.variable.substitute", "false")  # ${env:…} would tell what is in our environment
    return session


def run(
    session: SparkSession,
    tell: Tell,
    statement: str,
    given: Mapping[str, tuple[str, list[Any]]],
    rows_max: int,
    size_max: int,
) -> dict[str, Any]:
    """The answer to a statement over tables, each with its columns and rows."""
    with _telling(session, tell):
        tables(session, statement, list(given))
        for name, (types, rows) in given.items():
            table = session.createDataFrame(unpacked(rows), StructType.fromJson(json.loads(types)))
            table.createOrReplaceTempView(name)
        frame = session.sql(statement)
        for _, kind in _parts(frame._jdf.queryExecution().analyzed()):
            if kind in _FORBIDDEN:
                raise SqlRefused(why=f"it comes down to {kind}, which a query may not use")
        return {"columns": list(frame.columns), "rows": _collected(frame, rows_max, size_max)}


def _collected(frame: DataFrame, rows_max: int, size_max: int) -> list[Any]:
    """The rows, as long as they are not too many for anyone to hold."""
    found: list[Any] = []
    size = 0
    for row in frame.limit(rows_max + 1).toLocalIterator():
        found.append([packed(cell) for cell in row])
        size += sum(_size(cell) for cell in row)
        if len(found) > rows_max:
            raise SqlRefused(why=f"the answer has more than {rows_max} rows")
        if size > size_max:
            raise SqlRefused(why=f"the answer has more than {size_max} characters")
    return found


def _size(cell: Any) -> int:
    if isinstance(cell, (list, tuple, dict)):
        return 8 + sum(map(_size, cell))
    return len(cell) if isinstance(cell, (str, bytes, bytearray)) else 8


@contextmanager
def _telling(session: SparkSession, tell: Tell) -> Iterator[None]:
    """Meanwhile tell how many parts of the work are done, and how many are known of."""
    session.sparkContext.setJobGroup(_GROUP, _GROUP)
    over = threading.Event()

    def look() -> None:
        with suppress(Py4JError, OSError):  # Java has ended, which whoever waits for the answer is told
            while not over.wait(_LOOK_SECONDS):
                tell(json.dumps(_tasks(session)).encode())

    thread = threading.Thread(target=look, daemon=True, name="progress")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _tasks(session: SparkSession) -> tuple[int, int]:
    tracker = session.sparkContext.statusTracker()
    done = total = 0
    for job in tracker.getJobIdsForGroup(_GROUP):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info else ():
            status = tracker.getStageInfo(stage)
            if status is not None:
                done, total = done + status.numCompletedTasks, total + status.numTasks
    return done, max(total, 1)


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
    """The temporary tables that a statement names; raises if it does or names anything else."""
    parts = list(_parts(session._jsparkSession.sessionState().sqlParser().parsePlan(statement)))
    there = {name.lower(): name for name in known}
    local = {name.lower() for part, kind in parts if kind == "UnresolvedWith" for name in _names_of_with(part)}
    used: dict[str, None] = {}
    for part, kind in parts:
        if kind not in _ALLOWED:
            raise SqlRefused(why=f"only queries of temporary tables are run, and nothing with {kind}")
        if kind == "UnresolvedRelation":
            name = str(part.tableName()).strip("`")
            if name.lower() in there:
                used[there[name.lower()]] = None
            elif name.lower() not in local:
                raise SqlRefused(why=f"there is no temporary table {name}; there are: {', '.join(known) or 'none'}")
        if kind == "UnresolvedFunction":
            words = part.nameParts()
            _check_function(session, ".".join(str(words.apply(at)) for at in range(words.length())))
    return list(used)


#: What a query is made of, as Spark's parser has it; operators first, then expressions. Anything else is refused.
_ALLOWED = frozenset(
    (
        "UnresolvedWith UnresolvedRelation UnresolvedInlineTable UnresolvedSubqueryColumnAliases SubqueryAlias Project "
        "Filter Join Aggregate Sort GlobalLimit LocalLimit Offset Distinct Union Intersect Except UnresolvedHaving "
        "OneRowRelation Generate WithWindowDefinition LateralJoin Pivot Unpivot "
        "Literal Alias MultiAlias UnresolvedAttribute UnresolvedStar UnresolvedAlias UnresolvedFunction "
        "UnresolvedExtractValue UnresolvedSubqueryColumnAliases UnresolvedGenerator UnresolvedOrdinal "
        "UnresolvedNamedLambdaVariable UnresolvedWindowExpression LambdaFunction NamedArgumentExpression "
        "And Or Not EqualTo EqualNullSafe LessThan LessThanOrEqual GreaterThan GreaterThanOrEqual In InSubquery "
        "IsNull IsNotNull IsTrue IsNotTrue IsFalse IsNotFalse IsUnknown IsNotUnknown Like ILike RLike LikeAll LikeAny "
        "NotLikeAll NotLikeAny Add Subtract Multiply Divide IntegralDivide Remainder UnaryMinus UnaryPositive "
        "BitwiseAnd BitwiseOr BitwiseXor BitwiseNot CaseWhen Cast Concat SortOrder ScalarSubquery Exists ListQuery "
        "Between LateralSubquery WindowExpression WindowSpecDefinition WindowSpecReference SpecifiedWindowFrame "
        "UnspecifiedFrame$ CurrentRow$ UnboundedPreceding$ UnboundedFollowing$ GroupingSets Cube Rollup "
        "BaseGroupingSets PivotColumn "
        "CreateStruct CreateNamedStruct CurrentDate CurrentTimestamp OuterReference"
    ).split()
)
#: What must not be in a query however it came there.
_FORBIDDEN = frozenset(
    "CallMethodViaReflection TryReflect CurrentUser CurrentDatabase CurrentCatalog InputFileName SparkVersion "
    "ScriptTransformation LogicalRelation DataSourceV2Relation HiveTableRelation PythonUDF ScalaUDF".split()
)
_TREE, _MANY, _PRODUCT = (
    "org.apache.spark.sql.catalyst.trees.TreeNode",
    "scala.collection.IterableOnce",
    "scala.Product",
)


def _parts(plan: JavaObject) -> Iterator[tuple[JavaObject, str]]:
    """Every operator and expression that a plan is made of, wherever it stands in it, with the name of its class."""
    gateway = SparkContext._gateway
    assert gateway is not None
    todo: list[Any] = [plan]
    while todo:
        each = todo.pop()
        if not isinstance(each, JavaObject):
            continue
        if is_instance_of(gateway, each, _TREE):
            yield each, str(each.getClass().getSimpleName())
        if is_instance_of(gateway, each, _MANY):
            iterator = each.iterator()
            while iterator.hasNext():
                todo.append(iterator.next())
        elif is_instance_of(gateway, each, _PRODUCT):
            todo += [each.productElement(at) for at in range(each.productArity())]


def _names_of_with(node: JavaObject) -> list[str]:
    relations = node.cteRelations()
    return [str(relations.apply(at)._1()) for at in range(relations.length())]


def _check_function(session: SparkSession, name: str) -> None:
    if name.lower() not in _allowed(session):
        raise SqlRefused(why=f"the function {name} is not one that a statement may use")


def _allowed(session: SparkSession) -> set[str]:
    """The names of Spark's functions that a statement may use."""
    if not _known:
        infos = session._jvm.org.apache.spark.sql.api.python.PythonSQLUtils.listBuiltinFunctionInfos()  # type: ignore[union-attr]  # a running session has one
        _known.update(str(info.getName()).lower() for info in infos if str(info.getGroup()) in _GROUPS)
    return _known


_known: set[str] = set()


def _seconds(request: bytes) -> float:
    return float(request[1 : request.index(b",")])


if __name__ == "__main__":
    spark_session(conf=_SETTINGS)  # before the time counts
    attend(answer, _seconds)
