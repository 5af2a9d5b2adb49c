"""The search for partners: the oldest first, each message once, and not for ever."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from postroom.stations.procedures import search
from postroom.stations.procedures.plan import Selected
from postroom.stations.procedures.search import Memory, TooManyTries, complete, probes, rows
from postroom.store.tables.working_sets import Candidate

from .test_claiming import PAIR, desk_of

FREE = "procedure free at ann\n  precondition a : ORDER\n  precondition b : BILL\n    No: <> ?a.No\n"


def candidate(message: int, value: str, *, is_there: bool = True) -> Candidate:
    return Candidate("", "", message, message, message, 0, 0, (value,), is_there)


def test_the_oldest_partner_is_taken_and_one_that_is_gone_is_passed_over() -> None:
    desk = desk_of(PAIR)
    memory = Memory(desk, None)
    for number in (1, 2, 3):
        memory.add(Selected(0, 0, ("7",)), candidate(number, "7"))
    bill = candidate(9, "7")
    assert complete(desk.plans[0], Selected(0, 1, ("7",)), bill, memory) == {0: candidate(1, "7"), 1: bill}
    memory.gone.update([1, 2])
    assert complete(desk.plans[0], Selected(0, 1, ("7",)), bill, memory) == {0: candidate(3, "7"), 1: bill}
    assert complete(desk.plans[0], Selected(0, 1, ("8",)), candidate(9, "8"), memory) is None


def test_candidates_of_the_store_come_before_new_ones_and_stale_ones_are_noted() -> None:
    desk = desk_of(PAIR)
    asked: list[tuple[str, str, int]] = []

    def look_up(slot: str, value: str, after: int) -> Sequence[Candidate]:
        asked.append((slot, value, after))
        return [candidate(1, "7", is_there=False), candidate(2, "7")]

    memory = Memory(desk, look_up)
    memory.add(Selected(0, 0, ("7",)), candidate(5, "7"))
    bill = candidate(9, "7")
    assert complete(desk.plans[0], Selected(0, 1, ("7",)), bill, memory) == {0: candidate(2, "7"), 1: bill}
    assert [each.message for each in memory.stale] == [1]
    assert complete(desk.plans[0], Selected(0, 1, ("7",)), bill, memory) is not None
    assert len(asked) == 1, "the page was the last one, and is remembered"


def test_a_message_is_found_by_the_slots_of_its_sketch() -> None:
    plan = desk_of(PAIR).plans[0]
    ((slot, value),) = probes(plan, Selected(0, 1, ("7",)))
    (row,) = rows(plan, 0, candidate(1, "7"))
    assert (row.slot, row.value) == (slot, value) == ("pair.a.0", "7")


def test_a_search_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SEARCH_TRIES_MAX", 10)
    desk = desk_of(FREE)
    memory = Memory(desk, None)
    for number in range(20):
        memory.add(Selected(0, 0, ("7",)), candidate(number, "7"))
    with pytest.raises(TooManyTries):
        complete(desk.plans[0], Selected(0, 1, ("7",)), candidate(99, "7"), memory)
