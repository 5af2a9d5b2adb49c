"""The page on forms says all there is: every statement, kind, rule, function, check and code."""

from __future__ import annotations

import re
from pathlib import Path

from postroom.model.types import Kind
from postroom.stations.counters.definitions import CHECKS as CHECKS_OF_COUNTERS
from postroom.stations.counters.definitions import Way
from postroom.stations.forms.form import AUTOMATIC, Rule
from postroom.stations.forms.reader import CHECKS
from postroom.stations.procedures.checks import CHECKS as CHECKS_OF_PROCEDURES
from postroom.stations.procedures.definitions import KEYWORDS, Operation

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "postroom" / "stations"
ALL_CHECKS = (*CHECKS, *CHECKS_OF_PROCEDURES, *CHECKS_OF_COUNTERS)
PAGE = (ROOT / "docs" / "reference" / "forms.md").read_text()


def test_every_kind_rule_and_function_is_listed() -> None:
    for name in (*Kind, *Rule, *AUTOMATIC):
        assert f"| `{name}` |" in PAGE, name
    for word in ("type", "field", "index", "list", "of", *Rule):
        assert f'"{word}"' in PAGE, word


def test_every_check_is_listed() -> None:
    raised = set(re.findall(r'_fail\(.*"([a-z]+(?:-[a-z]+)*)"\)$', _source(), re.MULTILINE))
    raised |= set(re.findall(r'Problem\(.*"([a-z]+(?:-[a-z]+)*)"\)', _source()))
    assert {"syntax", "condition-type", "name-twice", "procedure-station"} <= raised, "the search still works"
    for name in raised | {check.__name__.replace("_", "-") for check in ALL_CHECKS}:
        assert f"| `{name}` |" in PAGE, name


def test_what_is_listed_exists() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \|", PAGE.partition("## What is refused")[2], re.MULTILINE)
    known = {check.__name__.replace("_", "-") for check in ALL_CHECKS}
    assert len(rows) == len(set(rows))
    for name in rows:
        assert name in known or f'"{name}"' in _source(), name


def test_every_statement_of_procedures_is_listed() -> None:
    for word in (*KEYWORDS, *Operation, "at", "on", "not", "from", "copy", "after"):
        assert f'"{word}"' in PAGE, word
    for word in (*(word for word in KEYWORDS if word != "type"), *Operation):
        assert f"| `{word}` |" in PAGE, word
    signs = re.search(r"\(\?P<sign>([^)]*)\)\?", _source())
    units = re.search(r"\(\?P<unit>([^)]*)\)", _source())
    assert signs is not None
    assert units is not None
    for word in (*signs[1].split("|"), *units[1].split("|")):
        assert f'"{word}"' in PAGE, word


def test_every_statement_of_counters_is_listed() -> None:
    for word in ("counter", *Way):
        assert f'"{word}"' in PAGE, word
        assert f"| `{word}` |" in PAGE, word


def test_every_code_of_an_error_message_is_listed() -> None:
    codes = set(re.findall(r'"(PP\d{4})"', _source()))
    assert codes == set(re.findall(r"^\| `(PP\d{4})` \|", PAGE, re.MULTILINE))
    assert len(codes) == 4


def _source() -> str:
    reading = (
        ROOT / "src" / "postroom" / "interfaces" / "cli" / "commands" / "stations.py"
    )  # of what the commands print
    return "\n".join(file.read_text() for file in [*sorted(SOURCE.rglob("*.py")), reading])
