"""Spark SQL over a station's temporary tables, and over nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from postroom.engine.launch import one_line
from postroom.errors import SqlRefused
from postroom.limits import SQL_CHARS_MAX, SQL_ROWS_MAX
from postroom.model.key import key_text
from postroom.model.types import FieldValue, Kind, element_name, text
from postroom.stations.catalog import Edition
from postroom.stations.filling import values
from postroom.store.albums import Kept

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

#: Groups of Spark's own functions that look at their arguments alone. Others reach files, classes or the machine.
_GROUPS = frozenset(
    f"{group}_funcs"
    for group in (
        "agg array bitwise collection conditional conversion datetime generator hash json lambda map math operator "
        "predicate string struct window"
    ).split()
)
_TYPES: Mapping[Kind, DataType] = {
    Kind.INT: LongType(),
    Kind.DECIMAL: DecimalType(38, 10),
    Kind.FLOAT: DoubleType(),
    Kind.BOOLEAN: BooleanType(),
    Kind.DATE: DateType(),
    Kind.TIMESTAMP: TimestampType(),
}


@dataclass(frozen=True, slots=True)
class Table:
    """The answer of a statement."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def as_dict(self) -> dict[str, Any]:
        return {"columns": list(self.columns), "rows": [[_plain(cell) for cell in row] for row in self.rows]}


def ask(
    statement: str,
    editions: Mapping[str, Edition],
    images: Callable[[str], Sequence[Kept]],
    spark: Callable[[], SparkSession],
) -> Table:
    """Run a statement over temporary tables, each with the form that it was asked for by.

    A field's column has its name with ``_`` for blanks; ``key`` and ``place`` are columns, too.
    """
    if len(statement) > SQL_CHARS_MAX:
        raise SqlRefused(why=f"it has more than {SQL_CHARS_MAX} characters")
    session = spark().newSession()  # views and settings of its own
    session.conf.set("spark.sql.runSQLOnFiles", "false")
    try:
        used = _checked(session, statement, editions)
        for name in used:
            rows = list(_rows(editions[name], images(name)))
            session.createDataFrame(rows, schema(editions[name])).createOrReplaceTempView(name)
        frame = session.sql(statement)
        found = frame.limit(SQL_ROWS_MAX + 1).collect()
    except PySparkException as error:
        raise SqlRefused(why=one_line(error)) from error
    if len(found) > SQL_ROWS_MAX:
        raise SqlRefused(why=f"the answer has more than {SQL_ROWS_MAX} rows")
    return Table(tuple(frame.columns), tuple(tuple(row) for row in found))


def schema(edition: Edition) -> StructType:
    fields = [StructField("key", StringType()), StructField("place", StringType())]
    taken = {"key", "place"}
    for field in edition.form.fields:
        name = element_name(field.name)
        if name.lower() in taken:  # KEY is the key
            continue
        taken.add(name.lower())
        kind = _TYPES.get(field.kind, StringType())
        fields.append(StructField(name, ArrayType(kind) if field.many else kind))
    return StructType(fields)


def _rows(edition: Edition, kept: Sequence[Kept]) -> Iterator[tuple[Any, ...]]:
    names = {element_name(field.name): field for field in edition.form.fields}
    columns = [names[field.name] for field in schema(edition).fields[2:]]
    for image in kept:
        said = values(edition.form, image.body)
        yield (key_text(image.key), image.place, *(_cell(column.kind, said[column.name]) for column in columns))


def _cell(kind: Kind, value: FieldValue) -> Any:
    if isinstance(value, tuple):
        return [_cell(kind, each) for each in value]
    return value if value is None or kind in _TYPES else text(value)


def _plain(cell: Any) -> Any:
    if isinstance(cell, (list, tuple)):
        return [_plain(each) for each in cell]
    if cell is None or isinstance(cell, (bool, int, float, str)):
        return cell
    if isinstance(cell, Decimal):
        return f"{cell.normalize():f}"
    return cell.isoformat() if isinstance(cell, (date, time)) else str(cell)


# --- what a statement may say ---


def _checked(session: SparkSession, statement: str, known: Mapping[str, Edition]) -> list[str]:
    """The temporary tables that a statement names; raises if it does or names anything else."""
    state = session._jsparkSession.sessionState()
    plan = state.sqlParser().parsePlan(statement)
    tables = {name.lower(): name for name in known}
    used: dict[str, None] = {}
    local: set[str] = set()
    for node in _nodes(plan):
        kind = str(node.getClass().getSimpleName())
        if kind == "UnresolvedWith":
            local |= {str(alias).lower() for alias in _names_of_with(node)}
    for node in _nodes(plan):
        kind = str(node.getClass().getSimpleName())
        if kind not in _PLANS:
            raise SqlRefused(why=f"only queries of temporary tables are run, not {kind}")
        if kind == "UnresolvedRelation":
            name = str(node.tableName()).strip("`")
            if name.lower() in tables:
                used[tables[name.lower()]] = None
            elif name.lower() not in local:
                raise SqlRefused(why=f"there is no temporary table {name}; there are: {', '.join(known) or 'none'}")
        for name in _functions(node):
            _check_function(session, name)
    return list(used)


#: What a query is made of.
_PLANS = frozenset(
    "UnresolvedWith UnresolvedRelation UnresolvedInlineTable UnresolvedSubqueryColumnAliases SubqueryAlias Project "
    "Filter Join Aggregate Sort GlobalLimit LocalLimit Offset Distinct Union Intersect Except UnresolvedHaving "
    "OneRowRelation Generate WithWindowDefinition LateralJoin Pivot Unpivot".split()
)


def _nodes(plan: JavaObject) -> Iterator[JavaObject]:
    """Every operator of a plan, those of subqueries and of WITH as well."""
    todo = [plan]
    while todo:
        node = todo.pop()
        yield node
        for some in (node.children(), node.subqueries(), node.innerChildren()):
            todo += [some.apply(at) for at in range(some.length()) if _is_plan(some.apply(at))]


def _is_plan(found: JavaObject) -> bool:
    return (hasattr(found, "getClass") and "plans.logical" in str(found.getClass().getName())) or _unresolved(found)


def _unresolved(found: JavaObject) -> bool:
    return "catalyst.analysis.Unresolved" in str(found.getClass().getName())


def _names_of_with(node: JavaObject) -> list[str]:
    relations = node.cteRelations()
    return [relations.apply(at)._1() for at in range(relations.length())]


def _functions(node: JavaObject) -> list[str]:
    """The functions that the expressions of one operator call."""
    found: list[str] = []
    todo = [node.expressions().apply(at) for at in range(node.expressions().length())]
    while todo:
        each = todo.pop()
        if str(each.getClass().getSimpleName()) == "UnresolvedFunction":
            name = each.nameParts()
            found.append(".".join(str(name.apply(at)) for at in range(name.length())))
        children = each.children()
        todo += [children.apply(at) for at in range(children.length())]
    return found


def _check_function(session: SparkSession, name: str) -> None:
    if name.lower() not in _allowed(session):
        raise SqlRefused(why=f"the function {name} is not one that a statement may use")


def _allowed(session: SparkSession) -> set[str]:
    """The names of Spark's functions that a statement may use."""
    if not _known:
        infos = session._jvm.org.apache.spark.sql.api.python.PythonSQLUtils.listBuiltinFunctionInfos()  # type: ignore[union-attr]
        _known.update(str(info.getName()).lower() for info in infos if str(info.getGroup()) in _GROUPS)
    return _known


_known: set[str] = set()
