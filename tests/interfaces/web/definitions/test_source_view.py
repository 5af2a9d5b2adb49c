"""Text with colours: nothing is lost, and what looks like a word of the language inside of a text is none."""

from __future__ import annotations

import pytest
from tests.interfaces.web.conftest import APPROVAL, SETTLE, SHOP

from postroom.interfaces.web.definitions.source_view import pieces


@pytest.mark.parametrize(
    "line", [*SHOP.splitlines(), *SETTLE.splitlines(), *APPROVAL.splitlines(), "", '"open', "a # b", "(: c", "\u2603 1"]
)
def test_nothing_is_lost(line: str) -> None:
    assert "".join(text for _, text in pieces(line)) == line


def test_kinds() -> None:
    assert ("word", "rule") in pieces("create rule x for y")
    assert ("said", '"create rule"') in pieces('x "create rule" y')
    assert ("remark", "(: create :)") in pieces("let (: create :) 1")
    assert ("number", "1") in pieces("xs:integer(/ask/count) + 1")
    assert ("word", "if") not in pieces("gif")
