"""The messages that a query looks at: each written once, and sets that tell where theirs stand."""

from __future__ import annotations

import re

from postroom.engine.steps.effects import Arrival, Change, Document, Granule
from postroom.rules.compilation.plan import Index, Plan
from postroom.rules.evaluation.sets import Sets

QUEUE, SLICE, ENTRY = Granule("queue", "q"), Granule("slice", "s", "k"), Granule("index", "q x", "v")
PLAN = Plan(1, "m", indexes={"q x": Index("q x", "q", "//x")})


def document(key: int, place: int | None = None) -> Document:
    return Document(key, "xml", None, f"<m>{key}</m>", key if place is None else place)


def arrival(order: int, *granules: Granule) -> Arrival:
    return Arrival(order, "a", 1, "xml", None, "<x/>", "{}", 0, None, tuple((each,) for each in granules))


def runs(sets: Sets, number: int) -> str:
    (found,) = (re.search(r' d="([^"]*)"', each) for each in sets.elements if f'<s id="{number}"' in each)
    assert found is not None
    return found[1]


def test_a_message_of_two_sets_is_written_once() -> None:
    base = {QUEUE: [document(1), document(2), document(3)], SLICE: [document(1), document(3)]}
    sets = Sets(PLAN, base, {}, [arrival(0, QUEUE, SLICE)])
    assert len(sets.elements) == 3
    assert runs(sets, sets.number(0, [QUEUE])) == "1+3"
    assert runs(sets, sets.number(0, [SLICE])) == "1+1 3+1"
    assert [sets.place(key) for key in (1, 2, 3, 4)] == [1, 2, 3, None]


def test_the_same_set_has_one_number_until_something_changes_it() -> None:
    known = {QUEUE: [Change(1, document(0))]}
    sets = Sets(PLAN, {QUEUE: [document(7)]}, known, [arrival(0, QUEUE), arrival(2, QUEUE)])
    first = sets.number(0, [QUEUE])
    assert sets.number(1, [QUEUE]) == first, "what a message makes itself it does not see"
    later = sets.number(2, [QUEUE])
    assert later != first
    assert (runs(sets, first), runs(sets, later)) == ("1+1", "1+2")


def test_a_reset_empties_a_slice_for_those_behind_it() -> None:
    known = {SLICE: [Change(0, None), Change(1, document(0))]}
    sets = Sets(PLAN, {SLICE: [document(1), document(2)]}, known, [arrival(n, SLICE) for n in range(3)])
    assert [runs(sets, sets.number(n, [SLICE])) for n in range(3)] == ["1+2", "", "3+1"]


def test_entries_that_lead_to_the_same_message_are_one_and_in_the_order_of_their_queue() -> None:
    other = Granule("index", "q x", "w")
    base = {ENTRY: [document(2), document(5)], other: [document(1), document(5)]}
    sets = Sets(PLAN, base, {}, [Arrival(0, "a", 1, "xml", None, "<x/>", "{}", 0, None, ((ENTRY, other),))])
    assert len(sets.elements) == 3
    assert runs(sets, sets.number(0, [ENTRY, other])) == "1+3"


def test_a_set_that_nobody_looks_at_is_not_written() -> None:
    assert Sets(PLAN, {QUEUE: [document(1)]}, {}, [arrival(0)]).elements == []


def test_null_is_no_item() -> None:
    null = Document(1, "json", None, " null ", 1)
    sets = Sets(PLAN, {QUEUE: [null, document(2)]}, {}, [arrival(0, QUEUE)])
    assert (sets.place(1), sets.place(2)) == (None, 1)
