"""What stands in the blanks of a form, and what is said of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from postroom.errors import FormInvalid
from postroom.interfaces.web.rendering import ENVIRONMENT
from postroom.interfaces.web.stations.form_grid import Cell, Grid, Mode, first_fields, given, grid, wrong
from postroom.model.types import Kind
from postroom.stations.forms import reader
from postroom.stations.forms.form import Form
from postroom.stations.queries.conditions import parse

LOSS = """type LOSS
| Seen: __________ Items: ______________ |
| Account: _______ Photos: __ On: ______ |
| Holder: ______________________________ |
field Seen    timestamp      free
field Items   list of string required
field Account string         once
field Photos  int            free
field On      date           free
field Holder  string         required
"""


@pytest.fixture
def loss() -> Form:
    (form,) = reader.parse(LOSS, "loss.form")
    return form


def cells(drawn: Grid) -> dict[str, Cell]:
    return {cell.name: cell for row in drawn.rows for cell in row.cells}


def shown(drawn: Grid) -> str:
    return str(ENVIRONMENT.get_template("form-grid.html").module.sheet(drawn))  # type: ignore[attr-defined]


def every_kind() -> Iterator[tuple[Form, str]]:
    for kind in Kind:
        (form,) = reader.parse(f"type T\n| a: ________ |\nfield a {kind} free\n", "t.form")
        yield form, cells(grid(form, Mode.SKETCH, {}))["a"].takes


def test_a_query_offers_each_kind_of_field_what_can_be_asked_of_it() -> None:
    """A pattern was offered for numbers, dates and truth, and refused."""
    for form, takes in every_kind():
        offered, _, empty = takes.partition("; ")
        for said in offered.replace(" or ", ", ").replace("a pattern such as ", "").split(", "):
            if said != "a text":
                assert parse(form.fields[0], said), takes
        assert '= "" for empty' in empty
        assert ('"off*"' in takes) == (form.fields[0].kind is Kind.STRING)


def test_what_is_longer_than_its_blank_is_not_cut_off(loss: Form) -> None:
    drawn = cells(grid(loss, Mode.MODIFY, {"Seen": "2026-11-03T09:15:00Z", "Photos": "1234", "On": "2026-11-03"}))
    assert [name for name, cell in drawn.items() if not cell.is_long] == ["On"], "a date has its calendar beside it"
    assert not cells(grid(loss, Mode.MODIFY, {"Photos": "12"}))["Photos"].is_long


def test_a_fixed_field_says_since_when(loss: Form) -> None:
    text = shown(grid(loss, Mode.MODIFY, {"Account": "a", "Holder": "h"}, fixed={"Account", "Holder", "Items"}))
    assert text.count("(fixed since it was entered)") == 1
    assert text.count("(fixed since it was created)") == 2


def test_a_list_says_always_that_each_line_is_an_item(loss: Form) -> None:
    for mode in (Mode.CREATE, Mode.MODIFY):
        text = shown(grid(loss, mode, {}, errors={"Items": "none"}))
        assert "Items: one on each line" in text
        (described,) = (part.split('"')[0] for part in text.split('aria-describedby="')[1:])
        items = cells(grid(loss, mode, {}))["Items"].id
        assert described == f"{items}-many {items}-error"
    assert "one on each line" not in shown(grid(loss, Mode.SHOW, {}))


def test_a_moment_may_have_a_blank_between_its_day_and_its_time(loss: Form) -> None:
    values = given(loss, {"Seen": " 2026-11-03 09:15:00Z", "Account": "2026-11-03 09:15"})
    assert values == {"Seen": "2026-11-03T09:15:00Z", "Account": "2026-11-03 09:15"}
    assert "Seen" not in wrong(loss, values, is_new=False)


def test_what_is_required_is_named(loss: Form) -> None:
    assert wrong(loss, {}, is_new=True) == {"Items": "Items is required.", "Holder": "Holder is required."}


def test_a_first_field_that_is_cut_says_so(loss: Form) -> None:
    assert first_fields(loss, {"Account": "word " * 20}) == [("Account", f"{' '.join(['word'] * 12)}\u2026")]


def test_a_quote_that_is_not_closed_is_told(loss: Form) -> None:
    (field,) = (field for field in loss.fields if field.name == "Account")
    for text, at in (('"off*', 1), ('a "b', 3), ('<> "b', 4)):
        with pytest.raises(FormInvalid, match="this quote is not closed") as refused:
            parse(field, text)
        assert refused.value.facts["problems"][0].position.column == at
