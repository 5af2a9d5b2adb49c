"""Media types and the formats of bodies: what comes as bytes becomes a draft, what goes out is named."""

from __future__ import annotations

from collections.abc import Mapping

from postroom.errors import TextInvalid
from postroom.model.message import Draft, Value

MEDIA_TYPES = {
    "xml": "application/xml; charset=utf-8",
    "json": "application/json",
    "text": "text/plain; charset=utf-8",
}


def format_of(media_type: str) -> str:
    """The format for a media type: XML and JSON by their names and suffixes, all else is text."""
    name = media_type.partition(";")[0].strip().lower()
    if name in ("application/xml", "text/xml") or name.endswith("+xml"):
        return "xml"
    return "json" if name == "application/json" or name.endswith("+json") else "text"


def draft_of(body: bytes, media_type: str, properties: Mapping[str, Value] | None = None) -> Draft:
    """A checked message; raises a ``BodyError`` if it is none. XML says its own encoding, all else is UTF-8."""
    charset = "utf-8"
    for part in media_type.split(";")[1:]:
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset":
            charset = value.strip().strip('"').lower()
    if charset not in ("utf-8", "utf8", "us-ascii", "iso-8859-1", "latin-1", "latin1"):
        raise TextInvalid(why=f"the charset {charset[:40]!r} is not taken; send UTF-8")
    try:
        text = body.decode(charset)
    except UnicodeDecodeError as error:
        raise TextInvalid(why=f"byte {error.start + 1} is not {charset}") from None
    return Draft.of(text, format_of(media_type), None, properties or {})
