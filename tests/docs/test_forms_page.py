"""The page on forms says all there is: every statement, kind, rule, function and check."""

from __future__ import annotations

import re
from pathlib import Path

from postroom.model.types import Kind
from postroom.stations.forms import Rule
from postroom.stations.language import AUTOMATIC, CHECKS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "postroom" / "stations"
PAGE = (ROOT / "docs" / "reference" / "forms.md").read_text()


def test_every_kind_rule_and_function_is_listed() -> None:
    for name in (*Kind, *Rule, *AUTOMATIC):
        assert f"| `{name}` |" in PAGE, name
    for word in ("type", "field", "index", "list", "of", *Rule):
        assert f'"{word}"' in PAGE, word


def test_every_check_is_listed() -> None:
    raised = {
        name
        for file in SOURCE.glob("*.py")
        for name in re.findall(r'_fail\(.*"([a-z]+(?:-[a-z]+)*)"\)$', file.read_text(), re.MULTILINE)
    }
    assert {"syntax", "condition-type", "name-twice"} <= raised, "the search still works"
    for name in raised | {check.__name__.replace("_", "-") for check in CHECKS}:
        assert f"| `{name}` |" in PAGE, name
