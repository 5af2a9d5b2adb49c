"""Eight processes at once on one room, some of them killed: what they saw has an order, and nothing is lost."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest
from tests.histories import lists, queues
from tests.histories.record import FAIL, OK, UNKNOWN, Operation, Recorder, recorded
from tests.histories.workload import run

import postroom
from postroom.errors import CommitUnknown, QueueHeld

SLICE, WHOLE = 400, 100_000


@pytest.mark.parametrize(
    ("operations", "kills"), [(SLICE, 4), pytest.param(WHOLE, 100, marks=pytest.mark.slow)], ids=["slice", "whole"]
)
def test_a_history_of_eight_processes_has_an_order_and_loses_nothing(
    url: str, tmp_path: Path, operations: int, kills: int
) -> None:
    folder = tmp_path / "history"
    folder.mkdir()
    found = run(url, folder, seed=operations, operations=operations, kills=kills)
    assert found.wrong()[:10] == []
    assert found.kills == kills
    outcomes = Counter(each.outcome for each in found.history)
    assert outcomes[OK] >= operations * 0.95
    assert outcomes[UNKNOWN] <= kills
    assert {each.verb for each in found.history} == {"send", "take", "read", "exchange"}
    assert found.overlapped > operations / 3, "they did work at the same time"  # 380 of 400 were measured
    # Whoever follows one that was killed begins anew with the first lists: nobody may have come to the last ones.
    assert sum(map(bool, found.kept.values())) > len(found.kept) * 0.8
    with postroom.open(url) as room:
        assert room.journal.verify().differences == ()


def test_sixteen_processes_beside_each_other_on_one_server(postgres_url: str, tmp_path: Path) -> None:
    """They share the queues that they send to and take from, and four of them are killed."""
    folder = tmp_path / "history"
    folder.mkdir()
    found = run(postgres_url, folder, seed=16, operations=SLICE, processes=16, kills=4)
    assert found.wrong()[:10] == []
    assert (found.kills, found.overlapped > SLICE / 3) == (4, True)
    with postroom.open(postgres_url) as room:
        assert room.journal.verify().differences == ()


# --- the record ---


def test_a_call_that_nobody_knows_the_end_of_is_unknown(tmp_path: Path) -> None:
    def fails() -> None:
        raise QueueHeld(queue="q", hold="full", verb="accept", level="q")

    def unknown() -> None:
        raise CommitUnknown(label="send", why="a test")

    record = Recorder(tmp_path / "p1")
    record.call("take", "q", lambda: "a")
    record.call("send", [("q", "b")], fails)
    record.call("send", [("q", "c")], unknown)
    with pytest.raises(KeyboardInterrupt):
        record.call("send", [("q", "d")], lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    record.close()
    found = recorded([tmp_path / "p1"])
    assert [(each.verb, each.outcome) for each in found] == [
        ("take", OK),
        ("send", FAIL),
        ("send", UNKNOWN),
        ("send", UNKNOWN),
    ]
    assert found[0].answer == "a"
    assert [each.ended for each in found[2:]] == [math.inf, math.inf]


# --- the checkers: each bad history must be rejected, and the good one beside it not ---


def send(begun: float, ended: float, *values: str, queue: str = "q", outcome: str = OK, by: str = "p") -> Operation:
    return Operation(by, "send", [(queue, value) for value in values], begun, ended, outcome)


def take(begun: float, ended: float, value: str | None, outcome: str = OK, by: str = "r") -> Operation:
    return Operation(by, "take", "q", begun, ended, outcome, value)


WAITS, GONE = True, False
GOOD = [send(0, 1, "a"), send(2, 3, "b"), take(4, 5, "a")]
QUEUES: dict[str, tuple[list[Operation], list[tuple[str, bool]], str]] = {
    "lost": (GOOD, [("a", GONE)], "b is lost"),
    "invented": (GOOD, [("a", GONE), ("b", WAITS), ("x", WAITS)], "x was never sent"),
    "doubled": (GOOD, [("a", GONE), ("b", WAITS), ("b", WAITS)], "b is there 2 times"),
    "sent out of order": (GOOD, [("b", WAITS), ("a", GONE)], "b stands behind|a stands behind b"),
    "taken twice": ([*GOOD, take(6, 7, "a")], [("a", GONE), ("b", WAITS)], "a was taken 2 times"),
    "taken and waiting": (GOOD, [("a", WAITS), ("b", WAITS)], "a was taken and waits"),
    "taken out of order": (
        [send(0, 1, "a"), send(2, 3, "b"), take(4, 5, "b"), take(6, 7, "a")],
        [("a", GONE), ("b", GONE)],
        "taken: b stands behind a",
    ),
    "taken by nobody": (GOOD, [("a", GONE), ("b", GONE)], "1 were taken by nobody, 0 takes have no known end"),
    "a failed send": ([send(0, 1, "a", outcome=FAIL)], [("a", WAITS)], "its send failed"),
    "passed over": ([send(0, 1, "a"), take(2, 3, None)], [("a", WAITS)], "a take found nothing, and a was there"),
    "passed over, taken later": (
        [send(0, 1, "a"), take(2, 3, None), take(4, 5, "a")],
        [("a", GONE)],
        "a take found nothing",
    ),
}
FINE: dict[str, tuple[list[Operation], list[tuple[str, bool]]]] = {
    "plain": (GOOD, [("a", GONE), ("b", WAITS)]),
    "at the same time": ([send(0, 5, "a"), send(1, 4, "b")], [("b", WAITS), ("a", WAITS)]),
    "an unknown send that happened": ([send(0, math.inf, "a", outcome=UNKNOWN)], [("a", WAITS)]),
    "an unknown send that did not": ([send(0, math.inf, "a", outcome=UNKNOWN)], []),
    "an unknown take": ([send(0, 1, "a"), take(2, math.inf, None, UNKNOWN)], [("a", GONE)]),
    "nothing yet": ([take(0, 1, None), send(2, 3, "a")], [("a", WAITS)]),
    "taken meanwhile": ([send(0, 1, "a"), take(2, 5, "a"), take(3, 4, None)], [("a", GONE)]),
}


@pytest.mark.parametrize("name", QUEUES)
def test_the_checker_of_queues_rejects_a_bad_history(name: str) -> None:
    history, final, why = QUEUES[name]
    found = queues.check(history, {"q": final})
    assert any(part in each for each in found for part in why.split("|")), found


@pytest.mark.parametrize("name", FINE)
def test_the_checker_of_queues_lets_a_good_history_pass(name: str) -> None:
    history, final = FINE[name]
    assert queues.check(history, {"q": final}) == []


def append(begun: float, ended: float, value: str, *names: str, outcome: str = OK, by: str = "p") -> Operation:
    return Operation(by, "send", [(name, value) for name in names], begun, ended, outcome)


def look(begun: float, ended: float, by: str = "r", **seen: list[str]) -> Operation:
    return Operation(by, "read", list(seen), begun, ended, OK, seen)


def swap(begun: float, ended: float, value: str, into: str, by: str, **seen: list[str]) -> Operation:
    return Operation(by, "exchange", [(into, value)], begun, ended, OK, seen)


LISTS: dict[str, tuple[list[Operation], dict[str, list[str]], str]] = {
    "lost": ([append(0, 1, "a", "x")], {"x": []}, "a is lost"),
    "invented": ([], {"x": ["a"]}, "a was never sent"),
    "doubled": ([append(0, 1, "a", "x")], {"x": ["a", "a"]}, "a is there twice"),
    "a failed append": ([append(0, 1, "a", "x", outcome=FAIL)], {"x": ["a"]}, "its send failed"),
    "half of an append": (
        [append(0, math.inf, "a", "x", "y", outcome=UNKNOWN)],
        {"x": ["a"], "y": []},
        "a is there without what was sent with it",
    ),
    "a read of what never was": (
        [append(0, 9, "a", "x"), append(0, 9, "b", "x", by="s"), look(1, 8, x=["b"])],
        {"x": ["a", "b"]},
        "which the list never was",
    ),
    "half of a list that was sent at once": (
        [send(0, 9, "a", "b", queue="x"), look(1, 8, x=["a"])],
        {"x": ["a", "b"]},
        "read a without what was sent with it",
    ),
    "a late read": ([append(0, 1, "a", "x"), look(2, 3, x=[])], {"x": ["a"]}, "a cycle"),
    "appended out of order in time": ([append(0, 1, "a", "x"), append(2, 3, "b", "x")], {"x": ["b", "a"]}, "a cycle"),
    "two lists in two orders": (
        [append(0, 9, "a", "x", "y"), append(0, 9, "b", "x", "y", by="s")],
        {"x": ["a", "b"], "y": ["b", "a"]},
        "a cycle",
    ),
    "a fractured read": (
        [append(0, 9, "a", "x", "y"), look(1, 8, x=["a"], y=[])],
        {"x": ["a"], "y": ["a"]},
        "a cycle",
    ),
    "a long fork": (
        [
            append(0, 9, "a", "x"),
            append(0, 9, "b", "y", by="s"),
            look(1, 8, x=["a"], y=[]),
            look(1, 8, by="u", x=[], y=["b"]),
        ],
        {"x": ["a"], "y": ["b"]},
        "a cycle",
    ),
    "write skew": (
        [swap(0, 9, "a", "x", "p", y=[]), swap(0, 9, "b", "y", "s", x=[])],
        {"x": ["a"], "y": ["b"]},
        "a cycle",
    ),
    "a lost update": (
        [swap(0, 9, "a", "x", "p", x=[]), swap(0, 9, "b", "x", "s", x=[])],
        {"x": ["a", "b"]},
        "a cycle",
    ),
}


@pytest.mark.parametrize("name", LISTS)
def test_the_checker_of_lists_rejects_a_bad_history(name: str) -> None:
    history, final, why = LISTS[name]
    found = lists.check(history, final)
    assert any(why in each for each in found), found


def test_the_checker_of_lists_lets_good_histories_pass() -> None:
    history = [
        append(0, 1, "a", "x", "y"),
        append(0, math.inf, "b", "x", outcome=UNKNOWN, by="killed"),
        append(0, math.inf, "c", "y", outcome=UNKNOWN, by="killed too"),
        look(0.5, 8, x=[], y=[]),
        look(2, 8, by="u", x=["a", "b"], y=["a"]),
        swap(3, 4, "d", "y", "p", x=["a", "b"], y=["a"]),
    ]
    assert lists.check(history, {"x": ["a", "b"], "y": ["a", "d"]}) == []
    assert lists.check(history, {"x": ["a", "b"], "y": ["a", "d", "c"]}) == []


def test_a_cycle_is_told_with_its_dependencies() -> None:
    history, final, _ = LISTS["write skew"]
    assert lists.check(history, final) == ["a cycle: p:exchange rw y → s:exchange rw x"]


def test_cycles_are_found_in_a_long_history() -> None:
    """Thousands of transactions in a chain, and one that sees the end of it before it begins."""
    many = [append(number, number + 0.5, str(number), "x") for number in range(5_000)]
    values = [str(number) for number in range(5_000)]
    assert lists.check(many, {"x": values}) == []
    early = look(1.6, 1.7, x=values)
    assert any("a cycle" in each for each in lists.check([*many, early], {"x": values}))
