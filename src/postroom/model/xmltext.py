"""Embeds text in XML: escaped, or a whole document as a part of another."""

from __future__ import annotations

import re

_DECLARATION = re.compile(r"\ufeff?(?:\s*<\?xml\s[^>]*\?>)?")  # with a byte order mark, which is none of the text
_NOT_IN_XML = "[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"  # to compile it takes 16 ms


def in_xml(text: str) -> bool:
    """Whether XML allows every character."""
    return (text.isascii() and text.isprintable()) or re.search(_NOT_IN_XML, text) is None


def without_declaration(body: str) -> str:
    declaration = _DECLARATION.match(body)
    # White space around the root is no part of a document either.
    return (body[declaration.end() :] if declaration and declaration.end() else body).strip(" \t\r\n")


def escaped(text: str) -> str:
    """Escaped text. Characters that XML does not allow become replacement characters."""
    # A parser reads a bare carriage return as a line end.
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#13;")
    return safe if safe.isascii() and safe.isprintable() else re.sub(_NOT_IN_XML, "\ufffd", safe)


def attribute(text: str) -> str:
    return escaped(text).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")
