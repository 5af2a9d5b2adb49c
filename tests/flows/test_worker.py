"""Arcs whose executors read events and leave what is delivered in the store: the outcome is that of the other way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession
from tests.conftest import Urls
from tests.engine.outcome import staged, told, verbs

import postroom
from postroom.engine.depot import SETTING, Depot, Receipt, leave_all
from postroom.errors import StoreUnavailable
from postroom.flows import plans
from postroom.flows.chart import Chart
from postroom.flows.plans import Flow, flow_of
from postroom.model.key import key_number
from postroom.room import Postroom
from postroom.store.batch import Stale

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
            room.sweep()
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
    give, outcome = Flow._give, Flow._run

    def noted(flow: Flow, name: str, value: str | None) -> None:
        given.append(value or "")
        give(flow, name, value)

    def heard(flow: Flow, *about: Any) -> Any:
        found = outcome(flow, *about)
        came.extend(found.column(0).to_pylist())
        return found

    monkeypatch.setattr(Flow, "_give", noted)
    monkeypatch.setattr(Flow, "_run", heard)
    monkeypatch.setattr(plans, "packed", lambda _: pytest.fail("an event went to Spark"))
    room.publish_many("In", events(600))
    run(room)
    assert len(room.info("Large").messages) == 594
    assert came
    assert max(map(len, came)) < 200
    assert any(given)
    assert not any("postgres" in each for each in given)


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

    def damage() -> None:
        with psycopg.connect(room.url, autocommit=True) as connection:
            connection.execute("UPDATE messages SET body = 'rot' WHERE key = %s", (key_number(keys[7]),))

    before_the_job(monkeypatch, damage)
    run(room)
    assert [json.loads(each.body)["n"] for each in room.info("Large")] == [6, 8, 9]
    assert [each.verb for each in room.trace(keys[7])] == ["put", "set-aside"]
    assert room.info("postroom-errors").messages == []
    assert staged(room) == 0


def test_an_event_that_is_gone_before_it_is_read_flows_nowhere(
    room: Postroom, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.publish_many("In", events(10)[::-1])

    def take() -> None:
        with postroom.open(room.url) as other:
            assert other.receive("In").message is not None

    before_the_job(monkeypatch, take)
    run(room)
    assert [json.loads(each.body)["n"] for each in room.info("Large")] == [8, 7, 6]


def test_a_room_that_executors_cannot_reach_is_no_fault_of_an_event(
    room: Postroom, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.publish_many("In", events(10))
    away = "postgresql://nobody:secret@127.0.0.1:1/nowhere"

    def elsewhere(spark: SparkSession, chart: Chart, living: frozenset[str], space: str, url: str) -> Flow:
        return flow_of(spark, chart, living, space, away)

    monkeypatch.setattr("postroom.flows.share.flow_of", elsewhere)
    with pytest.raises(StoreUnavailable, match=r"an executor could not use the room: .*127\.0\.0\.1") as raised:
        run(room)
    assert "secret" not in str(raised.value)
    monkeypatch.undo()
    run(room)
    assert len(room.info("Large").messages) == 4
    assert room.info("postroom-errors").messages == []


def test_an_error_at_the_door_of_rules_has_what_the_event_says(urls: Urls, tmp_path: Path, spark: SparkSession) -> None:
    """The engine has not read the event, and fetches it for the error message."""
    rules = (
        "create property inverse as xs:integer fixed queue Large value 60 idiv (xs:integer(?n) - 7)\n"
        "create slicing inverses on inverse"
    )
    with load(postroom.open(urls()), tmp_path, rules) as room:
        room.publish_many("In", events(10))
        run(room)
        assert [json.loads(each.body)["n"] for each in room.info("Large")] == [6, 8, 9]
        (error,) = room.info("postroom-errors")
        assert "<code>entry-refused</code>" in error.body
        assert '{"n":7,"broker":"b"}</initialMessage>' in error.body


def test_notes_of_one_attempt_are_heard_beside_those_of_another(room: Postroom) -> None:
    """A second attempt that finds a message gone is heard, although the first left a note."""
    depot = Depot(room.store.address or "", 1)
    bay = depot.bay()
    ticket = bay.ticket()
    ticket.note(4, Receipt(0, unfit=[(3, "no number")]))
    assert ticket.leave(0, b"said")
    left = bay.left(ticket, [Receipt(0)])
    assert (left.answers, left.unfit) == ([b"said"], {3: "no number"})
    ticket.note(5, Receipt(0, gone=True))
    with pytest.raises(Stale):
        bay.left(ticket, [Receipt(0)])
    depot.close()
