"""The canonical JSON of values, by functions that are compiled once for a type.

They agree with ``as_json`` and ``canonical``, and read only what these have written.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache, partial
from json.encoder import encode_basestring
from typing import Any

from postroom.flows.language.types import Bag, List, Scalar, Tuple, Type, Union
from postroom.flows.language.values import Tagged, as_json, label

Function = Callable[[Any], Any]
_TYPES = 500  # whose functions are kept


# --- reading ------------------------------------------------------------------------------------------------------


@lru_cache(_TYPES)
def reader(type: Type) -> Callable[[str], Any]:
    """A function that parses the canonical JSON of a value."""
    parsed, of_data = json.JSONDecoder().raw_decode, value_of_data(type)  # what loads calls, without its checks
    return lambda text: of_data(parsed(text)[0])


@lru_cache(_TYPES)
def value_of_data(type: Type) -> Function:
    """A function that makes a value from parsed JSON."""
    if isinstance(type, Scalar):
        return _SCALARS.get(type.name, _same)
    if isinstance(type, Bag | List):
        of = value_of_data(type.of)
        return lambda given: tuple(map(of, given))
    if isinstance(type, Union):
        tags = {str(tag.name): value_of_data(tag.type) for tag in type.tags}
        return lambda given: _tagged(tags, given)
    return _tuple_reader(type)


def _tuple_reader(type: Tuple) -> Function:
    names = [label(type, place) for place in range(len(type.fields))]
    fields = [value_of_data(field.type) for field in type.fields]
    changed = [(place, work) for place, work in enumerate(fields) if work is not _same]

    def read(given: dict[str, Any]) -> tuple[Any, ...]:
        values = [given[name] for name in names]
        for place, work in changed:
            values[place] = work(values[place])
        return tuple(values)

    return read


def _tagged(tags: dict[str, Function], given: dict[str, Any]) -> Tagged:
    ((tag, value),) = given.items()
    return Tagged(tag, tags[tag](value))


def _same(given: Any) -> Any:
    return given


_SCALARS: dict[str, Function] = {
    "float": float,
    "decimal": Decimal,
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
}


# --- writing ------------------------------------------------------------------------------------------------------


@lru_cache(_TYPES)
def writer(type: Type) -> Callable[[Any], str]:
    """A function that writes a value as canonical JSON."""
    if isinstance(type, Scalar):
        return _TEXTS.get(type.name, encode_basestring)
    if isinstance(type, Bag | List):
        of = writer(type.of)
        return lambda value: f"[{','.join(map(of, value))}]"
    if isinstance(type, Union):
        tags = {tag.name: (f"{{{encode_basestring(str(tag.name))}:", writer(tag.type)) for tag in type.tags}
        return lambda value: f"{tags[value.tag][0]}{tags[value.tag][1](value.value)}}}"
    return _tuple_writer(type)


def _tuple_writer(type: Tuple) -> Callable[[Any], str]:
    names = [encode_basestring(label(type, place)).replace("%", "%%") for place in range(len(type.fields))]
    form = f"{{{','.join(f'{name}:%s' for name in names)}}}"
    fields = [writer(field.type) for field in type.fields]
    return lambda value: form % tuple([work(part) for work, part in zip(fields, value, strict=True)])


def moment_text(value: datetime) -> str:
    """A moment as an event has it, without quotes."""
    return f"{value.isoformat(timespec='microseconds')[:-6]}Z"


_TEXTS: dict[str, Callable[[Any], str]] = {
    "int": int.__repr__,
    "boolean": lambda value: "true" if value else "false",
    "float": lambda value: float.__repr__(value + 0.0),
    "decimal": lambda value: f'"{value:f}"',
    "date": lambda value: f'"{value.isoformat()}"',
    "timestamp": lambda value: f'"{moment_text(value)}"',
}


@lru_cache(_TYPES)
def data_of_value(type: Type) -> Function:
    """A function that makes JSON data from a value."""
    return _DATA.get(type.name, _same) if isinstance(type, Scalar) else partial(as_json, type=type)


_DATA: dict[str, Function] = {
    "float": lambda value: value + 0.0,
    "decimal": lambda value: format(value, "f"),
    "date": date.isoformat,
    "timestamp": moment_text,
}
