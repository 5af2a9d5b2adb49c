"""Sketches of a page: what a procedure says comes back as the same procedure."""

from __future__ import annotations

import pytest
from tests.interfaces.web.conftest import SETTLE

from postroom.interfaces.web.definitions.procedure_sketches import Sketches, of_fields, of_procedure
from postroom.stations.office import read

HOLIDAY = """procedure holiday at John
  precondition pre : MEETING ANNOUNCEMENT
    To: John
    Loss Date: >= 1981-08-01
    Loss Date: <= ?other.Loss Date
    "type": "off*" "dist*"
  precondition other : MEMO
  origin ours on pre not from me, Jane
  origin theirs on other from Simon
  action act on pre
    Response: "Sorry, on holiday till Aug. 30, see Oscar"
    Count: total(?other.Count, 1.50)
  create made : MEMO
    To: ?pre.From'
  destination cp0 on pre copy 0 ship ?pre.From after 3 days
  destination cp1 on pre copy 1 dossier "of John"
  destination stays on made copy 0 leave
"""


def sent(sketches: Sketches) -> list[tuple[str, str]]:
    """As a browser sends what is on the page."""
    found = [("procedure", sketches.name), ("station", sketches.station), ("do", "check"), ("add.kind", "action")]
    for number, each in enumerate(sketches.several):
        plain = {"kind": each.kind, "name": each.name, "of": each.of, **each.rest}
        found += [(f"s{number}.{name}", value) for name, value in plain.items() if value]
        found += [(f"s{number}.field:{name}", value.replace("\n", "\r\n")) for name, value in each.said.items()]
    return found


@pytest.mark.parametrize("text", [HOLIDAY, SETTLE])
def test_what_a_procedure_says_comes_back(text: str) -> None:
    (procedure,) = read(text, "x.form").procedures
    sketches = of_procedure(procedure)
    assert read(sketches.text(), "x.form").procedures == (procedure,)
    again = of_fields(sent(sketches))
    assert read(again.text(), "x.form").procedures == (procedure,)


def test_each_line_knows_its_sketch_and_its_field() -> None:
    sketches = of_procedure(read(SETTLE, "x.form").procedures[0])
    lines = list(sketches.lines())
    assert lines[3] == ("    No: ?claim.No", 1, "No")
    assert sketches.type_at(2) == "CLAIM"  # an action is drawn on the template of what it writes on


def test_what_is_sent_cannot_become_another_statement() -> None:
    fields = [
        ("procedure", "p\nprocedure q"),
        ("station", "Ann\ntype X"),
        ("s0.kind", "precondition"),
        ("s0.name", "a\n  create b"),
        ("s0.of", "CLAIM\ncounter c"),
        ("s0.field:No", "1\r\nprocedure r at Ann"),
        ("s1.kind", "origin"),
        ("s1.name", "o"),
        ("s1.of", "a"),
        ("s1.stations", "Ann\nprocedure s at Ann"),
        ("s2.kind", "odd"),
        ("s99999.kind", "action"),
        ("sx.kind", "action"),
        ("s3.kind", "action"),
        ("s3.gone", "yes"),
    ]
    sketches = of_fields(fields)
    assert [each.kind for each in sketches.several] == ["precondition", "origin"]
    begins = [line.split()[0] for line in sketches.text().splitlines()]
    assert begins == ["procedure", "precondition", "No:", "No:", "origin"]
