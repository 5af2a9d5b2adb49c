"""Bytes that came become text: by their mark, by their charset, or as XML declares."""

from __future__ import annotations

import codecs

import pytest

from postroom.model.encodings import charset_of, decoded


def declared(name: str) -> str:
    return f"<?xml version='1.0' encoding='{name}' standalone='yes'?><é/>"


BARE = "<?xml version='1.0' standalone='yes'?><é/>"


@pytest.mark.parametrize(("body", "charset", "text"), [
    (declared("ISO-8859-1").encode("latin-1"), None, BARE),
    (declared("windows-1252").encode("cp1252"), None, BARE),
    (declared("UTF-16").encode("utf-16"), None, BARE),
    (declared("UTF-16").encode("utf-16-le"), None, BARE),
    (declared("UTF-16").encode("utf-16-be"), "utf-16", BARE),
    (declared("UTF-16").encode("utf-16-le"), "utf-16", BARE),
    (codecs.BOM_UTF32_BE + declared("UTF-32").encode("utf-32-be"), None, BARE),
    (declared("ISO-8859-1").encode(), "utf-8", BARE),
    (codecs.BOM_UTF8 + "<é/>".encode(), "iso-8859-1", "<é/>"),
    (declared("UTF-8").encode(), None, declared("UTF-8")),
    ("<é/>".encode("latin-1"), "latin1", "<é/>"),
])  # fmt: skip
def test_a_document_is_read_as_it_says(body: bytes, charset: str | None, text: str) -> None:
    """A mark counts more than a charset, and that more than a declaration, which is no longer true of the text."""
    assert decoded(body, charset, xml=True) == text


@pytest.mark.parametrize(("body", "charset", "why"), [
    (b"\xff", None, "byte 1 is not utf-8"), (b"<?xml version='1.0' encoding='utf-7'?><a/>", None, "utf-7' is not"),
    (b"x", "unicode_escape", "not taken"), (b"x", "no-such", "not taken"), (b"x", "a\0b", "not taken"),
    (b"\xff\xfea", None, "is not utf-16"), (b"x", "rot13", "not taken"), (b"x", "punycode", "not taken"),
])  # fmt: skip
def test_what_is_in_no_known_encoding_is_refused(body: bytes, charset: str | None, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        decoded(body, charset, xml=True)


def test_only_xml_declares() -> None:
    assert decoded(declared("ISO-8859-1").encode(), None, xml=False) == declared("ISO-8859-1")
    assert (charset_of('text/xml; Charset="UTF-16"'), charset_of("text/xml")) == ("utf-16", None)
