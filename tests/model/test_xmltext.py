"""Text on its way into an XML document: a parser reads it back as it was."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.model.xmltext import attribute, escaped, in_xml, without_declaration

texts = st.text().filter(in_xml)


@given(texts)
def test_text_between_tags_is_read_back_as_it_was(text: str) -> None:
    assert (ElementTree.fromstring(f"<x>{escaped(text)}</x>").text or "") == text


@given(texts)
def test_an_attribute_is_read_back_as_it_was(text: str) -> None:
    assert ElementTree.fromstring(f'<x a="{attribute(text)}"/>').get("a") == text


@pytest.mark.parametrize("character", ["\0", "\x0b", "\x1f", "\ufffe", "\ud800"])
def test_what_xml_cannot_hold_is_known_and_shown_as_a_replacement(character: str) -> None:
    assert not in_xml(f"a{character}")
    assert escaped(f"a{character}b") == "a\ufffdb"
    assert attribute(f"a{character}b") == "a\ufffdb"


@pytest.mark.parametrize("character", ["\t", "\n", "\r", " ", "\x7f", "é", "\U0001f4ee", "\ufffd"])
def test_what_xml_can_hold_is_known(character: str) -> None:
    assert in_xml(character)


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("<x/>", "<x/>"),
        (" \n<x/>\t\r", "<x/>"),
        ("<?xml version='1.0'?><x/>", "<x/>"),
        ('\ufeff<?xml version="1.0" encoding="utf-8"?>\n<x/>\n', "<x/>"),
        ("\ufeff<x/>", "<x/>"),
        ("<?xml-stylesheet href='a'?><x/>", "<?xml-stylesheet href='a'?><x/>"),
        ("<x>\u00a0</x>\u00a0", "<x>\u00a0</x>\u00a0"),
    ],
)
def test_a_document_becomes_a_part_of_another_without_its_declaration(body: str, left: str) -> None:
    assert without_declaration(body) == left
