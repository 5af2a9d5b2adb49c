"""Addresses: whatever stands in a name stays a name."""

from __future__ import annotations

import pytest

from postroom.errors import RequestInvalid
from postroom.interfaces.web.addresses import address, pairs
from postroom.limits import PAGE_FIELDS_MAX


def test_names_are_quoted_and_what_is_not_asked_for_is_left_out() -> None:
    made = address("/web", "/desk/{station}", {"station": "a/b?c#d%"}, {"x": "1&2", "y": None, "z": "é"})
    assert made == "/web/desk/a%2Fb%3Fc%23d%25?x=1%262&z=%C3%A9"


def test_what_is_sent_comes_back_as_it_was() -> None:
    assert pairs(b"a=1%262&a=&b=%C3%A9+x", "form") == [("a", "1&2"), ("a", ""), ("b", "é x")]


@pytest.mark.parametrize("text", [b"a=%ff", b"\xff", b"a&" * (PAGE_FIELDS_MAX + 1)])
def test_what_is_no_form_is_refused(text: bytes) -> None:
    with pytest.raises(RequestInvalid):
        pairs(text, "form")
