"""Messages that look at the same set are evaluated together."""

from __future__ import annotations

from postroom.engine.steps.effects import Arrival, Granule
from postroom.rules.evaluation.grouping import together


def arrival(order: int, *slices: str) -> Arrival:
    reads = (tuple(Granule("slice", "s", value) for value in slices),)
    return Arrival(order, "q", order, "xml", None, "<m/>", "{}", 0, None, reads)


def test_one_chunk_has_all_in_their_order() -> None:
    some = [arrival(number) for number in range(5)]
    assert together(some, 1) == [some]


def test_a_slice_is_in_one_chunk_and_nothing_is_lost() -> None:
    some = [arrival(number, str(number % 3)) for number in range(12)]
    chunks = together(some, 2)
    assert sorted(each.order for chunk in chunks for each in chunk) == list(range(12))
    homes = {
        value: {at for at, chunk in enumerate(chunks) for each in chunk if each.granules[0].value == value}
        for value in "012"
    }
    assert all(len(home) == 1 for home in homes.values())
