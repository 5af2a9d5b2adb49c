"""Media types and formats."""

from __future__ import annotations

import pytest

from postroom.errors import JsonMalformed, TextInvalid, XmlForbidden, XmlMalformed
from postroom.gateways.media import draft_of, format_of


@pytest.mark.parametrize(("media_type", "form"), [
    ("application/xml", "xml"), ("text/XML; charset=utf-8", "xml"), ("application/soap+xml", "xml"),
    ("application/json", "json"), ("application/ld+json", "json"), ("text/plain", "text"), ("", "text"),
])  # fmt: skip
def test_a_media_type_has_a_format(media_type: str, form: str) -> None:
    assert format_of(media_type) == form


def test_bytes_become_a_checked_message() -> None:
    assert draft_of("<é/>".encode("latin-1"), "text/xml; charset=ISO-8859-1").body == "<é/>"
    latin = "<?xml version='1.0' encoding='iso-8859-1'?><é/>".encode("latin-1")
    for came in (latin, "<é/>".encode("utf-16")):
        assert draft_of(came, "application/xml").body.endswith("<é/>")
    for body, media_type, error in [
        (b"\xff", "text/plain", TextInvalid),
        (b"x", "text/plain; charset=utf-7", TextInvalid),
        (b"<a>", "text/xml", XmlMalformed),
        (b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "text/xml", XmlForbidden),
        (b"{", "application/json", JsonMalformed),
    ]:
        with pytest.raises(error):
            draft_of(body, media_type)
