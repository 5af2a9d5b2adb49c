"""Attributes of CloudEvents 1.0: which are allowed, and how HTTP headers carry them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote_to_bytes

_NEEDED = ("specversion", "id", "source", "type")
_TEXTS = (*_NEEDED, "datacontenttype", "dataschema", "subject", "time")
_NAME = re.compile(r"[a-z0-9]+")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_INTEGER_MAX = 2**31
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")
_PLAIN = "".join(sign for sign in map(chr, range(0x21, 0x7F)) if sign not in '"%')  # in a header as they are


class NoEvent(ValueError):
    """``where`` names the attribute that is wrong or missing."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"this is no CloudEvent: {where}: {why}")
        self.where, self.why = where, why


def check(attributes: Mapping[str, Any]) -> None:
    """Raise ``NoEvent`` unless these are the attributes of an event."""
    for name in _NEEDED:
        if name not in attributes:
            raise NoEvent(name, "an event needs it")
    for name, value in attributes.items():
        if not is_name(name):
            raise NoEvent(ascii(name)[:60], "the name of an attribute has lower-case letters and digits")
        if name in _TEXTS and not (isinstance(value, str) and value):
            raise NoEvent(name, "a text is expected that is not empty")
        if not _is_value(value):
            raise NoEvent(name, "an attribute is a text, true, false, or an integer of 32 bits")
    if attributes["specversion"] != "1.0":
        raise NoEvent("specversion", "only 1.0 is known")
    if "time" in attributes and _TIME.fullmatch(attributes["time"]) is None:
        raise NoEvent("time", "a time is expected, as 2026-01-31T12:00:00Z")


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def _is_value(value: Any) -> bool:
    return isinstance(value, (str, bool)) or (isinstance(value, int) and -_INTEGER_MAX <= value < _INTEGER_MAX)


def decoded(name: str, header: str) -> str:
    """The value of an attribute from an HTTP header: Latin-1, percent-encoded, in quotes from older senders."""
    try:
        return _decoded(header)
    except ValueError:
        raise NoEvent(name, "it is not percent-encoded UTF-8") from None


def _decoded(header: str) -> str:
    text = header.encode("latin-1").decode()  # what is not ASCII should have been encoded; if it is UTF-8, it is clear
    quoted = _QUOTED.fullmatch(text)
    if quoted is not None:
        text = _ESCAPED.sub(r"\1", quoted[1])
    return unquote_to_bytes(text).decode()


def encoded(value: str) -> str:
    """A value for a header: blanks, quotes, percent signs and what is not printable ASCII are encoded."""
    return quote(value, safe=_PLAIN)


def reference(path: str) -> str:
    """A path as the source of an event: a URI reference."""
    return quote(path)
