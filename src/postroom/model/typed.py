"""Bodies as values of Python types: dataclasses, TypedDicts, pydantic models, and what they are made of.

``plain`` makes JSON of a value, ``fitted`` a value of JSON. What does not fit is refused with its place in the body.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints, is_typeddict
from uuid import UUID

from postroom.errors import BodyMismatch

_TEXTS: dict[type, Callable[[str], Any]] = {
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    time: time.fromisoformat,
    UUID: UUID,
    Decimal: Decimal,
}


def plain(value: Any) -> Any:
    """What JSON has for a value that it does not know; for ``json.JSONEncoder``."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, (UUID, Decimal)):
        return str(value)
    if hasattr(value, "model_dump"):  # a pydantic model
        return value.model_dump(mode="json")
    raise TypeError(f"a value of type {type(value).__name__} cannot be written as JSON")


def fitted(value: Any, kind: Any, place: str = "") -> Any:
    """A JSON value as one of a type, or a refusal that says where it is none."""
    if kind is Any or kind is object or kind is None:
        return value
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _one_of(value, get_args(kind), place)
    if origin is Literal:
        return value if value in get_args(kind) else _misfit(place, f"one of {get_args(kind)}", value)
    if origin in (list, tuple, set, frozenset) or kind in (list, tuple, set, frozenset):
        return _sequence(value, origin or kind, get_args(kind), place)
    if origin in (dict, Mapping) or kind is dict:
        return _mapping(value, get_args(kind), place)
    return _single(value, kind, place)


def _single(value: Any, kind: Any, place: str) -> Any:
    if hasattr(kind, "model_validate"):
        return _model(value, kind, place)
    if is_typeddict(kind):
        return _record(value, get_type_hints(kind), kind.__required_keys__, dict, place)
    if isinstance(kind, type) and is_dataclass(kind):
        required = {
            field.name
            for field in fields(kind)
            if field.default is MISSING and field.default_factory is MISSING and field.init
        }
        return _record(value, get_type_hints(kind), required, kind, place)
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(value)
        except ValueError:
            _misfit(place, f"one of {[member.value for member in kind]}", value)
    if kind in _TEXTS:
        return _from_text(value, kind, place)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind in (str, int, float, bool, type(None)):
        fits = isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool)
        return value if fits else _misfit(place, kind.__name__, value)
    raise TypeError(f"{kind} is no type that a body can have")


def _model(value: Any, kind: Any, place: str) -> Any:
    try:
        return kind.model_validate(value)
    except ValueError as error:  # pydantic's own, which says where
        told = error.errors()[0] if hasattr(error, "errors") else {"loc": (), "msg": str(error)}
        where = "".join(f"/{part}" for part in told["loc"])
        raise BodyMismatch(type=kind.__name__, why=f"{place}{where or '/'}: {told['msg']}") from None


def _from_text(value: Any, kind: type, place: str) -> Any:
    number = kind is Decimal and isinstance(value, (int, float)) and not isinstance(value, bool)
    if not (isinstance(value, str) or number):
        _misfit(place, kind.__name__, value)
    try:
        return _TEXTS[kind](str(value))
    except (ValueError, InvalidOperation):
        _misfit(place, kind.__name__, value)


def _one_of(value: Any, kinds: tuple[Any, ...], place: str) -> Any:
    for kind in kinds:
        try:
            return fitted(value, kind, place)
        except BodyMismatch:
            continue
    return _misfit(place, " or ".join(getattr(kind, "__name__", str(kind)) for kind in kinds), value)


def _sequence(value: Any, origin: Any, kinds: tuple[Any, ...], place: str) -> Any:
    if not isinstance(value, list):
        _misfit(place, "a list", value)
    if origin is tuple and kinds and kinds[-1] is not Ellipsis:
        if len(kinds) != len(value):
            _misfit(place, f"a list of {len(kinds)}", value)
        return tuple(
            fitted(item, kind, f"{place}/{n}") for n, (item, kind) in enumerate(zip(value, kinds, strict=True))
        )
    kind = kinds[0] if kinds else Any
    return origin(fitted(item, kind, f"{place}/{number}") for number, item in enumerate(value))


def _mapping(value: Any, kinds: tuple[Any, ...], place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        _misfit(place, "an object", value)
    kind = kinds[1] if len(kinds) == 2 else Any
    return {name: fitted(item, kind, f"{place}/{name}") for name, item in value.items()}


def _record(
    value: Any, hints: Mapping[str, Any], required: set[str] | frozenset[str], make: Callable[..., Any], place: str
) -> Any:
    if not isinstance(value, dict):
        _misfit(place, "an object", value)
    missing = sorted(required - set(value))
    if missing:
        _misfit(f"{place}/{missing[0]}", "a value", None)
    unknown = sorted(set(value) - set(hints))
    if unknown:
        raise BodyMismatch(type="body", why=f"{place}/{unknown[0]}: there is no such field")
    return make(**{name: fitted(item, hints[name], f"{place}/{name}") for name, item in value.items()})


def _misfit(place: str, wanted: str, value: Any) -> NoReturn:
    raise BodyMismatch(type="body", why=f"{place or '/'}: {wanted} is wanted, not {str(value)[:100]!r}")
