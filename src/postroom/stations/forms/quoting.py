"""Quoted texts in forms and sketches: a quote or backslash inside is escaped by a backslash."""

from __future__ import annotations

import re

#: The inside of a quoted text, for the patterns of readers.
INSIDE = r'(?:[^"\\]|\\.)*'
_ESCAPED = re.compile(r"\\(.)")


def quoted(text: str) -> str:
    r"""
    >>> print(quoted('6" nails'), unquoted('6\\" nails'))
    "6\" nails" 6" nails
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def unquoted(inside: str) -> str:
    """The text inside quotes, unescaped."""
    return _ESCAPED.sub(r"\1", inside)
