"""Arcs on Spark: they agree with their plain meaning, and what fails fails alone."""

from __future__ import annotations

import json
import random
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.faults.here import evaluate_here
from tests.flows.conftest import Load

import postroom
from postroom.engine.bounded_process import Ended
from postroom.engine.spark.executor_store import SETTING
from postroom.errors import FlowInvalid
from postroom.flows.evaluation import dataflow, paths, plans
from postroom.flows.evaluation.share import FlowShare
from postroom.flows.language import sql
from postroom.room import Postroom

NUMBERS = "[n: int, t: string]"


@pytest.fixture
def work(room: Postroom, spark: SparkSession) -> Callable[..., int]:
    """Work off what waits, on Spark."""

    def work() -> int:
        return room.run_until_idle(master="local[2]")

    return work


def stored(room: Postroom, queue: str) -> list[str]:
    return [message.body for message in room.queues.info(queue)]


# --- agreement ---


def pattern(chance: random.Random) -> str:
    number, text = chance.randint(-3, 3), chance.choice("abc")
    return chance.choice(
        [
            f"[n: {number}]",
            f"[n: x > {number}]",
            f"[n: x between {number} and {number + 2}, t: any]",
            f'[t: "{text}"]',
            f'[n: x != {number}, t: y >= "{text}"]',
            f'[{number}, "{text}"]',
            "any",
            "[n: x, t: y]",
        ]
    )


def arc(chance: random.Random, number: int, source: int, target: int) -> str:
    head = f"arc a{number} : S{source} -> S{target}"
    durable = chance.choice(["", "", " durable"])
    kind = chance.random()
    if kind < 0.4:
        return f"{head} select {pattern(chance)}{durable}"
    if kind < 0.5:
        return f"{head} merge{durable}"
    result = chance.choice(['[n: 2 * x, t: y + "!"]', "[n: x - 1, t: lower(y)]", '[n: length(y) + x, t: "k"]'])
    if kind < 0.8:
        return f"{head} transform [n: x, t: y] => {result}{durable}"
    return f"{head} transform [n: x, t: y] join rows [t: y, n: m > x] => [n: m, t: y]{durable}"


def graph(chance: random.Random) -> str:
    """Spaces in a row, arcs from earlier ones to later ones: there is no circle."""
    count = chance.randint(3, 6)
    lines = ["domain d allow * : disableArc, enableArc", f'table rows : {NUMBERS} from "rows.json"']
    lines += [f"space S{n} : {NUMBERS}{' retain' if chance.random() < 0.3 else ''}" for n in range(count)]
    for number in range(chance.randint(2, 8)):
        source = chance.randrange(count - 1)
        lines.append(arc(chance, number, source, chance.randrange(source + 1, count)))
    return "\n".join(lines)


def events(chance: random.Random, count: int) -> Iterator[tuple[str, str]]:
    for _ in range(count):
        said = {"n": chance.randint(-3, 3), "t": chance.choice(["a", "b", "c", "ab", "C"])}
        yield f"S{chance.randrange(3)}", json.dumps(said)


#: One graph whose plan is whole and one that is cut, small ones with arcs of every kind between them.
QUICK = (0, 15)
SEEDS = [pytest.param(seed, marks=() if seed in QUICK else pytest.mark.slow) for seed in range(60)]


@pytest.mark.parametrize("seed", SEEDS)
def test_spark_workers_and_the_plain_meaning_end_in_the_same_state(
    tmp_path: Path, postgres_url: str, spark: SparkSession, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where executors read events and leave what arcs deliver in the store, where a plan is cut, and where steps
    go to a worker process, or now to it and now to Spark."""
    chance = random.Random(seed)
    if seed % 2:
        monkeypatch.setattr(paths, "FLOW_COPIES_MAX", 0)
    file = tmp_path / "g.flow"
    file.write_text(graph(chance))
    rows = [{"t": chance.choice("abc"), "n": chance.randint(-3, 3)} for _ in range(5)]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    files = [tmp_path / f"{name}.db" for name in ("spark", "plain", "worker", "mixed")]
    rooms = [postroom.open(where) for where in (*map(str, files), postgres_url)]
    run = partial(all_run, rooms, chance)
    evaluate_here(rooms[1])
    for room in rooms:
        room.load(file)
    arcs = [each.name for each in rooms[0].flows.graph().arcs]
    for turn in range(3):
        for space, event in list(events(chance, 30)):
            for room in rooms:
                room.publish(space, event)
        chosen = chance.choice(arcs)
        for room in rooms:
            state = next(each.state for each in room.flows.graph().arcs if each.name == chosen)
            room.publish("meta:d", {"EnableArc" if state == "disabled" else "DisableArc": {"arcName": chosen}})
        if turn != 1:
            run(step_messages=20)
    run()
    for room in rooms:
        assert contents(room) == contents(rooms[1])
    for room in rooms:
        room.close()


def all_run(rooms: Sequence[Postroom], chance: random.Random, **options: Any) -> None:
    """Each in its own way; the last one's executors read and write in the store."""
    ways = ("always", None, "auto", chance.choice(["auto", "always"]), "always")
    confs: list[dict[str, str]] = [{}, {}, {}, {}, {SETTING: "store"}]
    for room, way, conf in zip(rooms, ways, confs, strict=True):
        room.run_until_idle(master="local[2]", conf=conf, spark=way, **options)


def contents(room: Postroom) -> dict[str, list[str]]:
    """All that is in a room, by place."""
    found = {}
    for count in room.queues.accept().queues:
        found[f"waits in {count.queue}"] = [message.body for message in room.queues.info(count.queue)]
        found[f"was in {count.queue}"] = [message.body for message in room.queues.history(count.queue)]
    return found


def diamonds(count: int, left: str = "merge", right: str = "merge") -> str:
    """So many diamonds of arcs in a row, from S0 to the last S."""
    lines = ["domain d space S0 : [n: int]"]
    for n in range(count):
        lines.append(f"space A{n} : [n: int] space B{n} : [n: int] space S{n + 1} : [n: int]")
        lines.append(f"arc a{n} : S{n} -> A{n} {left} arc b{n} : S{n} -> B{n} {right}")
        lines.append(f"arc c{n} : A{n} -> S{n + 1} merge arc e{n} : B{n} -> S{n + 1} merge")
    return "\n".join(lines)


def test_ten_diamonds_of_arcs_are_planned_once_each(room: Postroom, load: Load, work: Callable[..., int]) -> None:
    """An event that arrives by many ways arrives as often; the plan has every arc once."""
    load(diamonds(10))
    room_graph = room.store.read(room._parts.room_graphs.now)
    steps = [
        dataflow.ArcNetwork(room_graph.running, room_graph.keeping, None, cuts).ways(space)
        for cuts, space in _parts(room_graph)
    ]
    assert sorted(len(each) for each in steps) == [4] * 10, "40 arcs, each once"
    room.flows.publish_many("S0", ["[1]", "[2]"])
    work()
    assert [json.loads(body)["n"] for body in stored(room, "S10")] == [1] * 1024 + [2] * 1024


def _parts(room_graph: Any) -> list[tuple[list[str], str]]:
    cuts = dataflow.ArcNetwork(room_graph.running, room_graph.keeping).junctions("S0")
    return [(cuts, space) for space in ["S0", *cuts]]


def test_an_event_that_takes_one_way_of_very_many_arrives_once(
    room: Postroom, load: Load, work: Callable[..., int]
) -> None:
    load(diamonds(10, "select [n: > 5]", "select [n: <= 5]"))
    room.flows.publish_many("S0", ["[1]", "[6]", "[5]"])
    work()
    assert stored(room, "S10") == ['{"n":1}', '{"n":6}', '{"n":5}']


def test_more_ways_than_anyone_can_follow_are_refused(load: Load) -> None:
    with pytest.raises(FlowInvalid, match="ways"):
        load(diamonds(30))


# --- failure ---


def test_an_arc_that_cannot_work_out_an_event_delivers_an_error_and_the_others_what_they_have(
    room: Postroom, load: Load, work: Callable[..., int]
) -> None:
    load(
        """domain d space A : [n: int] space B : [n: int] space C : [n: int]
        arc b : A -> B merge arc c : A -> C transform [n: n] => [n: 10 % n]"""
    )
    room.flows.publish_many("A", [{"n": n} for n in (5, 0, 3)])
    work()
    assert stored(room, "B") == ['{"n":5}', '{"n":0}', '{"n":3}']
    assert stored(room, "C") == ['{"n":0}', '{"n":1}']
    (error,) = room.queues.info("postroom-errors")
    assert "<code>PF0001</code>" in error.body
    assert "arc c: a value is too large for its type, or divided by zero" in error.body
    assert '{"n":0}' in error.body
    assert error.cause is not None
    assert room.trace(error.cause)[0].target == "A"


def test_a_condition_without_a_value_is_an_error_too(room: Postroom, load: Load, work: Callable[..., int]) -> None:
    load(
        """domain d space A : [n: int, m: int] space B : [n: int, m: int] space C : [n: int]
        arc b : A -> B select [m: m, n: n > 10 % m]
        arc c : A -> C transform [m: m < 5, n: n > 10 % m] => [n: n]"""
    )
    room.flows.publish_many("A", [{"n": 5, "m": 3}, {"n": 5, "m": 0}, {"n": 0, "m": 3}, {"n": 9, "m": 7}])
    work()
    assert [json.loads(body)["n"] for body in stored(room, "B")] == [5, 9]
    assert [json.loads(body)["n"] for body in stored(room, "C")] == [5]
    assert [("arc b" in body, "arc c" in body) for body in stored(room, "postroom-errors")] == [
        (True, False),
        (False, True),
    ]


def test_an_event_that_ends_its_job_loses_only_the_arc_that_is_guilty(
    room: Postroom, load: Load, work: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No function of the language ends a job; one of Spark that does stands in for what is not known yet."""
    load(
        """domain d space A : [n: int] space B : [t: int] space C : [n: int] space D : [t: int]
        arc b : A -> B transform [n: n] => [t: abs(n)] arc c : A -> C merge arc d : B -> D merge"""
    )
    raising = "IF({0} = 7, CAST(raise_error('no') AS BIGINT), {0})"
    monkeypatch.setitem(sql.FUNCTIONS, "abs", raising.format)
    room.flows.publish_many("A", [{"n": n} for n in (1, 2, 3, 7, 4, 5, 6)])
    work()
    assert [json.loads(body)["t"] for body in stored(room, "D")] == [1, 2, 3, 4, 5, 6]
    assert [json.loads(body)["n"] for body in stored(room, "C")] == [1, 2, 3, 7, 4, 5, 6]
    (error,) = room.queues.info("postroom-errors")
    assert "arc b" in error.body
    assert "<rule>b</rule>" in error.body


def test_an_event_whose_other_arcs_are_too_late_at_last_is_an_error_and_the_engine_goes_on(
    room: Postroom, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine, what was in time while the guilty arc was looked for may be too late after that."""
    load(
        """domain d space A : [n: int] space B : [n: int] space C : [n: int]
        arc b : A -> B merge arc c : A -> C merge"""
    )
    real = FlowShare._effects

    def effects(share: FlowShare, way: Any, space: str, events: Any, aside: Any = None) -> Any:
        looking = sys._getframe(1).f_code.co_name == "end"
        if any('"n":7' in event.body for event in events) and not (looking and "d:b" in aside):
            raise Ended(in_time=False)
        return real(share, way, space, events, aside)

    monkeypatch.setattr(FlowShare, "_effects", effects)
    room.flows.publish_many("A", [{"n": n} for n in (6, 7, 8)])
    assert room.run_until_idle() == 3
    assert [stored(room, "B"), stored(room, "C")] == [['{"n":6}', '{"n":8}']] * 2
    (error,) = room.queues.info("postroom-errors")
    assert '{"n":7}' in error.body
    assert "exceeded the limit" in error.body


def test_an_arc_that_spark_cannot_plan_is_put_aside_by_name(
    room: Postroom, load: Load, work: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    load(
        """domain d space A : [n: int] space B : [t: int] space C : [n: int]
        arc b : A -> B transform [n: n > 1] => [t: abs(n)] arc c : A -> C merge"""
    )
    monkeypatch.setitem(sql.FUNCTIONS, "abs", "no_such_function({})".format)
    room.flows.publish_many("A", ["[1]", "[2]"])
    work()
    assert [stored(room, "B"), stored(room, "C")] == [[], ['{"n":1}', '{"n":2}']]
    errors = [message.body for message in room.queues.info("postroom-errors")]
    assert len(errors) == 2
    assert all("arc b: Spark cannot plan it" in body for body in errors)


@pytest.mark.parametrize(
    ("type", "pattern"),
    [
        ("decimal", "[v: > 99999999999999999999.999999999999999999]"),
        ("decimal", "[n: n, v: v > round(v, n)]"),
        ("float", "[v: > 1.7976931348623157e308]"),
        ("union [A: int, B: string]", '[v: != B: "x"]'),
        ("union [A: int, B: [a: decimal, b: {timestamp}]]", "[v: != A: 5]"),
        ("int", "[n: n, v: v > abs(n) + abs(v)]"),
        ("{decimal}", "[v: {1.0, 2, 2.5} + {3} + rest]"),
        ("date", "[n: n, v: v > v - n]"),
    ],
)
def test_what_can_be_subscribed_to_is_planned_and_stops_nobody(
    room: Postroom, load: Load, work: Callable[..., int], type: str, pattern: str
) -> None:
    event = {"decimal": "1.5", "float": "1.5", "int": "5", "{decimal}": "{1, 2, 2.50, 3, 4}", "date": '"2026-01-01"'}
    load(f"domain d space S : [n: int, v: {type}] space T : [n: int, v: {type}] arc t : S -> T merge")
    room.client("other").subscribe("S")
    room.client("hostile").subscribe("S", pattern)
    room.publish("S", f"[1, {event.get(type, 'A: 7')}]")
    work()
    assert [len(stored(room, name)) for name in ("T", "other")] == [1, 1]
    assert not [message for message in room.queues.info("postroom-errors") if "cannot plan" in message.body]


@pytest.mark.parametrize(
    ("type", "pattern"),
    [
        ("decimal", "[v: > 99999999999999999999999]"),
        ("float", "[v: < 1e400]"),
        ("decimal", "[v: > 1e999999999]"),
        ("union [A: int, B: string]", "[v: != C: 5]"),
        ("int", f"[v: v > {'-' * 3000}v]"),
        ("int", f"[v: v > {'1 + ' * 3000}v]"),
    ],
)
def test_what_cannot_be_planned_is_refused_with_its_place(room: Postroom, load: Load, type: str, pattern: str) -> None:
    load(f"domain d space S : [v: {type}]")
    with pytest.raises(FlowInvalid, match=r"pattern.*1:\d+"):
        room.client("hostile").subscribe("S", pattern)
    assert room.flows.subscriptions() == []


def test_what_rules_put_into_a_space_is_checked_when_it_flows_on(
    room: Postroom, load: Load, tmp_path: Path, work: Callable[..., int]
) -> None:
    load("domain d space A : [n: int] space B : [n: int] arc b : A -> B select [n: n > 1]")
    (tmp_path / "r.demaq").write_text(
        "create queue orders kind basic mode persistent\n"
        'create rule send for orders if (/order) then do enqueue concat("[", string(/order), "]") into A'
    )
    room.load(tmp_path / "r.demaq")
    room.send_many("orders", [f"<order>{each}</order>" for each in ("5", "many", "0", "7")], format="xml")
    work()
    assert stored(room, "B") == ['{"n":5}', '{"n":7}']
    (error,) = room.queues.info("postroom-errors")
    assert "a value of type int is wanted" in error.body


def test_what_arcs_deliver_enters_slices_and_wakes_rules(
    room: Postroom, load: Load, tmp_path: Path, work: Callable[..., int]
) -> None:
    load("domain d space A : [n: int, k: string] space B : [n: int, k: string] arc b : A -> B select [n: n > 1]")
    (tmp_path / "r.demaq").write_text(
        "create queue answers kind basic mode persistent\n"
        "create property letter as xs:string fixed queue B value ?k\n"
        "create slicing letters on letter\n"
        "create rule answer for letters if (exists(qs:slice())) then do enqueue <n>{count(qs:slice())}</n> into answers"
    )
    room.load(tmp_path / "r.demaq")
    room.flows.publish_many("A", [{"n": 5, "k": "x"}, {"n": 0, "k": "x"}, {"n": 7, "k": "x"}, {"n": 8, "k": "y"}])
    work()
    assert stored(room, "answers") == ["<n>2</n>", "<n>2</n>", "<n>1</n>"]
    assert len(room.journal.slice("letters", "x")) == 2


def test_what_a_door_of_the_rules_refuses_is_an_error_and_not_the_end_of_the_step(
    room: Postroom, load: Load, tmp_path: Path, work: Callable[..., int]
) -> None:
    load("domain d space A : [n: int] space B : [n: int] space C : [n: int] arc b : A -> B merge arc c : A -> C merge")
    (tmp_path / "r.demaq").write_text(
        "create property inverse as xs:integer fixed queue B value 60 idiv xs:integer(?n)\n"
        "create slicing inverses on inverse"
    )
    room.load(tmp_path / "r.demaq")
    room.flows.publish_many("A", [{"n": 5}, {"n": 0}, {"n": 6}])
    work()
    assert stored(room, "B") == stored(room, "C") == ['{"n":5}', '{"n":6}']
    (error,) = room.queues.info("postroom-errors")
    assert "<code>entry-refused</code>" in error.body
    assert len(room.journal.slice("inverses", "12")) == 1


def test_an_event_for_a_space_that_has_another_type_now_stops_nobody(
    room: Postroom, load: Load, tmp_path: Path, work: Callable[..., int]
) -> None:
    load("domain d space A : [n: int] space B : [n: int] arc b : A -> B merge")
    (tmp_path / "r.demaq").write_text("create property k as xs:string fixed queue B value 'k' create slicing s on k")
    room.load(tmp_path / "r.demaq")
    room.publish("A", [1])
    changed = "domain d space A : [n: int] space B : [t: string] arc b : A -> B transform [n: n] => [t: string(n)]"
    load(changed, drop=True)
    room.publish("A", [2])
    work()
    assert stored(room, "B") == ['{"t":"2"}']
    assert stored(room, "A") == stored(room, "postroom-errors") == []


# --- plans ---


def test_a_graph_is_planned_once_however_often_it_and_others_change(
    room: Postroom, load: Load, work: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[str] = []
    original = plans._delivered

    def counted(*given: Any) -> Any:
        planned.append("plan")
        return original(*given)

    monkeypatch.setattr(plans, "_delivered", counted)
    monkeypatch.setattr(plans, "_plans", OrderedDict())
    load(
        f"""domain d space A : {NUMBERS} space B : {NUMBERS} arc plannedOnce : A -> B select [n: n > 1]
        domain e allow * : disableArc, enableArc
        space X : {NUMBERS} space Y : {NUMBERS} arc x : X -> Y merge"""
    )
    for turn in range(4):
        room.publish("A", f'[{turn}, "x"]')
        room.publish("meta:e", {"EnableArc" if turn % 2 else "DisableArc": {"arcName": "x"}})
        work()
    assert len(stored(room, "B")) == 2
    assert planned == ["plan"]


def test_tables_are_broadcast(room: Postroom, load: Load, tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "t.csv").write_text("broker,city\nb,Zurich\n")
    load(
        """domain d space A : [broker: string] space B : [city: string]
        table t : [broker: string, city: string] from "t.csv"
        arc b : A -> B transform [broker: b] join t [broker: b, city: c] => [city: c]"""
    )
    plan = room.definitions.spark_plan("A", master="local[2]")
    assert "BroadcastHashJoin" in plan
    assert "SortMergeJoin" not in plan


def test_an_engine_that_runs_takes_changes_of_the_graph_between_two_steps(
    room: Postroom, load: Load, url: str, spark: SparkSession
) -> None:
    """Events and subscriptions come while it works; each event meets one whole graph, and none is lost."""
    import threading

    load(f"domain d space A : {NUMBERS} space All : {NUMBERS} arc all : A -> All merge")
    engine = threading.Thread(target=room.run, kwargs={"master": "local[2]"})
    engine.start()
    try:
        with postroom.open(url) as other:
            for turn in range(6):
                other.client(f"c{turn}").subscribe("A", "[n: any]")
                other.flows.publish_many("A", [{"n": turn, "t": str(n)} for n in range(20)])
            last = other.client("c5")
            for _ in range(20):
                assert last.receive(wait=60).message is not None
    finally:
        room.stop()
        engine.join()
    room.run_until_idle(master="local[2]")
    assert len(stored(room, "All")) == 120
    for turn in range(5):
        turns = [json.loads(body)["n"] for body in stored(room, f"c{turn}")]
        assert turns == sorted(turns)
        assert {n: turns.count(n) for n in set(turns)} == dict.fromkeys(range(turn, 6), 20)
