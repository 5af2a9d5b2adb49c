"""Media types and formats of bodies: from received bytes to a draft, and the media type of a message."""

from __future__ import annotations

from collections.abc import Mapping

from postroom.errors import TextInvalid
from postroom.model.encodings import charset_of, decoded
from postroom.model.message import Draft, Value

MEDIA_TYPES = {
    "xml": "application/xml; charset=utf-8",
    "json": "application/json",
    "text": "text/plain; charset=utf-8",
}


def format_of(media_type: str) -> str:
    """The format for a media type: XML and JSON by their names and suffixes, anything else is text."""
    name = media_type.partition(";")[0].strip().lower()
    if name in ("application/xml", "text/xml") or name.endswith("+xml"):
        return "xml"
    return "json" if name == "application/json" or name.endswith("+json") else "text"


def draft_of(body: bytes, media_type: str, properties: Mapping[str, Value] | None = None) -> Draft:
    """A checked message; raises a ``BodyError`` if it is invalid.

    XML may declare its encoding; everything else is UTF-8.
    """
    form = format_of(media_type)
    try:
        text = decoded(body, charset_of(media_type), xml=form == "xml")
    except ValueError as error:
        raise TextInvalid(why=str(error)) from None
    return Draft.of(text, form, None, properties or {})
