"""Attributes of CloudEvents in the headers of HTTP: percent-encoded, and in quotes if an older sender wrote them."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes

_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


def decoded(header: str) -> str:
    """The value of an attribute; raises ValueError if it is none. ``header`` is as HTTP has it, in Latin-1."""
    text = header.encode("latin-1").decode()  # what is not ASCII should have been encoded; if it is UTF-8, it is clear
    quoted = _QUOTED.fullmatch(text)
    if quoted is not None:
        text = _ESCAPED.sub(r"\1", quoted[1])
    return unquote_to_bytes(text).decode()


def encoded(value: str) -> bytes:
    """A value as a header has it: blanks, quotes, percent signs and what is not printable ASCII are encoded."""
    return "".join(letter if _is_plain(letter) else _percent(letter) for letter in value).encode("ascii")


def reference(path: str) -> str:
    """A path as the source of an event has it: a reference of URIs."""
    return quote(path)


def _is_plain(letter: str) -> bool:
    return "\x21" <= letter <= "\x7e" and letter not in '"%'


def _percent(letter: str) -> str:
    return "".join(f"%{byte:02X}" for byte in letter.encode())
