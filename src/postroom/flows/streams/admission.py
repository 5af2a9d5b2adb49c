"""Admission in SQL: which lines are certainly events of a type.

SQL parses a line, writes it again, and compares: so it is never more lenient than ``language/values.py``. All other
lines go to Python, which admits them or says why not.
"""

from __future__ import annotations

from collections.abc import Iterator

from postroom.flows.language.sql import Sql, fields_of, quoted, text
from postroom.flows.language.types import Scalar, Tuple, Type, Union

_RAW = {"int": "bigint", "boolean": "boolean", "float": "double"}
_DECIMAL = r"^-?(0|[1-9][0-9]{0,19})([.][0-9]{1,18})?$"
_ZERO = r"^-0([.]0*)?$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?Z$"
_FIRST_YEAR = "0001"  # of Python's dates


def raw_of(line: Sql, type: Type) -> Sql | None:
    """A line as parsed, before it is known to fit; None for types that only Python parses."""
    wanted = _raw_type(type) if isinstance(type, Tuple | Union) else None
    return None if wanted is None else f"from_json({line}, {text(wanted)})"


def fits(line: Sql, raw: Sql, again: Sql, type: Type) -> Sql:
    """Whether a line is certainly an event; ``again`` is the parsed line, written again."""
    # Blanks where most programs write them are no difference; in a text they are one, and then this is not equal.
    plain = f"replace(replace({line}, '\": ', '\":'), ', \"', ',\"')"
    same = [f"NOT contains({line}, {text(chr(92))})", f"({again} = {line} OR {again} = {plain})"]
    return f"coalesce({' AND '.join([*same, *_conditions(raw, type)])}, false)"


def event_of_raw(raw: Sql, type: Type) -> Sql:
    """The event of a line that fits."""
    if isinstance(type, Tuple | Union):
        fields = [f"{text(name)}, {event_of_raw(f'{raw}.{quoted(name)}', of)}" for name, of in fields_of(type)]
        return f"IF({raw} IS NULL, NULL, named_struct({', '.join(fields)}))"
    assert isinstance(type, Scalar)
    if type.name == "timestamp":
        return _moment(raw)
    return f"try_cast({raw} AS date)" if type.name == "date" else raw


def _raw_type(type: Type) -> str | None:
    if isinstance(type, Scalar):
        return _RAW.get(type.name, "string")
    if not isinstance(type, Tuple | Union) or not fields_of(type):
        return None
    parts = [(name, _raw_type(of)) for name, of in fields_of(type)]
    if any(of is None for _, of in parts):
        return None
    return f"struct<{', '.join(f'{quoted(name)}: {of}' for name, of in parts)}>"


def _conditions(value: Sql, type: Type) -> Iterator[Sql]:
    if isinstance(type, Union):
        tags = [f"{value}.{quoted(name)}" for name, _ in fields_of(type)]
        yield " + ".join(f"IF({tag} IS NULL, 0, 1)" for tag in tags) + " = 1"
        for tag, (_, of) in zip(tags, fields_of(type), strict=True):
            yield f"({tag} IS NULL OR ({' AND '.join(_conditions(tag, of))}))"
        return
    yield f"{value} IS NOT NULL"
    if isinstance(type, Tuple):
        for name, of in fields_of(type):
            yield from _conditions(f"{value}.{quoted(name)}", of)
        return
    assert isinstance(type, Scalar)
    if type.name == "float":  # where Java and Python write a number alike
        yield f"abs({value}) < 1e7 AND (abs({value}) >= 1e-3 OR {value} = 0) AND CAST({value} AS STRING) <> '-0.0'"
    elif type.name == "decimal":
        yield f"{value} RLIKE {text(_DECIMAL)} AND NOT {value} RLIKE {text(_ZERO)}"
    elif type.name == "date":
        yield f"{value} RLIKE {text(_DATE)} AND {value} >= '{_FIRST_YEAR}' AND try_cast({value} AS date) IS NOT NULL"
    elif type.name == "timestamp":
        yield f"{value} RLIKE {text(_TIME)} AND {value} >= '{_FIRST_YEAR}' AND {_moment(value)} IS NOT NULL"


def _moment(value: Sql) -> Sql:
    return f"try_cast(substring({value}, 1, length({value}) - 1) AS timestamp_ntz)"
