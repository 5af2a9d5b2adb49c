"""Chunks as they travel to workers and back: nothing is lost, and neighbours stay together."""

from __future__ import annotations

import pytest

from postroom.engine.steps.effects import Arrival, Change, Document, Enqueue, Granule, ResetSlice
from postroom.rules.evaluation.chunks import answer_of, chunk_of, packed, together, unpacked

SLICE, ENTRY, QUEUE = Granule("slice", "s", "k"), Granule("index", "b x", "v"), Granule("queue", "b")
ODD = 'a"<&>\n\r\t é\U0001f4ee\u2028 ]]>'


def arrival(order: int, *granules: Granule, body: str = "<x/>", failure: str | None = None) -> Arrival:
    reads = tuple((each,) for each in granules)
    return Arrival(order, "a", 100_001 + order, "xml", None, body, "{}", 5, None, reads, failure)


def test_a_chunk_comes_out_as_it_was_packed() -> None:
    arrivals = [
        arrival(0, SLICE, QUEUE, body=ODD),
        Arrival(3, "b", 7, "json", "order", "{}", '{"p":1}', 2**50, 5, ((SLICE, ENTRY), ()), "killed"),
        arrival(9),
    ]
    base = {SLICE: [Document(1, "xml", None, ODD, 4), Document(2, "text", "t", "", 5)], QUEUE: []}
    known = {
        SLICE: [
            Change(1, Document(0, "json", None, "{}", 2)),
            Change(2, None),
            Change(2, Document(0, "xml", None, "<z/>")),
        ],
        ENTRY: [Change(0, Document(0, "text", None, ""))],
    }
    again, sets, given = chunk_of(packed(arrivals, base, known))
    assert again == arrivals
    assert sets == {SLICE: base[SLICE], QUEUE: [], ENTRY: []}
    assert given == known


def test_only_the_sets_that_a_chunk_looks_at_travel_with_it() -> None:
    _, sets, given = chunk_of(packed([arrival(0, SLICE)], {SLICE: [], QUEUE: []}, {QUEUE: [Change(0, None)]}))
    assert (sets, given) == ({SLICE: []}, {})
    assert chunk_of(packed([], {}, {})) == ([], {}, {})


def test_an_answer_comes_out_as_it_was_given() -> None:
    enqueue = Enqueue("r", "b", "xml", "t", '{"p":1}', ODD, (("s", ODD),), (("b x", ""), ("b x", "2")), 5)
    failure = Enqueue("r", "e", "xml", None, "{}", "<error/>", failed=True)
    made = {0: (enqueue, ResetSlice("q", "s", ODD)), 1: (), 2: (failure,), 3: (enqueue,)}
    effects, unsettled, orders = unpacked(answer_of([0, 1, 2, 3, 4], made, {3, 4}))
    assert effects == {0: [enqueue, ResetSlice("q", "s", ODD)], 2: [failure]}
    assert (unsettled, orders) == ({3, 4}, [0, 1, 2, 3, 4])
    assert unpacked(answer_of([], {}, set())) == ({}, set(), [])


def orders(chunks: list[list[Arrival]]) -> list[list[int]]:
    return [[each.order for each in chunk] for chunk in chunks]


def test_one_chunk_is_all_in_their_order() -> None:
    assert orders(together([arrival(number) for number in range(3)], 1)) == [[0, 1, 2]]


def test_messages_that_look_at_the_same_set_are_together_and_in_their_order() -> None:
    some = [arrival(number, Granule("slice", "s", str(number % 3))) for number in range(9)]
    chunks = orders(together(some, 3))
    assert chunks == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]


def test_whole_queues_keep_nobody_together() -> None:
    some = [arrival(number, QUEUE) for number in range(8)]
    assert sorted(map(len, together(some, 2))) == [4, 4]


@pytest.mark.parametrize("count", [2, 3, 7])
def test_every_message_is_in_one_chunk(count: int) -> None:
    some = [arrival(number, Granule("slice", "s", str(number % 5)), ENTRY) for number in range(20)]
    some += [arrival(number) for number in range(20, 40)]
    chunks = together(some, count)
    assert sorted(order for chunk in orders(chunks) for order in chunk) == list(range(40))
    assert len(chunks) <= count + 1
    assert all(chunk == sorted(chunk) for chunk in orders(chunks))
