"""Message types: a name and typed fields, so that every capability can see every message."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any

from postroom.errors import BodyMismatch, KeyInvalid, TypeInvalid
from postroom.limits import DECIMAL_EXPONENT_MAX
from postroom.model.key import key_number, key_text
from postroom.model.xmltext import in_xml


class Kind(StrEnum):
    """What a field holds."""

    STRING = "string"
    INT = "int"
    DECIMAL = "decimal"
    FLOAT = "float"
    BOOLEAN = "boolean"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    KEY = "key"


#: A field's value in Python; a list field holds a tuple of them, an empty field None.
Scalar = str | int | Decimal | float | bool | date | time | datetime
FieldValue = Scalar | tuple[Scalar, ...] | None


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message type: its name and kind."""

    name: str
    kind: Kind = Kind.STRING
    many: bool = False
    required: bool = False

    @property
    def element(self) -> str:
        """The field's XML name: ``Meeting Date`` becomes ``Meeting_Date``."""
        return element_name(self.name)


@dataclass(frozen=True, slots=True)
class MessageType:
    """A message type: named and typed fields, the same for every feature."""

    name: str
    fields: tuple[Field, ...]
    # Each field as it is where it may be empty.
    _free: Mapping[str, Field] = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        seen: dict[str, str] = {}
        object.__setattr__(self, "_free", {field.name: replace(field, required=False) for field in self.fields})
        if not self.fields:
            raise TypeInvalid(type=self.name, why="a type needs at least one field")
        for name in (self.name, *(field.name for field in self.fields)):
            if not _NAME.fullmatch(name):
                raise TypeInvalid(type=self.name, why=f"{name!r} is not a name: letters, digits, blanks, '-', '_', '.'")
        for field in self.fields:
            if field.element in seen:
                raise TypeInvalid(
                    type=self.name, why=f"the fields {seen[field.element]!r} and {field.name!r} are alike"
                )
            seen[field.element] = field.name

    @property
    def element(self) -> str:
        """The type's XML name."""
        return element_name(self.name)

    def record(self, given: Mapping[str, Any]) -> dict[str, FieldValue]:
        """Convert plain values (JSON or text) to typed ones, in the order of the fields; unknown names are refused."""
        known = {field.name for field in self.fields}
        strange = sorted(set(given) - known)
        if strange:
            raise BodyMismatch(
                type=self.name, why=f"it has no field {strange[0]!r}; fields are: {', '.join(sorted(known))}"
            )
        return {field.name: self._value(field, given.get(field.name)) for field in self.fields}

    def value(self, name: str, given: Any) -> FieldValue:
        """Convert the value of one field; it may be empty, even if the field is required."""
        return self._value(self._free[name], given)

    def _value(self, field: Field, given: Any) -> FieldValue:
        if given is None or given == "" or given == []:
            if field.required:
                raise BodyMismatch(type=self.name, why=f"field {field.name!r} is required")
            return "" if given == "" and field.kind is Kind.STRING and not field.many else None
        if field.many:
            return tuple(self._scalar(field, item) for item in (given if isinstance(given, list) else [given]))
        return self._scalar(field, given)

    def _scalar(self, field: Field, given: Any) -> Scalar:
        try:
            value: Scalar = _READERS[field.kind](given)
        except (ValueError, TypeError, InvalidOperation, OverflowError):
            raise BodyMismatch(
                type=self.name, why=f"field {field.name!r} takes {_EXAMPLES[field.kind]}, not {given!r}"
            ) from None
        return value


_NAME = re.compile(r"[A-Za-z_](?:[A-Za-z0-9 ._-]*[A-Za-z0-9._-])?")


def scalars(kind: Kind, given: Any) -> tuple[Scalar, ...]:
    """The values of a field converted to a kind; values that cannot be converted are left out.

    For fields whose kind has changed since.
    """
    items = given if isinstance(given, list) else [] if given is None or given == "" else [given]
    parts: list[Scalar] = []
    for item in items:
        for candidate in (item, text(item)):
            try:
                parts.append(_READERS[kind](candidate))
                break
            except (ValueError, TypeError, InvalidOperation, OverflowError):
                continue
    return tuple(parts)


def element_name(name: str) -> str:
    return name.replace(" ", "_")


def plain(value: FieldValue) -> Any:
    """A field's value for JSON; values that JSON cannot represent exactly become strings."""
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return format(value, "f") if isinstance(value, Decimal) else value.isoformat()


def text(value: FieldValue) -> str:
    """A field's value as text for XML and lines."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(plain(value))


def _string(given: Any) -> str:
    """A string; raises for characters that XML does not allow, so that all views can have it."""
    if not isinstance(given, str) or not in_xml(given):
        raise TypeError
    return given


def _int(given: Any) -> int:
    if isinstance(given, str):
        return int(_like(_INT, given))
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError
    return given


def _decimal(given: Any) -> Decimal:
    """A decimal in XML's notation; a JSON exponent is expanded."""
    if isinstance(given, str):
        return Decimal(_like(_DECIMAL, given))
    if isinstance(given, bool) or not isinstance(given, (int, float, Decimal)):
        raise TypeError
    number = Decimal(str(given))
    if not number.is_finite() or abs(number.adjusted()) > DECIMAL_EXPONENT_MAX:
        raise ValueError
    return Decimal(format(number, "f"))


def _float(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float, Decimal, str)):
        raise TypeError
    number = float(_like(_NUMBER, given) if isinstance(given, str) else given)
    if number - number != 0:
        raise ValueError
    return number


def _boolean(given: Any) -> bool:
    if isinstance(given, bool):
        return given
    if given not in ("true", "false"):
        raise ValueError
    return bool(given == "true")


def _key(given: Any) -> str:
    try:
        return key_text(key_number(_string(given)))
    except KeyInvalid:
        raise ValueError from None


def _like(pattern: re.Pattern[str], given: str) -> str:
    """Raise unless a value has the canonical notation; Python alone would accept underscores and week dates."""
    if not pattern.fullmatch(given):
        raise ValueError
    return given


_INT = re.compile(r"[+-]?[0-9]{1,4000}")
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,5})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ZONE = r"(Z|[+-](0[0-9]|1[0-3]):[0-5][0-9]|[+-]14:00)?"  # those that XML has
_CLOCK = rf"[0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}}(\.[0-9]{{1,6}})?)?{_ZONE}"
_TIME = re.compile(_CLOCK)
_MOMENT = re.compile(f"{_DATE.pattern}T{_CLOCK}")

_READERS: Mapping[Kind, Any] = {
    Kind.STRING: _string,
    Kind.INT: _int,
    Kind.DECIMAL: _decimal,
    Kind.FLOAT: _float,
    Kind.BOOLEAN: _boolean,
    Kind.DATE: lambda given: date.fromisoformat(_like(_DATE, _string(given))),
    Kind.TIME: lambda given: time.fromisoformat(_like(_TIME, _string(given))),
    Kind.TIMESTAMP: lambda given: datetime.fromisoformat(_like(_MOMENT, _string(given))),
    Kind.KEY: _key,
}

_EXAMPLES: Mapping[Kind, str] = {
    Kind.STRING: "text",
    Kind.INT: "a whole number such as 42",
    Kind.DECIMAL: "a number such as 12.50",
    Kind.FLOAT: "a number such as 2.5e3",
    Kind.BOOLEAN: "true or false",
    Kind.DATE: "a date such as 2026-11-30",
    Kind.TIME: "a time such as 14:30:00",
    Kind.TIMESTAMP: "a moment such as 2026-11-30T14:30:00Z",
    Kind.KEY: "a message key such as 00004.00001",
}
