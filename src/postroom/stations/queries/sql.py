"""Spark SQL over a station's temporary tables, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from typing import Any

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

from postroom.engine.bounded_process import BoundedProcesses, Ended
from postroom.errors import SqlRefused
from postroom.limits import INT_MAX, INT_MIN, SQL_BYTES_MAX, SQL_CHARS_MAX, SQL_ROWS_MAX, SQL_SECONDS
from postroom.model.body import is_text
from postroom.model.key import key_text
from postroom.model.progress import OnProgress
from postroom.model.types import Kind, Scalar, element_name, scalars, text
from postroom.stations.forms.catalog import Edition
from postroom.stations.forms.form import FormField, Rule
from postroom.stations.queries.cells import packed, unpacked
from postroom.stations.queries.timeouts import check_timeout
from postroom.store.tables.images import KeptImage

_DIGITS_MAX = 38  # of a decimal of Spark
_TYPES: Mapping[Kind, DataType] = {
    Kind.INT: LongType(),
    Kind.DECIMAL: DecimalType(38, 10),
    Kind.FLOAT: DoubleType(),
    Kind.BOOLEAN: BooleanType(),
    Kind.DATE: DateType(),
    Kind.TIMESTAMP: TimestampType(),
}


@dataclass(frozen=True, slots=True)
class SqlResult:
    """The result of a statement."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def as_dict(self) -> dict[str, Any]:
        return {"columns": list(self.columns), "rows": [[_plain(cell) for cell in row] for row in self.rows]}


_processes = BoundedProcesses("postroom.stations.queries.sql_process")


def ask(
    statement: str,
    editions: Mapping[str, Edition],
    images: Callable[[str], Sequence[KeptImage]],
    seconds: float = SQL_SECONDS,
    progress: OnProgress | None = None,
) -> SqlResult:
    """Run a statement over temporary tables, each with the form of its query.

    A column is named like its field, with ``_`` for blanks; ``key`` and ``place`` are columns, too. It runs in a
    separate process, which is killed after ``seconds``, with too much memory, or at an interrupt.
    """
    _check_size(statement, seconds)
    tables = {}
    for name in _asked([seconds, "tables", statement, list(editions)])["tables"]:
        rows = list(_rows(editions[name], images(name)))
        types = schema(editions[name], rows)
        tables[name] = (types.json(), packed(_as_decimals(rows, types)))
    answer = _asked([seconds, "run", statement, tables, SQL_ROWS_MAX, SQL_BYTES_MAX], progress)
    return SqlResult(tuple(answer["columns"]), tuple(tuple(unpacked(row)) for row in answer["rows"]))


def _asked(request: list[Any], progress: OnProgress | None = None) -> dict[str, Any]:
    def heard(news: bytes) -> None:
        if progress is not None:
            progress(*json.loads(news))

    try:
        tries = 2 if request[1] == "tables" else 1  # a statement that ends Java is not run again
        answer: dict[str, Any] = json.loads(_processes.ask(json.dumps(request).encode(), heard, tries=tries))
    except Ended as end:
        if end.in_time:
            raise SqlRefused(why="it exceeded the memory limit of 1 GiB, and was ended") from None
        why = f"it exceeded the limit of {request[0]:g} seconds, and was ended; postroom sql --timeout sets another"
        raise SqlRefused(why=why) from None
    if "refused" in answer:
        raise SqlRefused(why=answer["refused"])
    return answer


def _check_size(statement: str, seconds: float) -> None:
    check_timeout(seconds)
    if not isinstance(statement, str) or not is_text(statement):
        raise SqlRefused(why="it is no text")
    if len(statement) > SQL_CHARS_MAX:
        raise SqlRefused(why=f"it has more than {SQL_CHARS_MAX} characters")


def schema(edition: Edition, rows: Sequence[tuple[Any, ...]] = ()) -> StructType:
    """The columns of a table; decimals as wide as their values."""
    fields = [StructField("key", StringType()), StructField("place", StringType())]
    for place, (name, field) in enumerate(_columns(edition).items(), 2):
        kind = _TYPES.get(field.kind, StringType())
        if field.kind in (Kind.INT, Kind.DECIMAL):
            kind = _wide_enough(kind, name, [row[place] for row in rows])
        fields.append(StructField(name, ArrayType(kind) if field.many else kind))
    return StructType(fields)


def _as_decimals(rows: Sequence[tuple[Any, ...]], types: StructType) -> list[tuple[Any, ...]]:
    """Convert integers for columns that are wider than SQL's integers."""
    wide = {place for place, field in enumerate(types) if isinstance(_element(field.dataType), DecimalType)}
    return [tuple(_decimal(cell) if place in wide else cell for place, cell in enumerate(row)) for row in rows]


def _element(kind: DataType) -> DataType:
    return kind.elementType if isinstance(kind, ArrayType) else kind


def _decimal(cell: Any) -> Any:
    if isinstance(cell, list):
        return [_decimal(item) for item in cell]
    return Decimal(cell) if isinstance(cell, int) else cell


def _wide_enough(kind: DataType, name: str, cells: Sequence[Any]) -> DataType:
    """The SQL type of a column: older versions of messages may have larger integers, and decimals any size."""
    numbers = [
        Decimal(number)
        for cell in cells
        for number in (cell if isinstance(cell, list) else [cell])
        if number is not None and not _fits(kind, number)
    ]
    if not numbers:
        return kind
    ahead = max(max(0, number.adjusted() + 1) for number in numbers)
    least = kind.scale if isinstance(kind, DecimalType) and ahead + kind.scale <= _DIGITS_MAX else 0
    behind = max([least, *(-min(0, int(number.as_tuple().exponent)) for number in numbers)])
    if ahead + behind > _DIGITS_MAX:
        raise SqlRefused(why=f"a number of {name} has more than the {_DIGITS_MAX} digits that SQL can compare exactly")
    return DecimalType(_DIGITS_MAX, behind)


def _fits(kind: DataType, number: Any) -> bool:
    if not isinstance(kind, DecimalType):
        return bool(INT_MIN <= number <= INT_MAX)
    exponent = int(Decimal(number).as_tuple().exponent)
    return -exponent <= kind.scale and Decimal(number).adjusted() < kind.precision - kind.scale


def _columns(edition: Edition) -> dict[str, FormField]:
    """The fields by column name; names that SQL cannot distinguish get a number."""
    columns: dict[str, FormField] = {}
    taken = {"key", "place"}
    for field in edition.form.fields:
        if field.kind is Kind.KEY and field.rule is Rule.AUTOMATIC:  # it is the key
            continue
        name, number = element_name(field.name), 2
        while name.lower() in taken:
            name, number = f"{element_name(field.name)}_{number}", number + 1
        taken.add(name.lower())
        columns[name] = field
    return columns


def _rows(edition: Edition, kept: Sequence[KeptImage]) -> Iterator[tuple[Any, ...]]:
    """The rows of images by the table's form; fields that an older version lacks are null."""
    columns = list(_columns(edition).values())
    for image in kept:
        fields = json.loads(image.body)
        cells = [_cells(field.kind, scalars(field.kind, fields.get(field.name))) for field in columns]
        ours = [some if field.many else some[0] if some else None for field, some in zip(columns, cells, strict=True)]
        yield (key_text(image.key), image.place, *ours)


def _cells(kind: Kind, some: Sequence[Scalar]) -> list[Any]:
    return [scalar if kind in _TYPES else text(scalar) for scalar in some]


def _plain(cell: Any) -> Any:
    if isinstance(cell, (list, tuple)):
        return [_plain(item) for item in cell]
    if cell is None or isinstance(cell, (bool, int, float, str)):
        return cell
    if isinstance(cell, Decimal):
        return f"{cell.normalize():f}"
    return cell.isoformat() if isinstance(cell, (date, time)) else str(cell)
