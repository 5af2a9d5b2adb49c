"""Arcs with state in the steps of a room: with the commit, by the graph of the moment, through changes and holds."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.flows.conftest import Load

import postroom
from postroom import faults
from postroom.errors import PostroomError
from postroom.flows.evaluation.folding import MemoryStates, fold_of, moment
from postroom.flows.evaluation.states import StoredStates
from postroom.flows.graph.checks import check, typed
from postroom.flows.language.reader import parse
from postroom.room import Postroom

GRAPH = """
domain d
allow operator : addArc, deleteArc, disableArc, enableArc
space A : [k: string, n: int]
space B : [k: string, n: int]
space Sums : [k: string, n: int]
space Big : [k: string, n: int]
arc pass : A -> B select [n: n > 0]
arc sums : B -> Sums collapse [k: k, n: n] by k => [k: k, n: sum(n)]
arc big : Sums -> Big select [n: n > 10]
"""
Run = Callable[..., int]


def said(room: Postroom, queue: str) -> list[Any]:
    return [list(json.loads(message.body).values()) for message in room.queues.info(queue)]


def publish(room: Postroom, *events: tuple[str, int]) -> None:
    room.flows.publish_many("A", [{"k": key, "n": number} for key, number in events])


def states(room: Postroom) -> list[str]:
    return room._parts.store.read(lambda tx: tx.arc_states.arcs())


KINDS = {
    "tumbling": "collapse [k: k, x: x, t: t] by k at t late 10 seconds every 10 seconds"
    " => [count(), min(x), max(x), first(k), start]",
    "sliding": "collapse [k: k, n: n, t: t] by k at t late 10 seconds every 4 seconds over 10 seconds"
    " => [k, sum(n), avg(n), max(t), end]",
    "session": "collapse [k: k, d: d, t: t] by k at t late 10 seconds session 7 seconds => [k, sum(d), min(d), end]",
    "until": "collapse [k: k, u: u, t: t] by k, u at t late 10 seconds until u => [k, u, count(), last(t)]",
    "last": "collapse [k: k, x: x] by k over 3 events => [k, count(), max(x), last(x)]",
    "always": "collapse [k: k, d: d, n: n] by k => [k, avg(d), avg(n), first(n)]",
    "join": "transform [k: k, n: n, x: x, t: t] at t join O [k: k, m: m, s: s] at s within 5 seconds late 10 seconds"
    " => [k, n, m, x]",
}
_TYPES = {
    "A": "[k: string, n: int, x: float, d: decimal, t: timestamp, u: timestamp]",
    "O": "[k: string, m: decimal, s: timestamp]",
}


def some_events(seed: int) -> list[tuple[str, Any]]:
    """Events that are late or out of order now and then, of any value."""
    dice, now, found = random.Random(seed), 1000, []
    for _ in range(120):
        now += dice.choice((0, 1, 1, 2, 3, 40 if dice.random() < 0.1 else 3))
        time = now - dice.choice((0, 0, 0, 4, 9, 10, 11, 20))
        key, number = dice.choice('ab"'), dice.randrange(-9, 99)
        decimal = Decimal(number).scaleb(-dice.randrange(4))
        at, until = moment(time * 10**6 + dice.randrange(5)), moment((time // 30 + 1) * 30 * 10**6)
        event = (key, decimal, at) if dice.random() < 0.4 else (key, number, number / 7, decimal, at, until)
        found.append(("O" if len(event) == 3 else "A", event))
    return found


def _count(tx: Any, name: str) -> int:
    found: int = tx.arc_states.count(name)
    return found


@pytest.mark.parametrize("most", [0, 5, 10_000])
@pytest.mark.parametrize("kind", KINDS)
def test_a_state_that_is_stored_and_read_at_any_moment_is_the_same(room: Postroom, kind: str, most: int) -> None:
    spaces = " ".join(f"space {name} : {type}" for name, type in _TYPES.items())
    graph = check(typed(parse(f"domain d {spaces} space C arc c : A -> C {KINDS[kind]}", "g.flow")))
    ((arc, *_),) = graph.arcs.values()
    source, other, target = (graph.spaces[name].type for name in ("A", "O", "C"))
    fold = fold_of(arc, source, target, other)
    for seed in range(3):
        events = [said for said in some_events(seed) if kind == "join" or said[0] == "A"]
        memory, dice, name = MemoryStates(), random.Random(seed), f"{kind}-{seed}"
        given = [(number, *event) for number, event in enumerate(events)]
        take = fold.over(memory)
        once = [made for each in given for made in take([each])]
        found: list[Any] = []
        while given:
            some = given[: dice.randrange(1, 20)]
            del given[: len(some)]
            cut = dice.randrange(len(some))

            def work(tx: Any, some: Any = some, name: str = name, cut: int = cut) -> list[Any]:
                stored = StoredStates(tx.arc_states, name, fold)
                stored.read(most)
                take = fold.over(stored)
                made = take(some[:cut]) + take(some[cut:])
                stored.write(len(stored.writes))
                return made

            found += room.store.transact("step", work)
        assert found == once
        assert any(made.failure is None for _, made in once)
        kept = room.store.read(partial(_count, name=name))
        assert kept == sum(map(len, memory._rows.values()))


@pytest.mark.parametrize("kind", ["tumbling", "sliding", "session", "until", "join"])
def test_of_what_is_over_before_it_is_written_nothing_is_written(room: Postroom, kind: str) -> None:
    spaces = " ".join(f"space {name} : {type}" for name, type in _TYPES.items())
    graph = check(typed(parse(f"domain d {spaces} space C arc c : A -> C {KINDS[kind]}", "g.flow")))
    ((arc, *_),) = graph.arcs.values()
    fold = fold_of(arc, *(graph.spaces[name].type for name in ("A", "C", "O")))
    events = [(None, *said) for said in some_events(1) if kind == "join" or said[0] == "A"]

    def work(tx: Any) -> tuple[list[Any], list[Any]]:
        table = _Written(tx.arc_states)
        stored = StoredStates(table, "c", fold)  # type: ignore[arg-type]
        fold.over(stored)(events)
        stored.write(len(stored.writes))
        return table.put, table.removed

    put, removed = room.store.transact("step", work)
    assert removed == []
    assert 0 < len(put) < len(events) / 3


class _Written:
    """A table that tells what is written to it."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self.put: list[Any] = []
        self.removed: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def write(self, put: Any, removed: Any) -> None:
        self.put += put
        self.removed += removed


def test_a_state_goes_on_from_step_to_step(room: Postroom, load: Load, run: Run) -> None:
    load(GRAPH)
    for _ in range(3):
        publish(room, ("a", 4), ("b", 1), ("a", 0))
        run()
    assert said(room, "Big") == [["a", 12]]
    assert room.journal.verify().differences == ()


def test_the_state_outlives_the_process_and_a_retained_space_shows_every_change(
    url: str, tmp_path: Any, room: Postroom, load: Load, run: Run
) -> None:
    load(GRAPH.replace("arc big : Sums -> Big select [n: n > 10]", ""))
    publish(room, ("a", 4))
    run()
    publish(room, ("a", 5))
    run()
    assert said(room, "Sums") == [["a", 4], ["a", 9]]


def test_nothing_of_a_step_that_ends_before_its_commit_is_in_the_state(room: Postroom, load: Load, run: Run) -> None:
    load(GRAPH)
    publish(room, ("a", 4))
    faults.arm("step.committing", "raise")
    with pytest.raises(faults.FaultInjected):
        run()
    faults.disarm()
    run()
    publish(room, ("a", 7))
    run()
    assert said(room, "Big") == [["a", 11]]


def test_a_held_target_lets_no_event_into_the_state_before_its_turn(room: Postroom, load: Load, run: Run) -> None:
    load(GRAPH.replace("arc big : Sums -> Big select [n: n > 10]", ""))
    room.queues.set_password("Sums", password="pw")
    room.queues.disable("Sums", password="pw")
    publish(room, ("a", 4), ("a", 5))
    run()
    assert said(room, "Sums") == []
    room.queues.enable("Sums", password="pw")
    run()
    assert said(room, "Sums") == [["a", 4], ["a", 9]]


def test_an_arc_that_is_changed_or_deleted_begins_anew_and_others_go_on(room: Postroom, load: Load, run: Run) -> None:
    load(GRAPH)
    publish(room, ("a", 6))
    run()
    assert len(states(room)) == 1
    load(GRAPH.replace("n > 10", "n > 9"))
    publish(room, ("a", 6))
    run()
    assert said(room, "Big") == [["a", 12]]
    load(GRAPH.replace("sum(n)", "sum(n) + 0"))
    publish(room, ("a", 6), ("a", 7))
    run()
    assert said(room, "Big") == [["a", 12], ["a", 13]]
    load(GRAPH.replace("arc sums : B -> Sums collapse [k: k, n: n] by k => [k: k, n: sum(n)]", ""), drop=True)
    assert states(room) == []


def test_arcs_with_state_are_added_and_deleted_by_events(room: Postroom, load: Load, run: Run) -> None:
    load(GRAPH.replace("arc sums : B -> Sums collapse [k: k, n: n] by k => [k: k, n: sum(n)]", ""))
    room.flows.add_principal("operator", "pw")
    operator = room.client("operator", "pw")
    arc = 'AddArc: ["sums", "B", "Sums", Transform: ["collapse [k: k, n: n] by k", "[k: k, n: sum(n)]"]]'
    operator.publish("meta:d", arc)
    publish(room, ("a", 6), ("a", 7))
    run()
    assert said(room, "Big") == [["a", 13]]
    told = [message.body for message in room.queues.info("meta:d")]
    assert any("collapse [k: k, n: n] by k" in each for each in told)
    operator.publish("meta:d", 'DeleteArc: ["sums"]')
    assert states(room) == []


def test_a_disabled_arc_sees_nothing_and_a_durable_one_what_it_has_missed(room: Postroom, load: Load, run: Run) -> None:
    load(GRAPH.replace("n: sum(n)]", "n: sum(n)] durable"))
    room.flows.add_principal("operator", "pw")
    operator = room.client("operator", "pw")
    publish(room, ("a", 4))
    run()
    operator.publish("meta:d", 'DisableArc: ["sums"]')
    publish(room, ("a", 8))
    run()
    assert said(room, "Big") == []
    operator.publish("meta:d", 'EnableArc: ["sums"]')
    run()
    assert said(room, "Big") == [["a", 12]]


def test_an_arc_with_state_is_explained(room: Postroom, load: Load) -> None:
    load(GRAPH)
    explained = room.definitions.explain_arc("sums")
    assert explained.matched_by == "its state, event by event, in the commit of each step"
    assert explained.result == "[k: k, n: sum(n)]"


def test_what_is_no_event_is_told_once_and_is_no_part_of_a_state(room: Postroom, load: Load, run: Run) -> None:
    load(GRAPH)
    with pytest.raises(PostroomError):
        room.flows.publish("B", '["a", "four"]')
    room.send("B", "<x><k>a</k><n>11</n></x>", format="xml")
    run()
    assert said(room, "Big") == [["a", 11]]


def test_catalog_prints_what_loads_again(room: Postroom, load: Load, tmp_path: Any) -> None:
    load(GRAPH)
    printed = tmp_path / "d.flow"
    printed.write_bytes(room.definitions.files()["d.flow"])
    with postroom.open(str(tmp_path / "other.db")) as other:
        other.load(printed)
        arcs = [each.does for each in other.flows.graph().arcs]
    assert arcs == [each.does for each in room.flows.graph().arcs]


def test_steps_on_spark_come_to_the_same_state_and_a_dry_run_to_the_same_events(
    room: Postroom, load: Load, spark: SparkSession, tmp_path: Any
) -> None:
    load(GRAPH.replace("space B : [k: string, n: int]", "space B : [k: string, n: int] retain"))
    publish(room, *[("ab"[number % 2], number) for number in range(20)])
    room.run_until_idle(master="local[2]")
    assert said(room, "Big")[-1] == ["b", 100]
    assert len(said(room, "Big")) == 14
    tried = list(room.definitions.try_out(tmp_path / "graph.flow", master="local[2]"))
    made = [json.loads(each["body"]) for one in tried for each in one.as_dict()["actions"] if each["queue"] == "Sums"]
    assert made[-1] == {"k": "b", "n": 100}
    assert said(room, "Big")[-1] == ["b", 100], "nothing was changed"
