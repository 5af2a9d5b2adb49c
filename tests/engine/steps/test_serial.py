"""Serial equivalence: whatever is evaluated at once ends as if one message had come after another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.engine.steps.effects import Arrival, Change, Document, Effects, Enqueue, Granule, ResetSlice, changes
from postroom.engine.steps.serial import Evaluate, Timeline, Views, before, settle, timeline

A, B = Granule("slice", "s", "a"), Granule("slice", "s", "b")


def arrival(order: int, *granules: Granule, body: str = "") -> Arrival:
    return Arrival(order, "q", order, "text", None, body, "{}", 0, None, tuple((each,) for each in granules))


def add(granule: Granule, body: str) -> Enqueue:
    return Enqueue("r", "out", "text", None, "{}", body, ((granule.name, granule.value),))


def reset(granule: Granule) -> ResetSlice:
    return ResetSlice("r", granule.name, granule.value)


def documents(base: Sequence[Document], made: Sequence[Change]) -> list[Document]:
    """A set after changes: a reset empties it, a new message is added at the end."""
    found = list(base)
    for change in made:
        if change.document is None:
            found.clear()
        else:
            found.append(change.document)
    return found


def count_into(granule: Granule, arrival: Arrival, known: Timeline) -> Effects:
    """A message adds to a slice how many are in it."""
    inside = documents((), before(arrival.order, known.get(granule, ())))
    return (add(granule, str(len(inside))),)


def rounds_of(calls: list[list[int]]) -> Evaluate:
    """Each counts into its first granule, if it looks at one; who was asked in each round is noted."""

    def evaluate(arrivals: Sequence[Arrival], known: Timeline) -> Iterator[Mapping[int, Effects]]:
        calls.append([each.order for each in arrivals])
        for each in arrivals:
            yield {each.order: count_into(each.granules[0], each, known) if each.granules else ()}

    return evaluate


def bodies(effects: Mapping[int, Effects]) -> list[str]:
    return [each.body for order in sorted(effects) for each in effects[order] if isinstance(each, Enqueue)]


def test_what_nobody_looks_at_is_evaluated_once() -> None:
    calls: list[list[int]] = []

    def evaluate(arrivals: Sequence[Arrival], known: Timeline) -> Iterator[Mapping[int, Effects]]:
        calls.append([each.order for each in arrivals])
        yield {each.order: (add(A, str(each.order)),) for each in arrivals}

    effects, unsettled = settle([arrival(number) for number in range(5)], evaluate, 8)
    assert (len(calls), unsettled, bodies(effects)) == (1, set(), list("01234"))


def test_a_chain_of_conflicts_ends_as_one_after_another() -> None:
    calls: list[list[int]] = []
    effects, unsettled = settle([arrival(number, A) for number in range(6)], rounds_of(calls), 64)
    assert unsettled == set()
    assert bodies(effects) == list("012345")
    assert calls[0] == [0, 1, 2, 3, 4, 5]


def test_chains_of_different_sets_are_settled_side_by_side() -> None:
    calls: list[list[int]] = []
    some = [arrival(number, A if number % 2 else B) for number in range(8)]
    effects, unsettled = settle(some, rounds_of(calls), 64)
    assert unsettled == set()
    assert bodies(effects) == ["0", "0", "1", "1", "2", "2", "3", "3"]
    assert len(calls) <= 2 + 4


def test_after_two_rounds_only_the_head_of_each_chain_is_tried() -> None:
    calls: list[list[int]] = []
    settle([arrival(number, A if number % 2 else B) for number in range(8)], rounds_of(calls), 64)
    assert all(len(each) <= 2 for each in calls[2:])


def test_rounds_are_bounded_and_the_settled_are_right() -> None:
    calls: list[list[int]] = []
    effects, unsettled = settle([arrival(number, A) for number in range(20)], rounds_of(calls), 3)
    assert len(calls) == 3
    settled = min(unsettled)
    assert settled >= 1
    assert bodies({order: effects[order] for order in range(settled)}) == [str(number) for number in range(settled)]


def test_who_has_seen_what_is_not_settled_is_not_settled_either() -> None:
    some = [arrival(0, A), arrival(1, A), arrival(2, A), arrival(3, B), arrival(4)]
    effects, unsettled = settle(some, rounds_of([]), 1)
    assert 0 not in unsettled
    assert {1, 2} <= unsettled
    assert {3, 4}.isdisjoint(unsettled)
    assert set(effects) >= {0, 3, 4}


def test_those_of_one_group_have_seen_each_other() -> None:
    calls = 0

    def evaluate(arrivals: Sequence[Arrival], known: Timeline) -> Iterator[Mapping[int, Effects]]:
        nonlocal calls
        calls += 1
        group: dict[int, Effects] = {}
        for each in arrivals:
            so_far = timeline(group, {A, B}, known)
            group[each.order] = count_into(each.granules[0], each, so_far)
        yield group

    effects, unsettled = settle([arrival(number, A) for number in range(10)], evaluate, 8)
    assert (calls, unsettled) == (1, set())
    assert bodies(effects) == [str(number) for number in range(10)]


def test_one_that_is_left_out_is_asked_again() -> None:
    calls: list[list[int]] = []

    def evaluate(arrivals: Sequence[Arrival], known: Timeline) -> Iterator[Mapping[int, Effects]]:
        calls.append([each.order for each in arrivals])
        yield {each.order: () for each in arrivals if each.order != 1 or len(calls) > 2}

    effects, unsettled = settle([arrival(number) for number in range(3)], evaluate, 8)
    assert (unsettled, set(effects)) == (set(), {0, 1, 2})
    assert calls == [[0, 1, 2], [1], [1]]


def test_one_that_is_never_answered_is_not_settled() -> None:
    def evaluate(arrivals: Sequence[Arrival], known: Timeline) -> Iterator[Mapping[int, Effects]]:
        yield {each.order: () for each in arrivals if each.order != 1}

    effects, unsettled = settle([arrival(number, A) for number in range(3)], evaluate, 4)
    assert unsettled == {1}
    assert 1 not in effects


def test_what_messages_outside_of_the_batch_do_counts_at_its_place() -> None:
    made = Document(0, "text", None, "x")
    given = {A: [Change(1, made), Change(3, None), Change(8, made)]}
    effects, unsettled = settle([arrival(number, A) for number in (0, 2, 5, 9)], rounds_of([]), 64, given)
    assert unsettled == set()
    # 2 comes behind what 0 and 1 made; 5 behind the reset of 3; 9 behind what 5 and 8 made.
    assert bodies(effects) == ["0", "2", "0", "2"]


def test_a_reset_empties_what_came_before_it() -> None:
    def evaluate(arrivals: Sequence[Arrival], known: Timeline) -> Iterator[Mapping[int, Effects]]:
        for each in arrivals:
            counted = count_into(A, each, known)
            yield {each.order: (reset(A), *counted) if each.body == "reset" else counted}

    some = [arrival(0, A), arrival(1, A), arrival(2, A, body="reset"), arrival(3, A)]
    effects, unsettled = settle(some, evaluate, 64)
    assert unsettled == set()
    assert bodies(effects) == ["0", "1", "2", "1"]


def test_nothing_is_settled_at_once() -> None:
    assert settle([], rounds_of([]), 8) == ({}, set())


# --- the parts ---------------------------------------------------------------------------------------------------


def test_changes_are_those_of_queues_slices_and_indexes_in_the_order_of_actions() -> None:
    both = Enqueue("r", "out", "text", None, "{}", "x", (("s", "a"),), (("out i", "v"),))
    found = list(changes(4, (both, reset(A), both)))
    assert [(granule.kind, change.at, change.document is None) for granule, change in found] == [
        ("queue", 4, False),
        ("slice", 4, False),
        ("index", 4, False),
        ("slice", 4, True),
        ("queue", 4, False),
        ("slice", 4, False),
        ("index", 4, False),
    ]
    assert [change.document.place for _, change in found if change.document] == [0, 0, 0, 2, 2, 2]


def test_a_timeline_has_what_is_looked_at_in_the_order_of_messages() -> None:
    effects = {5: (add(A, "5"),), 1: (add(A, "1"), reset(B)), 3: ()}
    found = timeline(effects, {A})
    assert [(change.at, change.document and change.document.body) for change in found[A]] == [(1, "1"), (5, "5")]
    assert B not in found
    assert timeline(effects, set()) == {}
    given = {A: [Change(2, None)]}
    assert [change.at for change in timeline(effects, {A}, given)[A]] == [1, 2, 5]
    assert given == {A: [Change(2, None)]}


@pytest.mark.parametrize(("index", "count"), [(0, 0), (1, 0), (2, 1), (3, 3), (9, 3)])
def test_only_what_earlier_messages_do_is_seen(index: int, count: int) -> None:
    made = [Change(1, None), Change(2, None), Change(2, None)]
    assert len(before(index, made)) == count
    views = Views()
    assert views.of({A: made})(arrival(index, A, B)) == views.of({A: made[:count]})(arrival(9, A, B))
    assert views.of({A: made})(arrival(index, A, B))[1] == 0


def test_a_guess_that_proves_right_ends_a_long_chain_in_three_rounds() -> None:
    calls: list[list[int]] = []
    effects, unsettled = settle([arrival(number, A) for number in range(200)], rounds_of(calls), 64, guessing=True)
    assert unsettled == set()
    assert bodies(effects) == [str(number) for number in range(200)]
    assert len(calls) == 3


# --- by chance ---------------------------------------------------------------------------------------------------

ACTIONS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["add", "reset"])), max_size=3)
MESSAGES = st.lists(st.tuples(st.sets(st.sampled_from("ab")), ACTIONS, st.booleans()), max_size=8)


@settings(deadline=None, max_examples=200)
@given(MESSAGES, st.integers(0, 4))
def test_any_batch_ends_as_one_after_another(
    messages: list[tuple[set[str], list[tuple[str, str]], bool]], size: int
) -> None:
    """Messages look at sets and act only if what they see is even, or always."""
    granules = {"a": A, "b": B}
    arrivals = [
        arrival(number, *(granules[name] for name in sorted(reads))) for number, (reads, _, _) in enumerate(messages)
    ]

    def one(each: Arrival, known: Timeline) -> Effects:
        _, actions, always = messages[each.order]
        seen = [len(documents((), before(each.order, known.get(granule, ())))) for granule in each.granules]
        if not always and sum(seen) % 2:
            return ()
        said = ",".join(map(str, seen))
        return tuple(add(granules[name], said) if what == "add" else reset(granules[name]) for name, what in actions)

    def evaluate(some: Sequence[Arrival], known: Timeline) -> Iterator[Mapping[int, Effects]]:
        for start in range(0, len(some), size or 1):
            group: dict[int, Effects] = {}
            for each in some[start : start + (size or 1)]:
                group[each.order] = one(each, timeline(group, {A, B}, known))
            yield group

    serial: dict[int, Effects] = {}
    for each in arrivals:
        serial[each.order] = one(each, timeline(serial, {A, B}))
    effects, unsettled = settle(arrivals, evaluate, 64, guessing=size == 0)
    assert unsettled == set()
    assert effects == serial
