"""Bodies as values of Python types: dataclasses, TypedDicts, pydantic models, and collections of them.

``plain`` converts a value to JSON, ``fitted`` JSON to a value. An error has its place in the body.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints, is_typeddict
from uuid import UUID

from postroom.errors import BodyMismatch

_WHOLE = "body"  # a type that only its whole has a name for
_ANYTHING = (Any, object, None)
_LEAVES = (str, int, float, bool, type(None))
_COLLECTIONS = (list, tuple, set, frozenset)
_TEXTS: dict[type, Callable[[str], Any]] = {
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    time: time.fromisoformat,
    UUID: UUID,
    Decimal: Decimal,
}


def types_within(kind: Any, known: set[Any] | None = None) -> set[Any]:
    """The types inside a type, including itself; raises TypeError for one that bodies cannot have."""
    known = set() if known is None else known
    if kind in known:
        return known
    known.add(kind)
    for part in _parts(kind):
        types_within(part, known)
    return known


def _parts(kind: Any) -> Iterable[Any]:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType, dict, Mapping, *_COLLECTIONS):
        return [part for part in get_args(kind) if part is not Ellipsis]
    if is_typeddict(kind):
        return get_type_hints(kind).values()
    if (
        origin is Literal
        or kind in (*_ANYTHING, *_LEAVES, *_COLLECTIONS, *_TEXTS, dict)
        or hasattr(kind, "model_validate")
    ):
        return ()
    if isinstance(kind, type) and is_dataclass(kind):
        return _taken(kind).values()
    if isinstance(kind, type) and issubclass(kind, Enum):
        return ()
    raise TypeError(f"{getattr(kind, '__name__', kind)} is no type that a body can have")


def loosened(value: Any) -> Any:
    """The value with floats instead of decimals, as for untyped JSON."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dict):
        return {name: loosened(item) for name, item in value.items()}
    return [loosened(item) for item in value] if isinstance(value, list) else value


def plain(value: Any) -> Any:
    """Convert a value that JSON does not know; for ``json.JSONEncoder``."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, (UUID, Decimal)):
        return str(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)  # the same set is always the same text
    if hasattr(value, "model_dump"):  # a pydantic model
        return value.model_dump(mode="json")
    raise TypeError(f"a value of type {type(value).__name__} cannot be written as JSON")


def fitted(value: Any, kind: Any) -> Any:
    """Convert a JSON value to a type; the error says where it does not fit.

    Decimals in the input keep all digits where a decimal is wanted.
    """
    try:
        return _fitted(value, kind, "")
    except BodyMismatch as misfit:
        if misfit.facts["type"] != _WHOLE:
            raise
        raise BodyMismatch(type=_named(kind), why=misfit.facts["why"]) from None


def _named(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) and get_origin(kind) is None else str(kind)


def _fitted(value: Any, kind: Any, place: str) -> Any:
    if kind in _ANYTHING:
        return loosened(value)
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _one_of(value, get_args(kind), place)
    if origin is Literal:
        return value if value in get_args(kind) else _misfit(place, f"one of {get_args(kind)}", value)
    if origin in _COLLECTIONS or kind in _COLLECTIONS:
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
        return _record(value, _taken(kind), required, kind, place)
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(value)
        except ValueError:
            _misfit(place, f"one of {[member.value for member in kind]}", value)
    if kind in _TEXTS:
        return _from_text(value, kind, place)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is float and isinstance(value, Decimal):
        return float(value)
    if kind in _LEAVES:
        fits = isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool)
        return value if fits else _misfit(place, kind.__name__, value)
    raise TypeError(f"{kind} is no type that a body can have")


def _taken(kind: Any) -> dict[str, Any]:
    """The types of a dataclass's constructor parameters, by name."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind) if field.init}


def _model(value: Any, kind: Any, place: str) -> Any:
    value = loosened(value)
    try:
        if hasattr(kind, "model_validate_json"):  # by the rules for JSON: a strict model takes a date from a text
            return kind.model_validate_json(json.dumps(value))
        return kind.model_validate(value)
    except ValueError as error:  # pydantic's own, which says where
        told = error.errors()[0] if hasattr(error, "errors") else {"loc": (), "msg": str(error)}
        where = "".join(f"/{part}" for part in told["loc"])
        raise BodyMismatch(type=kind.__name__, why=f"{place}{where or '/'}: {told['msg']}") from None


def _from_text(value: Any, kind: type, place: str) -> Any:
    number = kind is Decimal and isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
    if not (isinstance(value, str) or number):
        _misfit(place, kind.__name__, value)
    try:
        return _TEXTS[kind](str(value))
    except (ValueError, InvalidOperation):
        _misfit(place, kind.__name__, value)


def _one_of(value: Any, kinds: tuple[Any, ...], place: str) -> Any:
    within: list[BodyMismatch] = []
    for kind in kinds:
        try:
            return _fitted(value, kind, place)
        except BodyMismatch as refusal:
            if not str(refusal.facts["why"]).startswith(f"{place or '/'}: "):
                within.append(refusal)
    if len(within) == 1:  # it was meant, and the fault is inside
        raise within[0]
    return _misfit(place, " or ".join(getattr(kind, "__name__", str(kind)) for kind in kinds), value)


def _sequence(value: Any, origin: Any, kinds: tuple[Any, ...], place: str) -> Any:
    if not isinstance(value, list):
        _misfit(place, "a list", value)
    if origin is tuple and kinds and kinds[-1] is not Ellipsis:
        if len(kinds) != len(value):
            _misfit(place, f"a list of {len(kinds)}", value)
        return tuple(
            _fitted(item, kind, f"{place}/{n}") for n, (item, kind) in enumerate(zip(value, kinds, strict=True))
        )
    kind = kinds[0] if kinds else Any
    return origin(_fitted(item, kind, f"{place}/{number}") for number, item in enumerate(value))


def _mapping(value: Any, kinds: tuple[Any, ...], place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        _misfit(place, "an object", value)
    named, kind = kinds if len(kinds) == 2 else (str, Any)
    return {
        _name(name, named, f"{place}/{name}"): _fitted(item, kind, f"{place}/{name}") for name, item in value.items()
    }


def _name(name: str, kind: Any, place: str) -> Any:
    """Convert a member name, which is text in JSON, to a key type such as a number."""
    if kind is not int:
        return _fitted(name, kind, place)
    try:
        return int(name)
    except ValueError:
        _misfit(place, "int as its name", name)


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
        raise BodyMismatch(type=_WHOLE, why=f"{place}/{unknown[0]}: there is no such field")
    given = {name: _fitted(item, hints[name], f"{place}/{name}") for name, item in value.items()}
    try:
        return make(**given)
    except (ValueError, TypeError) as error:  # its own check, in __post_init__
        raise BodyMismatch(type=_WHOLE, why=f"{place or '/'}: {error}") from None


def _misfit(place: str, wanted: str, value: Any) -> NoReturn:
    raise BodyMismatch(type=_WHOLE, why=f"{place or '/'}: {wanted} is wanted, not {str(value)[:100]!r}")
