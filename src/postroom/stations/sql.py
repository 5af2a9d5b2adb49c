"""Spark SQL over a station's temporary tables, and over nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from typing import Any

from py4j.java_gateway import JavaObject, is_instance_of
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
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
from postroom.errors import ArgumentInvalid, SqlRefused
from postroom.limits import INT_MAX, INT_MIN, QUERY_SECONDS_MAX, SQL_BYTES_MAX, SQL_CHARS_MAX, SQL_ROWS_MAX, SQL_SECONDS
from postroom.model.body import is_text
from postroom.model.key import key_text
from postroom.model.types import Kind, Scalar, element_name, scalars, text
from postroom.stations.catalog import Edition
from postroom.stations.forms import FormField, Rule
from postroom.stations.running import Progress, Run
from postroom.store.albums import KeptImage

_DIGITS_MAX = 38  # of a decimal of Spark
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
    images: Callable[[str], Sequence[KeptImage]],
    spark: Callable[[], SparkSession],
    seconds: float = SQL_SECONDS,
    progress: Progress | None = None,
) -> Table:
    """Run a statement over temporary tables, each with the form that it was asked for by.

    A field's column has its name with ``_`` for blanks; ``key`` and ``place`` are columns, too. What takes longer than
    ``seconds``, or is interrupted, is ended on Spark, too.
    """
    _check_size(statement, seconds)
    session = spark().newSession()  # views and settings of its own
    session.conf.set("spark.sql.runSQLOnFiles", "false")
    session.conf.set("spark.sql.variable.substitute", "false")  # ${env:…} would tell what is in our environment

    def work(run: Run[Table]) -> Table:
        used = _checked(session, statement, editions)
        for name in used:
            rows = list(_rows(editions[name], images(name)))
            types = schema(editions[name], rows)
            session.createDataFrame(_as_decimals(rows, types), types).createOrReplaceTempView(name)
        frame = session.sql(statement)
        for _, kind in _parts(frame._jdf.queryExecution().analyzed()):
            if kind in _FORBIDDEN:
                raise SqlRefused(why=f"it uses {kind}, which a query must not use")
        return _collected(frame, run)

    try:
        return Run(session, work).result(seconds, progress)
    except TimeoutError:
        why = f"it exceeded the limit of {seconds:g} seconds and was cancelled; postroom sql --timeout sets it"
        raise SqlRefused(why=why) from None
    except PySparkException as error:
        raise SqlRefused(why=one_line(error)) from error
    except Py4JError as error:  # Java gave up: too deep, or too large
        raise SqlRefused(why=f"Spark cannot evaluate it ({one_line(error)[:200]})") from error


def _check_size(statement: str, seconds: float) -> None:
    if not 0 < seconds <= QUERY_SECONDS_MAX:
        raise ArgumentInvalid(argument="timeout", why=f"more than 0 and at most {QUERY_SECONDS_MAX:.0f} seconds")
    if not isinstance(statement, str) or not is_text(statement):
        raise SqlRefused(why="it is no text")
    if len(statement) > SQL_CHARS_MAX:
        raise SqlRefused(why=f"it has more than {SQL_CHARS_MAX} characters")


def _collected(frame: DataFrame, run: Run[Table]) -> Table:
    """The answer, as long as it is not too large for anyone to hold."""
    found: list[tuple[Any, ...]] = []
    size = 0
    for row in frame.limit(SQL_ROWS_MAX + 1).toLocalIterator():
        run.go_on()
        found.append(tuple(row))
        size += sum(_size(cell) for cell in row)
        if len(found) > SQL_ROWS_MAX:
            raise SqlRefused(why=f"the answer has more than {SQL_ROWS_MAX} rows")
        if size > SQL_BYTES_MAX:
            raise SqlRefused(why=f"the answer has more than {SQL_BYTES_MAX} characters")
    return Table(tuple(frame.columns), tuple(found))


def _size(cell: Any) -> int:
    if isinstance(cell, (list, tuple, dict)):
        return 8 + sum(map(_size, cell))
    return len(cell) if isinstance(cell, (str, bytes, bytearray)) else 8


def schema(edition: Edition, rows: Sequence[tuple[Any, ...]] = ()) -> StructType:
    """The columns of a table. A number's has as many digits as the numbers in it need."""
    fields = [StructField("key", StringType()), StructField("place", StringType())]
    for place, (name, field) in enumerate(_columns(edition).items(), 2):
        kind = _TYPES.get(field.kind, StringType())
        if field.kind in (Kind.INT, Kind.DECIMAL):
            kind = _wide_enough(kind, name, [row[place] for row in rows])
        fields.append(StructField(name, ArrayType(kind) if field.many else kind))
    return StructType(fields)


def _as_decimals(rows: Sequence[tuple[Any, ...]], types: StructType) -> list[tuple[Any, ...]]:
    """Whole numbers as the columns have them that are wider than those of SQL's own."""
    wide = {place for place, each in enumerate(types) if isinstance(_element(each.dataType), DecimalType)}
    return [tuple(_decimal(cell) if place in wide else cell for place, cell in enumerate(row)) for row in rows]


def _element(kind: DataType) -> DataType:
    return kind.elementType if isinstance(kind, ArrayType) else kind


def _decimal(cell: Any) -> Any:
    if isinstance(cell, list):
        return [_decimal(each) for each in cell]
    return Decimal(cell) if isinstance(cell, int) else cell


def _wide_enough(kind: DataType, name: str, cells: Sequence[Any]) -> DataType:
    """Messages of older versions may have larger whole numbers than are let in now; decimals have any size."""
    numbers = [
        Decimal(each)
        for cell in cells
        for each in (cell if isinstance(cell, list) else [cell])
        if each is not None and not _fits(kind, each)
    ]
    if not numbers:
        return kind
    ahead = max(max(0, each.adjusted() + 1) for each in numbers)
    least = kind.scale if isinstance(kind, DecimalType) and ahead + kind.scale <= _DIGITS_MAX else 0
    behind = max([least, *(-min(0, int(each.as_tuple().exponent)) for each in numbers)])
    if ahead + behind > _DIGITS_MAX:
        raise SqlRefused(why=f"a number of {name} has more than the {_DIGITS_MAX} digits that SQL can compare exactly")
    return DecimalType(_DIGITS_MAX, behind)


def _fits(kind: DataType, number: Any) -> bool:
    if not isinstance(kind, DecimalType):
        return bool(INT_MIN <= number <= INT_MAX)
    exponent = int(Decimal(number).as_tuple().exponent)
    return -exponent <= kind.scale and Decimal(number).adjusted() < kind.precision - kind.scale


def _columns(edition: Edition) -> dict[str, FormField]:
    """The fields by the names of their columns: two that SQL would not tell apart get a number."""
    found: dict[str, FormField] = {}
    taken = {"key", "place"}
    for field in edition.form.fields:
        if field.kind is Kind.KEY and field.rule is Rule.AUTOMATIC:  # it is the key
            continue
        name, number = element_name(field.name), 2
        while name.lower() in taken:
            name, number = f"{element_name(field.name)}_{number}", number + 1
        taken.add(name.lower())
        found[name] = field
    return found


def _rows(edition: Edition, kept: Sequence[KeptImage]) -> Iterator[tuple[Any, ...]]:
    """What images say, by the form of the table; what a message of an older version does not have is empty."""
    columns = list(_columns(edition).values())
    for image in kept:
        said = json.loads(image.body)
        cells = [_cells(field.kind, scalars(field.kind, said.get(field.name))) for field in columns]
        ours = [some if field.many else some[0] if some else None for field, some in zip(columns, cells, strict=True)]
        yield (key_text(image.key), image.place, *ours)


def _cells(kind: Kind, some: Sequence[Scalar]) -> list[Any]:
    return [each if kind in _TYPES else text(each) for each in some]


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
    parts = list(_parts(session._jsparkSession.sessionState().sqlParser().parsePlan(statement)))
    tables = {name.lower(): name for name in known}
    local = {name.lower() for part, kind in parts if kind == "UnresolvedWith" for name in _names_of_with(part)}
    used: dict[str, None] = {}
    for part, kind in parts:
        if kind not in _ALLOWED:
            raise SqlRefused(why=f"only queries of temporary tables are run, and nothing with {kind}")
        if kind == "UnresolvedRelation":
            name = str(part.tableName()).strip("`")
            if name.lower() in tables:
                used[tables[name.lower()]] = None
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
