"""Arcs whose executors read events and leave what is delivered in the store: the outcome is that of the other way."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession
from tests.conftest import Urls
from tests.engine.outcome import staged, told, verbs

import postroom
from postroom.engine.runner import Totals
from postroom.engine.spark.executor_store import SETTING, Bay, Receipt, Ticket, leave_all
from postroom.errors import StoreUnavailable
from postroom.flows.evaluation import plans
from postroom.flows.evaluation.plans import Flow, flow_of
from postroom.flows.graph.versions import RoomGraph
from postroom.model.key import key_number
from postroom.room import Postroom
from postroom.store.kernel.batch import Stale
from postroom.store.tables.staging import Staging

GRAPH = """
domain d
table cities : [broker: string, city: string] from "cities.json"
space In : [n: int, broker: string]
space Large : [n: int, broker: string]
space Sums : [total: int] retain
space Placed : [n: int, city: string]
arc large : In -> Large select [n: n > 5]
arc sums : In -> Sums transform [n: n] => [total: n * 1000000000]
arc placed : In -> Placed transform [n: n, broker: b] join cities [broker: b, city: c] => [n: n, city: c]
"""
RULES = """
create queue orders kind basic mode persistent
create queue done kind basic mode persistent
create rule enter for orders
if (/order) then do enqueue <event><n>{string(/order/n)}</n><broker>{string(/order/by)}</broker></event> into In
create rule note for Large
if (?n > 0) then do enqueue <large>{string(?n)}</large> into done
"""
OTHER = """
create queue other kind basic mode persistent
create rule other for other if (/o) then do enqueue <x/> into done
"""
EMPTY = ("[]", "[broker: b, city: c]")
UNMATCHED = ('[{"broker":"b","city":"Z"}]', '[broker: "nobody", city: c]')
MASTER = "local[2]"
THERE = {SETTING: "store"}


@pytest.fixture
def room(urls: Urls, tmp_path: Path) -> Iterator[Postroom]:
    with postroom.open(urls()) as opened:
        yield load(opened, tmp_path)
    leave_all()


def load(room: Postroom, folder: Path, rules: str = "") -> Postroom:
    (folder / "cities.json").write_text(
        json.dumps([{"broker": "b", "city": "Zurich"}, {"broker": "b", "city": "Rome"}])
    )
    (folder / "graph.flow").write_text(GRAPH)
    room.load(folder / "graph.flow")
    if rules:
        (folder / "rules.demaq").write_text(rules)
        room.load(folder / "rules.demaq")
    return room


def events(count: int) -> list[dict[str, Any]]:
    return [{"n": n, "broker": "b" if n % 2 else "c"} for n in range(count)]


def run(room: Postroom, **options: Any) -> int:
    return room.run_until_idle(master=MASTER, conf=THERE, **options)


def test_both_ways_end_alike(urls: Urls, tmp_path: Path, spark: SparkSession) -> None:
    """Joins, events that a rule has made in XML, such as do not fit, and numbers that an arc cannot hold."""
    ends = []
    for way in ("driver", "store"):
        with load(postroom.open(urls()), tmp_path, RULES) as room:
            for event in [*events(30), {"n": 2**62, "broker": "b"}]:
                room.publish("In", event)
            said = [*range(10), "no number", 2**62]
            room.send_many("orders", [f"<order><n>{n}</n><by>b</by></order>" for n in said], format="xml")
            room.run_until_idle(master=MASTER, conf={SETTING: way}, step_messages=15)
            room.engine.sweep()
            ends.append((told(room), verbs(room)))
            assert len(ends[-1][0]["done"]) == 24 + 1 + 4 + 1
            errors = [each[1] for each in ends[-1][0]["postroom-errors"]]
            assert sum("too large for its type" in each for each in errors) == 2
            assert sum("no number" in each for each in errors) == 1
            assert len(errors) == 3
            assert staged(room) == 0
    assert ends[0] == ends[1]


def test_executors_get_keys_and_give_receipts(
    room: Postroom, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No property of a job and no outcome of one has what an event says, or the address of the room."""
    given: list[str] = []
    came: list[bytes] = []
    give, outcome = SparkContext.setLocalProperty, Flow._run

    def noted(context: SparkContext, name: str, value: str) -> None:
        given.append(value or "")
        give(context, name, value)

    def heard(flow: Flow, *about: Any) -> Any:
        found = outcome(flow, *about)
        came.extend(found.column(0).to_pylist())
        return found

    monkeypatch.setattr(SparkContext, "setLocalProperty", noted)
    monkeypatch.setattr(Flow, "_run", heard)
    monkeypatch.setattr(plans, "events_of", lambda _: pytest.fail("an event went to Spark"))
    room.flows.publish_many("In", events(600))
    run(room)
    assert len(room.queues.info("Large").messages) == 594
    assert came
    assert max(map(len, came)) < 200
    assert any(given)
    assert not any("postgres" in each for each in given)


def test_a_body_that_many_arcs_deliver_is_left_once(
    urls: Urls, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graph with an index: a hundred consumers of one event would make an answer a hundred times as large."""
    sizes: list[int] = []
    answers = Bay.answers

    def noted(bay: Bay, *about: Any) -> list[bytes]:
        found = answers(bay, *about)
        sizes.extend(map(len, found))
        return found

    monkeypatch.setattr(Bay, "answers", noted)
    arcs = "".join(f"space C{n} : [t: string] arc a{n} : S -> C{n} select [t: t > 'a']\n" for n in range(100))
    (tmp_path / "many.flow").write_text(f"domain d space S : [t: string]\n{arcs}".replace("'", '"'))
    with postroom.open(urls()) as room:
        room.load(tmp_path / "many.flow")
        room.flows.publish_many("S", [{"t": "b" * 5_000}, {"t": "c" * 5_000}, {"t": "A"}])
        run(room)
        assert {len(room.queues.info(f"C{n}").messages) for n in range(100)} == {2}
    assert sum(sizes) < 100_000


# --- damage and change between the claim and the reading ---


def before_the_job(monkeypatch: pytest.MonkeyPatch, *acts: Callable[[], object]) -> None:
    """Each act happens once, after a claim."""
    left, outcome = list(acts), Flow._run

    def late(flow: Flow, *about: Any) -> Any:
        if left:
            left.pop(0)()
        return outcome(flow, *about)

    monkeypatch.setattr(Flow, "_run", late)


def test_an_event_that_executors_find_damaged_is_set_aside(
    room: Postroom, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [room.publish("In", event).key for event in events(10)]

    before_the_job(monkeypatch, lambda: rot(room, keys[7]))
    run(room)
    assert [json.loads(each.body)["n"] for each in room.queues.info("Large")] == [6, 8, 9]
    assert [each.verb for each in room.trace(keys[7])] == ["put", "set-aside"]
    assert room.queues.info("postroom-errors").messages == []
    assert staged(room) == 0


def test_an_event_that_is_gone_before_it_is_read_flows_nowhere(
    room: Postroom, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.flows.publish_many("In", events(10)[::-1])

    def take() -> None:
        with postroom.open(room.url) as other:
            assert other.receive("In").message is not None

    before_the_job(monkeypatch, take)
    run(room)
    assert [json.loads(each.body)["n"] for each in room.queues.info("Large")] == [8, 7, 6]


def test_a_room_that_executors_cannot_reach_is_no_fault_of_an_event(
    room: Postroom, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.flows.publish_many("In", events(10))
    away = "postgresql://nobody:secret@127.0.0.1:1/nowhere"

    def elsewhere(
        spark: SparkSession, room_graph: RoomGraph, living: frozenset[str], space: str, url: str, **options: Any
    ) -> Flow:
        return flow_of(spark, room_graph, living, space, away, **options)

    monkeypatch.setattr("postroom.flows.evaluation.plans.flow_of", elsewhere)
    with pytest.raises(StoreUnavailable, match=r"an executor could not use the room: .*127\.0\.0\.1") as raised:
        run(room)
    assert "secret" not in str(raised.value)
    monkeypatch.undo()
    run(room)
    assert len(room.queues.info("Large").messages) == 4
    assert room.queues.info("postroom-errors").messages == []


def test_an_error_at_the_door_of_rules_has_what_the_event_says(urls: Urls, tmp_path: Path, spark: SparkSession) -> None:
    """The engine has not read the event, and fetches it for the error message."""
    rules = (
        "create property inverse as xs:integer fixed queue Large value 60 idiv (xs:integer(?n) - 7)\n"
        "create slicing inverses on inverse"
    )
    with load(postroom.open(urls()), tmp_path, rules) as room:
        room.flows.publish_many("In", events(10))
        run(room)
        assert [json.loads(each.body)["n"] for each in room.queues.info("Large")] == [6, 8, 9]
        (error,) = room.queues.info("postroom-errors")
        assert "<code>entry-refused</code>" in error.body
        assert '{"n":7,"broker":"b"}</initialMessage>' in error.body


# --- what must not be passed over ---


def rot(room: Postroom, key: str) -> None:
    with psycopg.connect(room.url, autocommit=True) as connection:
        connection.execute("UPDATE messages SET body = 'rot' WHERE key = %s", (key_number(key),))


def test_a_commit_of_rules_leaves_the_answers_of_steps_under_way(
    urls: Urls, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps of several stages are under way at once, and are not committed in the order of their numbers."""
    cleared, changed, waited, missed = [0], threading.Condition(), list[int](), list[int]()
    clear, answers = Staging.clear, Bay.answers

    def clearing(staging: Staging, fence: int, step: int, before: int) -> None:
        clear(staging, fence, step, before)

        def tell() -> None:
            with changed:
                cleared[0] = max(cleared[0], step)
                changed.notify_all()

        threading.Timer(0.3, tell).start()  # when it is committed

    def late(bay: Bay, ticket: Ticket, receipts: Iterable[Receipt]) -> list[bytes]:
        come = list(receipts)
        with changed:
            if not waited and bay.step == min(bay.answer_store.under_way):  # it is committed when the next one waits
                assert changed.wait_for(lambda: waited, timeout=60)
            elif not waited:
                waited.append(bay.step)
                changed.notify_all()
                assert changed.wait_for(lambda: cleared[0] > bay.step, timeout=60)
        try:
            return answers(bay, ticket, come)
        except Stale:
            missed.append(bay.step)
            raise

    monkeypatch.setattr(Staging, "clear", clearing)
    monkeypatch.setattr(Bay, "answers", late)
    other = (
        "create queue other kind basic mode persistent create rule o for other if (/o) then do enqueue <x/> into done"
    )
    with load(postroom.open(urls()), tmp_path, f"{RULES}\n{other}") as room:
        keys = [room.publish("In", {"n": n + 10, "broker": "b"}).key for n in range(45)]
        rot(room, keys[20])
        sent: list[str] = []

        def send(_: Totals) -> None:  # rules have their turn before the one that waits is asked for
            if waited and not sent:
                sent.append(room.send("other", "<o/>", format="xml").key)

        room.engine.run_totals(until_idle=True, master=MASTER, conf=THERE, step_messages=15, progress=send)
        assert waited
        assert cleared[0] > waited[0]
        assert missed == []
        assert len(room.queues.history("Large").messages) == 44
        assert [each.verb for each in room.trace(keys[20])] == ["put", "set-aside"]
        assert staged(room) == 0


@pytest.mark.parametrize("way", ["driver", "store"])
def test_no_event_is_passed_over_when_the_cluster_grows(
    room: Postroom, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """A plan reads as many parts as it was made for, and a step is cut into as many."""
    room.publish("In", {"n": 7, "broker": "b"})
    room.run_until_idle(master=MASTER, conf={SETTING: way})
    cores = iter([2, 4, *[4] * 100])
    monkeypatch.setattr(SparkContext, "defaultParallelism", property(lambda _: next(cores)))
    room.flows.publish_many("In", [{"n": n + 10, "broker": "b"} for n in range(2_000)])
    room.run_until_idle(master=MASTER, conf={SETTING: way}, step_messages=1_000)
    assert len(room.queues.info("Large").messages) == 2_001


@pytest.mark.parametrize(("rows", "pattern"), [EMPTY, UNMATCHED], ids=["empty", "unmatched"])
@pytest.mark.parametrize("way", ["driver", "store"])
def test_what_is_no_event_is_told_where_no_arc_can_deliver_anything(
    urls: Urls, tmp_path: Path, spark: SparkSession, way: str, rows: str, pattern: str
) -> None:
    """Spark leaves out what a plan need not read, and there what is wrong with a message would be found."""
    graph = GRAPH[: GRAPH.index("space Large")] + "space Placed : [n: int, city: string]\n"
    graph += f"arc placed : In -> Placed transform [n: n, broker: b] join cities {pattern} => [n: n, city: c]"
    (tmp_path / "cities.json").write_text(rows)
    (tmp_path / "g.flow").write_text(graph)
    (tmp_path / "r.demaq").write_text(RULES[: RULES.index("create rule note")])
    with postroom.open(urls()) as room:
        room.load(tmp_path / "g.flow")
        room.load(tmp_path / "r.demaq")
        room.send_many("orders", [f"<order><n>{n}</n><by>b</by></order>" for n in (1, "no number", 2)], format="xml")
        room.run_until_idle(master=MASTER, conf={SETTING: way})
        (error,) = room.queues.info("postroom-errors")
        assert "no number" in error.body
        key = room.publish("In", {"n": 1, "broker": "b"}).key
        rot(room, key)
        room.run_until_idle(master=MASTER, conf={SETTING: way})
        assert [each.verb for each in room.trace(key)] == ["put", "set-aside"]
