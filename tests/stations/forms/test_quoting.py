"""Texts in quotes come back as they were."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from postroom.stations.forms.quoting import INSIDE, quoted, unquoted


def test_quotes_and_backslashes_get_a_backslash() -> None:
    assert quoted('6" nails') == '"6\\" nails"'
    assert quoted("a\\b") == '"a\\\\b"'
    assert unquoted('6\\" nails') == '6" nails'


@given(st.text())
def test_every_text_comes_back(text: str) -> None:
    written = quoted(text)
    assert unquoted(written[1:-1]) == text
    assert re.fullmatch(rf'"{INSIDE}"', written, re.DOTALL)
