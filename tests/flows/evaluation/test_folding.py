"""Arcs with state by their plain meaning, against loops over generated events that are late and out of order."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from postroom.flows.evaluation.folding import LATE, OUTSIDE, MemoryStates, fold_of, moment, starts
from postroom.flows.evaluation.paths import NO_VALUE
from postroom.flows.graph.checks import check, typed
from postroom.flows.language.arithmetic import NoValue
from postroom.flows.language.reader import parse
from postroom.flows.language.windows import Duration, Every
from postroom.model.moment import to_microseconds

HEAD = """domain d
space A : [k: string, n: int, t: timestamp, u: timestamp]
space B : [k: string, m: int, s: timestamp]
space C
"""
SECOND = 1_000_000
Event = tuple[str, int, int]  # a key, a number, and seconds


def folded(does: str, events: list[tuple[str, Any]]) -> list[Any]:
    """What an arc delivers of events of A and B, one after another; of one that it refuses, why."""
    graph = check(typed(parse(f"{HEAD}arc c : A -> C {does}", "g.flow")))
    ((arc, *_),) = graph.arcs.values()
    source, other, target = (graph.spaces[name].type for name in "ABC")
    take = fold_of(arc, source, target, other).over(MemoryStates())
    return [
        made.event if made.failure is None else made.failure
        for _, made in take([(None, space, event) for space, event in events])
    ]


def event(each: Event) -> tuple[str, Any]:
    key, number, time = each
    return "A", (key, number, moment(time * SECOND), moment((time // 30 + 1) * 30 * SECOND))


def generated(seed: int) -> list[Event]:
    """Times go on, now and then back by up to twice the lateness of ten seconds."""
    dice, now, found = random.Random(seed), 1000, []
    for _ in range(150):
        now += dice.choice((0, 1, 1, 2, 2, 40 if dice.random() < 0.1 else 3))
        found.append((dice.choice("abc"), dice.randrange(-9, 99), now - dice.choice((0, 0, 0, 4, 9, 10, 11, 20))))
    return found


def in_time(events: list[Event]) -> tuple[list[Event], int]:
    """The events that are not late, and the newest time."""
    newest, found = -1, []
    for each in events:
        if newest < 0 or each[2] >= newest - 10:
            found.append(each)
        newest = max(newest, each[2])
    return found, newest


def every(step: int, length: int) -> Callable[[list[Event]], dict[tuple[str, int, int], list[int]]]:
    def windows(events: list[Event]) -> dict[tuple[str, int, int], list[int]]:
        found = defaultdict(list)
        for key, number, time in events:
            for start in range(0, 5000, step):
                if start <= time < start + length:
                    found[key, start, start + length].append(number)
        return found

    return windows


def sessions(events: list[Event]) -> dict[tuple[str, int, int], list[int]]:
    found: dict[tuple[str, int, int], list[int]] = {}
    for key in "abc":
        mine = sorted([(time, number) for each, number, time in events if each == key])
        while mine:
            some = [mine.pop(0)]
            while mine and mine[0][0] < some[-1][0] + 7:
                some.append(mine.pop(0))
            found[key, some[0][0], some[-1][0] + 7] = [number for _, number in some]
    return found


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    ("window", "windows"),
    [
        ("every 10 seconds", every(10, 10)),
        ("every 4 seconds over 10 seconds", every(4, 10)),
        ("session 7 seconds", sessions),
    ],
)
def test_windows_hold_what_is_in_time_and_close_by_the_watermark(window: str, windows: Any, seed: int) -> None:
    events = generated(seed)
    result = "=> [k: k, n: count(), s: sum(n), least: min(n), most: max(n), a: start, b: end]"
    made = folded(f"collapse [k: k, n: n, t: t] by k at t late 10 seconds {window} {result}", [*map(event, events)])
    kept, newest = in_time(events)
    assert made.count(LATE) == len(events) - len(kept) > 0
    wanted = [
        (key, len(some), sum(some), min(some), max(some), moment(start * SECOND), moment(end * SECOND))
        for (key, start, end), some in windows(kept).items()
        if end <= newest - 10
    ]
    assert [each for each in made if each != LATE] == sorted(wanted, key=lambda each: (each[6], each[0], each[5]))


@pytest.mark.parametrize("seed", range(12))
def test_without_a_window_each_event_is_the_state_after_it(seed: int) -> None:
    events = generated(seed)
    does = "collapse [k: k, n: n] by k => [k, count(), sum(n), avg(n), first(n), last(n)]"
    so_far: dict[str, list[int]] = defaultdict(list)
    for (key, number, _), found in zip(events, folded(does, [*map(event, events)]), strict=True):
        so_far[key].append(number)
        some = so_far[key]
        assert found == (key, len(some), sum(some), sum(some) / len(some), some[0], some[-1])


@pytest.mark.parametrize("seed", range(12))
def test_the_last_events_of_a_key(seed: int) -> None:
    events = generated(seed)
    made = folded("collapse [k: k, n: n] by k over 3 events => [k, count(), sum(n)]", [*map(event, events)])
    so_far: dict[str, list[int]] = defaultdict(list)
    for (key, number, _), found in zip(events, made, strict=True):
        so_far[key] = [*so_far[key], number][-3:]
        assert found == (key, len(so_far[key]), sum(so_far[key]))


@pytest.mark.parametrize("seed", range(12))
def test_the_latest_of_a_key_is_by_time_and_not_by_arrival(seed: int) -> None:
    events = generated(seed)
    made = folded("collapse [k: k, n: n, t: t] by k at t late 1 hour => [k, first(n), last(n)]", [*map(event, events)])
    so_far: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for place, ((key, number, time), found) in enumerate(zip(events, made, strict=True)):
        so_far[key].append((time, place, number))
        assert found == (key, min(so_far[key])[2], max(so_far[key])[2])


@pytest.mark.parametrize("seed", range(12))
def test_until_a_moment_of_the_key(seed: int) -> None:
    events = generated(seed)
    does = "collapse [k: k, n: n, t: t, u: e] by k, e at t late 10 seconds until e => [k, e, sum(n)]"
    made = folded(does, [*map(event, events)])
    kept, newest = in_time(events)
    sums: dict[tuple[int, str], int] = defaultdict(int)
    for key, number, time in kept:
        sums[(time // 30 + 1) * 30, key] += number
    wanted = [(key, moment(end * SECOND), found) for (end, key), found in sorted(sums.items()) if end <= newest - 10]
    assert [each for each in made if each != LATE] == wanted


@pytest.mark.parametrize("seed", range(12))
def test_events_of_two_spaces_meet_near_in_time_whichever_comes_first(seed: int) -> None:
    dice = random.Random(seed)
    events = [(dice.choice("AB"), each) for each in generated(seed)]
    given = [event(each) if space == "A" else (space, event(each)[1][:3]) for space, each in events]
    near = "within 5 seconds late 10 seconds"
    does = f"transform [k: k, n: n > 0, t: t] at t join B [k: k, m: m > n, s: s] at s {near} => [k, n, m]"
    made = folded(does, given)
    ours, theirs = ([each for side, each in events if side == space] for space in "AB")
    pairs = [
        (left[0], left[1], right[1])
        for left in in_time(ours)[0]
        for right in in_time(theirs)[0]
        if left[0] == right[0] and 0 < left[1] < right[1] and abs(left[2] - right[2]) <= 5
    ]
    assert sorted(each for each in made if each != LATE) == sorted(pairs)
    assert pairs


def test_a_state_of_a_join_does_not_grow_with_what_is_over() -> None:
    does = "transform [k: k, t: t] at t join B [k: k, s: s] at s within 5 seconds => [k]"
    graph = check(typed(parse(f"{HEAD}arc c : A -> C {does}", "g.flow")))
    ((arc, *_),) = graph.arcs.values()
    source, other, target = (graph.spaces[name].type for name in "ABC")
    states = MemoryStates()
    take = fold_of(arc, source, target, other).over(states)
    for second in range(500):
        for space, said in (event(("a", 1, second)), ("B", ("b", 1, moment(second * SECOND)))):
            assert take([(None, space, said)]) == []
    assert sum(map(len, states._rows.values())) < 20


def test_an_event_at_the_end_of_its_window_is_refused() -> None:
    at_end = ("A", ("a", 1, moment(30 * SECOND), moment(30 * SECOND)))
    assert folded("collapse [k: k, t: t, u: e] by k, e at t until e => [k, count()]", [at_end]) == [OUTSIDE]


def test_a_sum_that_is_too_large_is_no_value_and_comes_back_when_it_is_not() -> None:
    events = [("A", ("a", number, moment(0), moment(0))) for number in (2**63 - 1, 1, -5)]
    assert folded("collapse [n: n] => [n: sum(n)]", events) == [(2**63 - 1,), NO_VALUE, (2**63 - 5,)]


def test_moments_are_exact_and_end_with_the_calendar() -> None:
    assert to_microseconds(moment(-1)) == -1
    with pytest.raises(NoValue):
        moment(2**62)


@pytest.mark.parametrize(("step", "length"), [(1, 1), (2, 5), (3, 9), (4, 4)])
def test_a_moment_is_in_every_window_that_holds_it(step: int, length: int) -> None:
    window = Every(Duration(step, "microseconds"), Duration(length, "microseconds"))
    for time in range(-20, 20):
        wanted = [start for start in range(-60, 60) if start % step == 0 and start <= time < start + length]
        assert starts(time, window) == wanted
