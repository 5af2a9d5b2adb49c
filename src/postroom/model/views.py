"""The views of one message: lines, record, XML, tuple. Defined once, so that all capabilities agree.

A typed message may be stored as JSON, XML or text; whichever it is, ``record`` reads the same values from it.
"""

from __future__ import annotations

from typing import Any

from postroom.errors import BodyMismatch
from postroom.model.body import Format, parse_json
from postroom.model.types import FieldValue, MessageType, text
from postroom.model.xmltext import escaped, in_xml


def lines(body: str) -> list[str]:
    """The segments of a body: its lines. A final newline ends the last line and starts no other.

    >>> lines("first\\nsecond\\n")
    ['first', 'second']
    """
    return body.removesuffix("\n").split("\n")


def record(body: str, form: Format, type: MessageType) -> dict[str, FieldValue]:
    """The fields of a typed body, or a refusal that says what does not fit."""
    if form is Format.JSON:
        given = parse_json(body, exact=True)
        if not isinstance(given, dict):
            raise BodyMismatch(type=type.name, why="the JSON is not an object")
        return type.record(_by_name(given, type))
    if form is Format.XML:
        return type.record(_fields_of_xml(body, type))
    return type.record(_fields_of_lines(body, type))


def as_tuple(values: dict[str, FieldValue]) -> tuple[FieldValue, ...]:
    return tuple(values.values())


def as_xml(values: dict[str, FieldValue], type: MessageType) -> str:
    """``<Type><Field>…</Field></Type>``; an empty field has no element, a list one element per value."""
    parts = [f"<{type.element}>"]
    for field in type.fields:
        value = values[field.name]
        for item in value if isinstance(value, tuple) else () if value is None else (value,):
            shown = text(item)
            if not in_xml(shown):
                raise BodyMismatch(type=type.name, why=f"field {field.name!r} has a character that XML does not have")
            parts.append(f"<{field.element}>{escaped(shown)}</{field.element}>")
    return "".join((*parts, f"</{type.element}>"))


def as_lines(values: dict[str, FieldValue]) -> list[str]:
    """``Field: value``, one line per field, or per value of a list. Continuation lines are indented."""
    shown = []
    for name, value in values.items():
        for item in value if isinstance(value, tuple) else () if value is None else (value,):
            first, *more = text(item).split("\n")
            shown += [f"{name}: {first}", *(f" {line}" for line in more)]
    return shown


def _by_name(given: dict[str, Any], type: MessageType) -> dict[str, Any]:
    """A JSON object by field name; names may have ``_`` for blanks, as events and SQL need."""
    names = {field.element: field.name for field in type.fields if field.element != field.name}
    if not names.keys() & given.keys():
        return given
    values: dict[str, Any] = {}
    for name, value in given.items():
        if names.get(name, name) in values:
            raise BodyMismatch(type=type.name, why=f"field {names.get(name, name)!r} appears twice")
        values[names.get(name, name)] = value
    return values


def elements(body: str, of: str) -> tuple[str, list[tuple[str, str]]]:
    """The name of an XML body's root, and its fields: elements in the root, each with a text and nothing else."""
    from postroom.model.xml import parse_xml

    root = parse_xml(body)
    if root.attrib or (root.text or "").strip():
        raise BodyMismatch(type=of, why=f"<{root.tag}> has more than the elements of its fields")
    for child in root:
        if len(child) or child.attrib or (child.tail or "").strip():
            raise BodyMismatch(type=of, why=f"<{child.tag}> has more than text inside or beside it")
    return root.tag, [(child.tag, child.text or "") for child in root]


def _fields_of_xml(body: str, type: MessageType) -> dict[str, Any]:
    root, pairs = elements(body, type.name)
    if root != type.element:
        raise BodyMismatch(type=type.name, why=f"the root element is <{root}>, not <{type.element}>")
    names = {field.element: field for field in type.fields}
    given: dict[str, Any] = {}
    for name, value in pairs:
        known = names.get(name)
        _collect(given, known.name if known else name, value, many=bool(known and known.many), type=type)
    return given


def _fields_of_lines(body: str, type: MessageType) -> dict[str, Any]:
    many = {field.name for field in type.fields if field.many}
    pairs: list[tuple[str, str]] = []
    for number, line in enumerate(lines(body) if body else (), 1):
        name, colon, value = line.partition(":")
        if line.startswith(" ") and pairs:
            pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]}\n{line[1:]}")
        elif colon:
            pairs.append((name.strip(), value.removeprefix(" ")))
        else:
            raise BodyMismatch(type=type.name, why=f"line {number} is not 'Field: value'")
    given: dict[str, Any] = {}
    for name, value in pairs:
        _collect(given, name, value, many=name in many, type=type)
    return given


def _collect(given: dict[str, Any], name: str, value: str, *, many: bool, type: MessageType) -> None:
    if many:
        given.setdefault(name, []).append(value)
    elif name in given:
        raise BodyMismatch(type=type.name, why=f"field {name!r} appears twice")
    else:
        given[name] = value
