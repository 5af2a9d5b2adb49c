"""Kinds of parameters of operations: how they are written in JSON, parsed, and described in OpenAPI."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from postroom.errors import RequestInvalid
from postroom.limits import DESCRIPTION_BYTES_MAX, FLOW_BYTES_MAX, INT_MAX, INT_MIN
from postroom.model.moment import iso_of, to_microseconds
from postroom.model.paths import printable, text_of
from postroom.queues.leases.leased import LeasedMessage
from postroom.spheres.sending import Compensation

Schema = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """``read`` gets the JSON value or the query text, and raises ``ValueError`` with what is expected."""

    schema: Schema
    read: Callable[[Any], Any]
    write: Callable[[Any], Any] = lambda value: value

    def checked(self, name: str, value: Any) -> Any:
        try:
            return self.read(value)
        except ValueError as error:
            raise RequestInvalid(where=name, why=str(error)) from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a string is expected")
    return value


def _names(value: Any) -> tuple[str, ...]:
    """A queue by its name, or a path with / between the names."""
    if isinstance(value, list) and value and all(isinstance(name, str) for name in value):
        return tuple(value)
    return (_text(value),)


_DIGITS_MAX = 400  # of a number; the method says which it takes


def _number(value: Any) -> int:
    if isinstance(value, str) and value.removeprefix("-").isascii() and value.removeprefix("-").isdigit():
        value = int(value) if len(value) <= _DIGITS_MAX else None
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError("a whole number is expected")
    return value


def _seconds(value: Any) -> float:
    try:
        value = float(value) if isinstance(value, str) else value
    except ValueError:
        value = None
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise ValueError("a number of seconds is expected")
    return float(value) if INT_MIN <= value <= INT_MAX else value  # the method says which it takes


def _span(value: Any) -> timedelta:
    try:
        return timedelta(seconds=_seconds(value))
    except OverflowError:
        raise ValueError("a shorter time is expected") from None


def _flag(value: Any) -> bool:
    if value in ("true", "false"):
        return bool(value == "true")
    if not isinstance(value, bool):
        raise ValueError("true or false is expected")
    return value


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("an object is expected")
    return value


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("a list of strings is expected")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("a list is expected")
    return value


def _objects(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError("a list of objects is expected")
    return value


def _files(value: Any) -> dict[str, str]:
    files = _object(value)
    for name, text in files.items():
        if not isinstance(text, str):
            raise ValueError("an object with the text of each file by its name is expected")
        is_short = len(name.encode(errors="replace")) <= 200  # file systems count bytes
        if name != os.path.basename(name) or name in ("", ".", "..") or not name.isprintable() or not is_short:
            raise ValueError(f"{name[:200]!r} is not the name of a file without its folder")
    return files


def _beside(value: Any) -> dict[str, str]:
    """Texts of files that other files refer to, by relative path."""
    files = _object(value)
    if not all(isinstance(text, str) for text in files.values()):
        raise ValueError("an object with the text of each file by its path is expected")
    return files


def _joined(names: str | Sequence[str]) -> str:
    """A queue by its name or path, as ``_names`` reads it."""
    return names if isinstance(names, str) else "/".join(names)


def _written_files(files: Sequence[Any]) -> dict[str, str]:
    paths = [Path(file) for file in files]
    most = max(DESCRIPTION_BYTES_MAX, FLOW_BYTES_MAX)
    texts = {printable(path.name): text_of(path, most) for path in paths}
    if len(texts) < len(paths):
        raise RequestInvalid(where="files", why="two files have the same name")
    return texts


def _moment(value: Any) -> datetime:
    try:
        return datetime.fromisoformat(_text(value))
    except ValueError:
        raise ValueError("a time such as 2026-01-31T12:00:00Z is expected") from None


def _written_moment(moment: datetime) -> str:
    """A time in UTC, as all that are printed; without a zone it is taken as UTC."""
    return iso_of(to_microseconds(moment))


def _lease(value: Any) -> float | Literal[True]:
    return True if value is True else _seconds(value)


class StationNamed(str):
    """A station by its name, as the writer of a form."""

    @property
    def name(self) -> str:
        return str(self)


def _compensation(value: Any) -> Compensation:
    members = _object(value)
    if "body" not in members or set(members) - _COMPENSATION:
        raise ValueError(f"an object with body, and of {', '.join(sorted(_COMPENSATION))}")
    for name, read in (("format", _text), ("type", _text), ("properties", _object)):
        try:
            if members.get(name) is not None:
                read(members[name])
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    queue = members.get("queue")
    return Compensation(**members | {"queue": None if queue is None else _names(queue)})


def _written_compensation(given: Any) -> dict[str, Any]:
    undo = given if isinstance(given, Compensation) else Compensation(given)
    members: dict[str, Any] = {name: getattr(undo, name) for name in _COMPENSATION}
    members["queue"] = None if undo.queue is None else _joined(undo.queue)
    return {name: value for name, value in members.items() if value is not None}


_COMPENSATION = {"body", "queue", "format", "type", "properties"}


class EndedLease:
    """A lease given by number, to be ended with others."""

    def __init__(self, lease: int) -> None:
        self.lease = lease
        self.ended = False


TEXT = Kind({"type": "string"}, _text)
NAMES = Kind({"type": "string", "minLength": 1}, _names, _joined)
QUEUES = Kind(
    {"type": "array", "items": {"type": "string"}, "minItems": 1},
    lambda value: [_names(queue) for queue in _list(value)],
    lambda queues: [_joined(queue) for queue in queues],
)
NUMBER = Kind({"type": "integer"}, _number)
SECONDS = Kind({"type": "number"}, _seconds)
FLAG = Kind({"type": "boolean"}, _flag)
ANYTHING = Kind({}, lambda value: value)
OBJECT = Kind({"type": "object"}, _object, lambda given: dict(given))
TEXTS = Kind({"type": "array", "items": {"type": "string"}}, _texts, lambda given: list(given))
KEYS = Kind(
    {"type": "array", "items": {"type": "string"}},
    _texts,
    lambda given: [given] if isinstance(given, str) else list(given),
)
LIST = Kind({"type": "array"}, _list, lambda given: list(given))
OBJECTS = Kind({"type": "array", "items": {"type": "object"}}, _objects, lambda given: [dict(item) for item in given])
BESIDE = Kind({"type": "object", "additionalProperties": {"type": "string"}}, _beside)
FILES = Kind({"type": "object", "additionalProperties": {"type": "string"}}, _files, _written_files)
MOMENT = Kind({"type": "string", "format": "date-time"}, _moment, _written_moment)
SPAN = Kind({"type": "number"}, _span, lambda span: span.total_seconds())
LEASE = Kind({"anyOf": [{"type": "number"}, {"const": True}]}, _lease)
LEASES = Kind(
    {"type": "array", "items": {"type": "integer"}},
    lambda value: [EndedLease(_number(lease)) for lease in _list(value)],
    lambda messages: [message.lease for message in messages],
)
COMPENSATION = Kind(
    {"type": "object", "required": ["body"], "properties": {name: {} for name in sorted(_COMPENSATION)}},
    _compensation,
    _written_compensation,
)
WRITER = Kind({"type": "string"}, lambda value: StationNamed(_text(value)), lambda station: station.name)
_BY_NAME = {"files": FILES, "compensation": COMPENSATION, "writer": WRITER}
_OF_TYPE: dict[Any, Kind] = {
    str: TEXT, bool: FLAG, int: NUMBER, float: SECONDS, datetime: MOMENT, timedelta: SPAN, Any: ANYTHING,
}  # fmt: skip
_MAPPINGS = (dict, Mapping)
_LISTS = (list, Sequence, Collection, Iterable, tuple)


def kind_of(name: str, hint: Any, *, several: bool = False) -> Kind | None:
    """The kind of a parameter from its annotation; None if it cannot be sent, like a function.

    ``several``: it is variadic.
    """
    kinds = [
        alternative
        for alternative in _alternatives(hint)
        if get_origin(alternative) is not Callable and alternative is not type(None)
    ]
    if name in _BY_NAME:
        return _BY_NAME[name]
    if several:
        return NAMES if name == "queue" else TEXTS if kinds == [str] else QUEUES
    lists = [kind for kind in kinds if get_origin(kind) in _LISTS or kind in _LISTS]
    if lists:
        inside = get_args(lists[0])[:1]
        if str in kinds:
            return KEYS if name == "keys" else NAMES
        return LEASES if inside == (LeasedMessage,) else TEXTS if inside == (str,) else _list_kind(name, inside)
    if any(get_origin(kind) in _MAPPINGS or kind in _MAPPINGS for kind in kinds):
        return OBJECT
    if any(get_origin(kind) is Literal for kind in kinds):
        return LEASE
    return next((_OF_TYPE[kind] for kind in kinds if kind in _OF_TYPE), None)


def may_be_none(hint: Any) -> bool:
    return type(None) in _alternatives(hint)


def _list_kind(name: str, inside: Sequence[Any]) -> Kind:
    if inside and (get_origin(inside[0]) in _MAPPINGS or inside[0] in _MAPPINGS):
        return OBJECTS
    return QUEUES if name == "queues" else LIST


def _alternatives(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) not in (Union, UnionType):
        return (hint,)
    return tuple(inside for get_arg in get_args(hint) for inside in _alternatives(get_arg))
