"""A body for a page: XML and JSON indented, with folding parts and syntax colours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from postroom.errors import PostroomError
from postroom.limits import BODY_SHOWN_CHARS, BODY_SHOWN_DEPTH
from postroom.model.body import Format, json_text, parse_json
from postroom.model.message import Message
from postroom.model.xml import parse_xml

#: Its kind (``name``, ``value``, ``mark``), and what it says.
Piece = tuple[str, str]


@dataclass
class Part:
    """A line, or a folding part: first line, content, last line."""

    head: list[Piece]
    inside: list[Part] = field(default_factory=list)
    tail: list[Piece] = field(default_factory=list)


@dataclass(frozen=True)
class Shown:
    """``parts`` if the body could be parsed, else ``text``; shortened if it is long."""

    parts: list[Part] | None
    text: str
    is_cut: bool
    size: int


def shown(message: Message) -> Shown:
    if message.corrupt:
        return Shown(None, "", False, 0)
    return shown_text(message.body, message.format)


def shown_text(body: str, format: Format) -> Shown:
    size = len(body.encode(errors="surrogatepass"))
    if len(body) > BODY_SHOWN_CHARS:
        return Shown(None, body[:BODY_SHOWN_CHARS], True, size)
    parts: list[Part] | None = None
    try:
        if format is Format.XML:
            parts = [_element(parse_xml(body), 0)]
        elif format is Format.JSON:
            parts = [_value([], parse_json(body), [], 0)]
    except PostroomError:  # what is stored was checked; if it is damaged, it is shown as it is
        parts = None
    return Shown(parts, body, False, size)


def property_text(value: Any) -> str:
    """A property as it is written on pages, where one also looks for it.

    >>> property_text("true"), property_text(True), property_text(None), property_text(1.5)
    ('true', 'true', 'null', '1.5')
    """
    return value if isinstance(value, str) else json_text(value)


# --- XML ---


def _element(element: Any, depth: int) -> Part:
    name = _name(element.tag)
    head: list[Piece] = [("mark", "<"), ("name", name)]
    for key, value in element.attrib.items():
        head += [("mark", " "), ("name", _name(key)), ("mark", '="'), ("value", value), ("mark", '"')]
    tail: list[Piece] = [("mark", "</"), ("name", name), ("mark", ">")]
    text = (element.text or "").strip()
    if not len(element):
        return Part([*head, ("mark", ">"), ("value", text), *tail] if text else [*head, ("mark", "/>")])
    part = Part([*head, ("mark", ">")], tail=tail)
    if depth >= BODY_SHOWN_DEPTH:
        part.inside.append(Part([("value", "".join(element.itertext()))]))
        return part
    part.inside += [Part([("value", text)])] if text else []
    for child in element:
        part.inside.append(_element(child, depth + 1))
        after = (child.tail or "").strip()
        part.inside += [Part([("value", after)])] if after else []
    return part


def _name(tag: str) -> str:
    """A tag without its namespace, which the body's text shows."""
    return str(tag).rpartition("}")[2]


# --- JSON ---


def _value(before: list[Piece], value: Any, after: list[Piece], depth: int) -> Part:
    if not isinstance(value, (dict, list)) or not value or depth >= BODY_SHOWN_DEPTH:
        return Part([*before, ("value", json_text(value)), *after])
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    part = Part([*before, ("mark", opening)], tail=[("mark", closing), *after])
    part.inside += list(_members(value, depth + 1))
    return part


def _members(value: dict[str, Any] | list[Any], depth: int) -> Iterator[Part]:
    pairs: list[tuple[list[Piece], Any]]
    if isinstance(value, dict):
        pairs = [([("name", json_text(name)), ("mark", ": ")], member) for name, member in value.items()]
    else:
        pairs = [([], member) for member in value]
    for index, (before, member) in enumerate(pairs):
        comma: list[Piece] = [("mark", ",")] if index < len(pairs) - 1 else []
        yield _value(before, member, comma, depth)
