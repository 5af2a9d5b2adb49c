"""Messages as events: a typed or XML message enters a space as a tuple of its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from postroom.errors import EventInvalid
from postroom.flows.language.types import Bag, List, Scalar, Tuple, Type
from postroom.flows.language.values import Literal, Named, canonical, fitted, fitted_literal, parse_event
from postroom.model.body import Format
from postroom.model.message import Draft
from postroom.model.types import FieldValue, Kind, MessageType, plain, scalars
from postroom.model.views import elements, record

_NUMBERS = ("int", "float", "decimal")


def event(draft: Draft, type: Type, space: str, known: Mapping[str, MessageType]) -> Draft:
    """A message as an event of a type, in canonical form."""
    if draft.type is not None:
        fields = parse_typed(draft, known[draft.type], type, space)
    elif draft.format == "xml":
        fields = parse_elements(draft.body, type, space)
    else:
        fields = parse_event(draft.body, type, space)
    return draft._replace(body=canonical(fields, type), format="json", type=None)


def parse_typed(draft: Draft, known: MessageType, type: Type, space: str) -> Any:
    """The fields of a typed message (lines, XML or JSON) that the space has, by name."""
    wanted = {field.name for field in _tuple(type, space).fields}
    values = record(draft.body, Format(draft.format), known)
    elements = {field.element: values[field.name] for field in known.fields if field.element in wanted}
    return fitted({name: _json(value) for name, value in elements.items() if value is not None}, type, space)


def _json(value: FieldValue) -> Any:
    """A field's value as events have it in JSON, with exact numbers."""
    if isinstance(value, tuple):
        return [_json(item) for item in value]
    if isinstance(value, float):
        return Decimal(repr(value))
    return value if isinstance(value, Decimal) else plain(value)


def parse_elements(body: str, type: Type, space: str) -> Any:
    """An XML message without a type: each element is a field of the space; bags and lists have several."""
    wanted = _tuple(type, space)
    _, pairs = elements(body, space)
    return fitted_literal(Literal("tuple", tuple(_fields(pairs, wanted))), type, space)


def _fields(pairs: list[tuple[str, str]], type: Tuple) -> Iterator[Named]:
    several = {field.name: field.type for field in type.fields if isinstance(field.type, Bag | List)}
    singles = {field.name: field.type for field in type.fields if field.name not in several}
    for name, text in pairs:
        if name not in several:
            yield Named(name, _literal(text, singles.get(name)))
    for some, of in several.items():
        assert some is not None
        kind = "bag" if isinstance(of, Bag) else "list"
        yield Named(some, Literal(kind, tuple(_literal(text, of.of) for name, text in pairs if name == some)))


def _literal(text: str, type: Type | None) -> Literal:
    if isinstance(type, Scalar) and type.name in _NUMBERS:
        numbers = scalars(Kind.FLOAT if type.name == "float" else Kind.DECIMAL, text.strip())
        return Literal("number", _json(numbers[0])) if numbers else Literal("word", text)
    if isinstance(type, Scalar) and type.name == "boolean":
        return Literal("word", text.strip())
    return Literal("string", text)


def _tuple(type: Type, space: str) -> Tuple:
    if not isinstance(type, Tuple):
        raise EventInvalid(space=space, what="only a tuple has fields for those of a message", type=str(type))
    return type
