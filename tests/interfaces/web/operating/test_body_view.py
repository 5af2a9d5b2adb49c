"""Bodies in parts: nothing is lost, and nothing is too deep or too long."""

from __future__ import annotations

import pytest

from postroom.interfaces.web.operating.body_view import Part, shown_text
from postroom.limits import BODY_DEPTH_MAX, BODY_SHOWN_CHARS
from postroom.model.body import Format, parse_json


def text(part: Part) -> str:
    inside = "".join(text(each) for each in part.inside)
    return "".join(said for _, said in part.head) + inside + "".join(said for _, said in part.tail)


@pytest.mark.parametrize("body", ['{"a":[1,{"b":"<i>"},[],{}],"c":null}', "[]", '"x"', "1.50", "[[[1]]]"])
def test_json_says_the_same(body: str) -> None:
    shown = shown_text(body, Format.JSON)
    assert shown.parts is not None
    assert parse_json(text(shown.parts[0])) == parse_json(body)


def test_xml_has_its_elements_attributes_and_texts_in_their_order() -> None:
    shown = shown_text('<a x="1">before<b/>between<c>in &lt;side&gt;</c>after</a>', Format.XML)
    assert shown.parts is not None
    assert text(shown.parts[0]) == '<a x="1">before<b/>between<c>in <side></c>after</a>'


@pytest.mark.parametrize("format", [Format.XML, Format.JSON])
def test_the_deepest_body_that_is_accepted_can_be_shown(format: Format) -> None:
    deep = BODY_DEPTH_MAX
    body = "<a>" * deep + "x" + "</a>" * deep if format is Format.XML else "[" * deep + "]" * deep
    shown = shown_text(body, format)
    assert shown.parts is not None
    assert shown.parts[0].inside


def test_a_long_body_is_cut_and_says_how_long_it_is() -> None:
    shown = shown_text("é" * (BODY_SHOWN_CHARS + 1), Format.TEXT)
    assert (shown.is_cut, shown.size, len(shown.text)) == (True, 2 * BODY_SHOWN_CHARS + 2, BODY_SHOWN_CHARS)
