"""Text on its way into an XML document: escaped, or a whole document as a part of another."""

from __future__ import annotations

import re

_DECLARATION = re.compile(r"\ufeff?(?:\s*<\?xml\s[^>]*\?>)?")  # with a byte order mark, which is none of the text
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def in_xml(said: str) -> bool:
    """Whether every character can stand in XML."""
    return _NOT_IN_XML.search(said) is None


def without_declaration(body: str) -> str:
    declaration = _DECLARATION.match(body)
    # White space around the root is no part of a document either.
    return (body[declaration.end() :] if declaration and declaration.end() else body).strip(" \t\r\n")


def escaped(text: str) -> str:
    """Text between tags. What XML cannot hold is shown as the replacement character."""
    # A parser reads a bare carriage return as a line end.
    said = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#13;")
    return said if said.isascii() and said.isprintable() else _NOT_IN_XML.sub("\ufffd", said)


def attribute(text: str) -> str:
    return escaped(text).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")
