"""The message: what every capability sends, finds, processes and undoes.

A ``Draft`` is what a sender gives; a ``Message`` is what the store gave back. Both are immutable.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any, NamedTuple

from postroom.errors import PropertyInvalid, TextInvalid
from postroom.limits import PROPERTIES_MAX, PROPERTY_BYTES_MAX
from postroom.model.body import Format, check_body, json_text
from postroom.model.moment import to_iso

#: A property is a typed atomic value, fixed for the message's lifetime.
Value = str | int | float | bool | None

NO_PROPERTIES = "{}"


class Draft(NamedTuple):
    """A message before it has a key, checked."""

    body: str
    format: str  # a Format's value: drivers bind plain strings faster than enumerations
    type: str | None
    properties: str  # canonical JSON

    @classmethod
    def of(
        cls,
        body: Any,
        format: str | Format | None = None,
        type: str | None = None,
        properties: Mapping[str, Value] | None = None,
    ) -> Draft:
        """Check a body and its properties. A string is text unless ``format`` says so; a dict or list is JSON."""
        return cls.many((body,), format, type, properties)[0]

    @classmethod
    def many(
        cls,
        bodies: Iterable[Any],
        format: str | Format | None = None,
        type: str | None = None,
        properties: Mapping[str, Value] | None = None,
    ) -> list[Draft]:
        """The drafts of many bodies that are alike in everything else."""
        said = check_properties(properties) if properties else NO_PROPERTIES
        form = _format_of(format)
        plain = form.value
        drafts = []
        for body in bodies:
            if isinstance(body, str):
                check_body(body, form)
                drafts.append(cls(body, plain, type, said))
            else:
                text, its = _text_of(body, format)
                check_body(text, its)
                drafts.append(cls(text, its.value, type, said))
        return drafts


@dataclass(frozen=True, slots=True)
class Message:
    """A stored message, as it was read in one moment."""

    key: str
    queue: str
    format: Format
    body: str
    created: datetime
    processed: datetime | None = None
    type: str | None = None
    properties: Mapping[str, Value] = field(default_factory=dict)
    cause: str | None = None
    corrupt: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The one JSON shape of a message."""
        shape: dict[str, Any] = {
            "key": self.key,
            "queue": self.queue,
            "type": self.type,
            "format": self.format.value,
            "body": self.body,
            "properties": dict(self.properties),
            "created": to_iso(self.created),
            "processed": to_iso(self.processed) if self.processed else None,
            "cause": self.cause,
        }
        if self.corrupt:
            shape["corrupt"] = True
        return shape


def message_hash(key: int, created: int, cause: int | None, draft: Draft) -> bytes:
    """All that never changes about a message, in 16 bytes; checked whenever it is read."""
    body, form, type, properties = draft
    head = f"{key}\0{created}\0{cause}\0{form}\0{type or ''}\0{properties}\0{body}"
    return blake2b(head.encode(), digest_size=16).digest()


def check_properties(properties: Mapping[str, Value]) -> str:
    """The canonical JSON of a message's properties, or a refusal that names the bad one."""
    if len(properties) > PROPERTIES_MAX:
        raise PropertyInvalid(name=sorted(map(str, properties))[0], why=f"more than {PROPERTIES_MAX} properties")
    for name, value in properties.items():
        if not isinstance(name, str) or not name or name.strip() != name or not name.isprintable():  # no surrogates
            raise PropertyInvalid(name=name, why="a name is printable text without blanks around it")
        if not (value is None or isinstance(value, (str, int, float, bool))):
            raise PropertyInvalid(name=name, why="a value is a string, a number, a boolean or null")
        if isinstance(value, str) and ("\0" in value or not _encodable(value)):
            raise PropertyInvalid(name=name, why="the value is not text")
        if isinstance(value, float) and value - value != 0:
            raise PropertyInvalid(name=name, why="the value is not a finite number")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise PropertyInvalid(name=name, why="the whole number does not fit into 64 bits")
        if len(f"{name}{value}".encode()) > PROPERTY_BYTES_MAX:
            raise PropertyInvalid(name=name, why=f"name and value have more than {PROPERTY_BYTES_MAX} bytes")
    return json.dumps(dict(sorted(properties.items())), ensure_ascii=False, separators=(",", ":"))


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text_of(body: Any, format: str | Format | None) -> tuple[str, Format]:
    if isinstance(body, (bytes, bytearray)):
        try:
            return body.decode(), _format_of(format)
        except UnicodeDecodeError as error:
            raise TextInvalid(why=f"byte {error.start + 1} is not UTF-8") from None
    return json_text(body), _format_of(format or Format.JSON)


def _format_of(format: str | Format | None) -> Format:
    if format is None:
        return Format.TEXT
    try:
        return Format(format)
    except ValueError:
        raise TextInvalid(why=f"{format!r} is not a format; use text, json or xml") from None
