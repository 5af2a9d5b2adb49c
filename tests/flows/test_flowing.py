"""Events on their way: which graph they meet, in which order they arrive, what is kept of them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.flows.conftest import Load

import postroom
from postroom.errors import EventInvalid, QueueInUse
from postroom.model.message import Draft
from postroom.room import Postroom
from postroom.store.kernel.transaction import Transaction

TRADES = "[issue: string, price: int]"
GRAPH = f"""
domain trading
allow operator : addArc, deleteArc, addSpace, deleteSpace, disableArc, enableArc
space NYSE : {TRADES}
space Big  : {TRADES}
space Hot  : {TRADES} retain
space Out  : {TRADES}
arc big : NYSE -> Big select [price: p > 75]
arc hot : NYSE -> Hot select [price: p > 100]
arc out : Hot -> Out merge
"""


def said(room: Postroom, queue: str) -> list[Any]:
    return [json.loads(message.body) for message in room.queues.info(queue)]


def issues(room: Postroom, queue: str) -> list[str]:
    return [event["issue"] for event in said(room, queue)]


@pytest.fixture
def operator(room: Postroom, load: Load) -> Any:
    load(GRAPH)
    room.flows.add_principal("operator", "pw")
    return room.client("operator", "pw")


def test_one_step_takes_an_event_from_its_source_to_all_its_consumers(
    room: Postroom, load: Load, run: Callable[..., int]
) -> None:
    load(GRAPH)
    room.flows.publish_many("NYSE", ['["IBM", 80]', '["HP", 20]', '["SUN", 120]'])
    totals = room.engine.run_totals(until_idle=True)
    assert (totals.steps, totals.messages, totals.failures) == (1, 3, 0)
    assert issues(room, "Big") == ["IBM", "SUN"]
    assert issues(room, "Out") == ["SUN"]
    assert said(room, "NYSE") == []


def test_a_space_in_the_middle_keeps_what_passes_only_if_it_retains(
    room: Postroom, load: Load, run: Callable[..., int]
) -> None:
    load(GRAPH.replace(" retain", ""))
    room.publish("NYSE", '["SUN", 120]')
    run()
    assert [room.queues.info("Hot").messages, room.queues.history("Hot").messages] == [[], []]
    load(GRAPH)
    room.publish("NYSE", '["IBM", 130]')
    run()
    (kept,) = room.queues.history("Hot")
    assert json.loads(kept.body)["issue"] == "IBM"
    assert [event.verb for event in room.trace(kept.key)] == ["put", "take"]
    assert {event.by for event in room.trace(kept.key)} == {"arc hot"}
    assert room.queues.info("Hot").messages == []
    assert issues(room, "Out") == ["SUN", "IBM"]


def test_an_event_reaches_a_target_once_per_arc_that_passes_it_in_the_order_of_its_source(
    room: Postroom, load: Load, run: Callable[..., int]
) -> None:
    load(
        f"""domain d space A : {TRADES} space B : {TRADES}
        arc one : A -> B select [price: p > 10] arc two : A -> B select [price: p > 20] arc three : A -> B merge"""
    )
    room.flows.publish_many("A", [f'["{name}", {price}]' for name, price in (("x", 30), ("y", 5), ("z", 15))])
    run(step_messages=2)
    assert issues(room, "B") == ["x", "x", "x", "y", "z", "z"]


def test_an_event_meets_the_graph_of_the_moment_when_it_was_published(
    room: Postroom, load: Load, run: Callable[..., int]
) -> None:
    load(GRAPH)
    desk = room.client("desk")
    room.publish("NYSE", '["early", 80]')
    desk.subscribe("NYSE", "[price: p > 75]")
    room.publish("NYSE", '["mine", 81]')
    desk.unsubscribe()
    room.publish("NYSE", '["late", 82]')
    run()
    assert issues(room, "Big") == ["early", "mine", "late"]
    assert issues(room, "desk") == ["mine"], "it was published while the desk had subscribed"
    again = room.client("desk2")
    again.subscribe("NYSE")
    run()
    assert issues(room, "desk2") == []


def test_a_disabled_arc_skips_what_is_published_meanwhile_even_if_the_engine_comes_later(
    room: Postroom, operator: Any, run: Callable[..., int]
) -> None:
    room.publish("NYSE", '["before", 80]')
    operator.publish("meta:trading", 'DisableArc: ["big"]')
    room.publish("NYSE", '["meanwhile", 81]')
    operator.publish("meta:trading", 'EnableArc: ["big"]')
    room.publish("NYSE", '["after", 82]')
    run()
    assert issues(room, "Big") == ["before", "after"]
    assert said(room, "NYSE") == []


def test_a_space_whose_only_arc_is_disabled_still_lets_its_events_go(
    room: Postroom, load: Load, run: Callable[..., int]
) -> None:
    load(f"domain d allow * : disableArc space A : {TRADES} space B : {TRADES} arc a : A -> B merge")
    room.publish("meta:d", 'DisableArc: ["a"]')
    room.publish("A", '["gone", 1]')
    assert run() == 1
    assert said(room, "A") == said(room, "B") == []


@pytest.mark.parametrize("work_between", [True, False])
def test_a_durable_arc_delivers_what_it_missed_before_anything_new(
    room: Postroom, load: Load, run: Callable[..., int], work_between: bool
) -> None:
    load(GRAPH)
    desk = room.client("desk")
    desk.subscribe("NYSE", "[price: p > 75]", durable=True)
    room.flows.publish_many("NYSE", ['["1", 80]', '["-", 5]'])
    desk.disconnect()
    for number in (2, 3):
        room.publish("NYSE", f'["{number}", 80]')
        if work_between:
            run()
    assert room.flows.graph().arcs[-1].kept == (2 if work_between else 0)
    desk.connect()
    room.publish("NYSE", '["4", 80]')
    desk.disconnect()
    room.publish("NYSE", '["5", 80]')
    desk.connect()
    room.publish("NYSE", '["6", 80]')
    run(step_messages=2)
    assert issues(room, "desk") == ["1", "2", "3", "4", "5", "6"]
    assert issues(room, "Big") == ["1", "2", "3", "4", "5", "6"]
    assert room.flows.graph().arcs[-1].kept == 0


def test_a_durable_transform_in_the_middle_of_a_chain_catches_up_through_the_rest_of_it(
    room: Postroom, load: Load, run: Callable[..., int]
) -> None:
    load(
        """domain d allow * : disableArc, enableArc
        space A : [n: int] space B : [n: int] space C : [n: int] space D : [n: int]
        arc first : A -> B merge
        arc twice : B -> C transform [n: n > 0] => [n: 2 * n] durable
        arc last : C -> D select [n: n < 100]"""
    )
    room.publish("meta:d", 'DisableArc: ["twice"]')
    room.flows.publish_many("A", [{"n": n} for n in (1, -1, 2, 70)])
    run()
    assert said(room, "D") == []
    room.publish("meta:d", 'EnableArc: ["twice"]')
    room.publish("A", {"n": 3})
    run()
    assert [event["n"] for event in said(room, "D")] == [2, 4, 6]


def test_a_durable_arc_that_is_disabled_again_when_the_engine_comes_keeps_the_order(
    room: Postroom, load: Load, run: Callable[..., int]
) -> None:
    load(GRAPH)
    desk = room.client("desk")
    desk.subscribe("NYSE", durable=True)
    desk.disconnect()
    room.publish("NYSE", '["1", 80]')
    desk.connect()
    room.publish("NYSE", '["2", 80]')
    desk.disconnect()
    room.publish("NYSE", '["3", 80]')
    run()
    assert issues(room, "desk") == ["1", "2"]
    desk.connect()
    run()
    assert issues(room, "desk") == ["1", "2", "3"]


def test_nothing_overtakes_what_a_durable_arc_has_missed_even_if_that_is_held(
    room: Postroom, load: Load, run: Callable[..., int]
) -> None:
    load(GRAPH)
    desk = room.client("desk")
    desk.subscribe("NYSE", durable=True)
    desk.disconnect()
    room.publish("NYSE", '["1", 80]')
    run()
    desk.connect()
    room.queues.set_password("arc:desk_NYSE", password="pw")
    room.queues.disable("arc:desk_NYSE", password="pw")
    room.publish("NYSE", '["2", 80]')
    run()
    assert issues(room, "desk") == []
    room.queues.enable("arc:desk_NYSE", password="pw")
    run()
    assert issues(room, "desk") == ["1", "2"]


def test_a_space_in_the_middle_whose_only_arc_is_disabled_skips_and_keeps_nothing(
    room: Postroom, load: Load, run: Callable[..., int]
) -> None:
    load(
        f"""domain d allow * : disableArc, enableArc
        space A : {TRADES} space M : {TRADES} space B : {TRADES} arc am : A -> M merge arc mb : M -> B merge"""
    )
    room.publish("meta:d", 'DisableArc: ["mb"]')
    room.publish("A", '["1", 1]')
    room.publish("meta:d", 'EnableArc: ["mb"]')
    room.publish("A", '["2", 1]')
    run()
    assert issues(room, "B") == ["2"]
    assert issues(room, "M") == []


def test_what_a_deleted_durable_arc_kept_stays_readable(room: Postroom, load: Load, run: Callable[..., int]) -> None:
    load(GRAPH)
    desk = room.client("desk")
    desk.subscribe("NYSE", durable=True)
    desk.disconnect()
    room.publish("NYSE", '["kept", 1]')
    run()
    desk.unsubscribe()
    assert issues(room, "arc:desk_NYSE") == ["kept"]


def test_a_new_type_is_for_new_events_and_those_that_wait_meet_the_old_graph(
    room: Postroom, load: Load, run: Callable[..., int]
) -> None:
    load("domain d space A : [n: int] space B : [n: int] arc a : A -> B select [n: n > 1]")
    room.publish("A", {"n": 5})
    with pytest.raises(QueueInUse, match="A"):
        load("domain d space A : [t: string] space B : [t: string]")
    load('domain d space A : [t: string] space B : [t: string] arc a : A -> B select [t: t > "k"]', drop=True)
    room.publish("A", {"t": "z"})
    with pytest.raises(EventInvalid, match="there is no field n"):
        room.publish("A", {"n": 5})
    run()
    assert said(room, "B") == [{"t": "z"}], "the space of the old type is gone"
    assert said(room, "A") == []


def test_what_stood_in_a_consumers_space_stays_there_when_it_gets_an_arc(
    room: Postroom, load: Load, run: Callable[..., int]
) -> None:
    load(f"domain d space A : {TRADES} space B : {TRADES} arc a : A -> B merge")
    room.publish("A", '["old", 1]')
    run()
    room.client("c").subscribe("B")
    room.publish("A", '["new", 1]')
    run()
    assert issues(room, "B") == ["old"]
    assert issues(room, "c") == ["new"]


def test_a_space_with_messages_goes_only_if_that_is_said(room: Postroom, load: Load, run: Callable[..., int]) -> None:
    load(GRAPH)
    room.publish("NYSE", '["IBM", 80]')
    run()
    smaller = GRAPH.replace(f"space Big  : {TRADES}\n", "").replace(
        "arc big : NYSE -> Big select [price: p > 75]\n", ""
    )
    with pytest.raises(QueueInUse, match="Big"):
        load(smaller)
    assert {arc.name for arc in room.flows.graph().arcs} == {"big", "hot", "out"}
    loaded = load(smaller, drop=True)
    assert loaded.removed == ("space Big", "arc big in trading")
    assert issues(room, "Big") == ["IBM"], "still readable under its name"


def test_what_waits_in_a_space_that_is_deleted_keeps_nobody_from_flowing(
    room: Postroom, load: Load, run: Callable[..., int]
) -> None:
    both = f"""domain d space A : {TRADES} space B : {TRADES} space X : {TRADES}
        arc a : A -> X merge arc b : B -> X merge"""
    load(both)
    room.publish("A", '["stays", 1]')
    load(both.replace(f"space A : {TRADES}", "").replace("arc a : A -> X merge", ""), drop=True)
    room.publish("B", '["flows", 1]')
    run()
    assert issues(room, "X") == ["flows"]
    assert issues(room, "A") == ["stays"]


def test_a_space_may_be_told_to_keep_nothing(room: Postroom, load: Load, run: Callable[..., int]) -> None:
    load(GRAPH)
    room.queues.set_mode("Hot", keep_processed=False)
    room.publish("NYSE", '["SUN", 120]')
    run()
    assert issues(room, "Out") == ["SUN"]
    assert room.queues.history("Hot").messages == []


def test_a_change_waits_for_whoever_is_publishing(
    room: Postroom, load: Load, run: Callable[..., int], url: str
) -> None:
    """Else the epoch of what is about to be committed would be forgotten, and it would never flow."""
    load(f"domain d space A : {TRADES} space B : {TRADES} arc a : A -> B merge domain e space Z : {TRADES}")
    entered, go_on, changed = threading.Event(), threading.Event(), threading.Event()

    def publish() -> None:
        with postroom.open(url) as other:

            def work(tx: Transaction) -> None:
                other._parts.verbs.enter(tx, ("A",), Draft.many(['["slow", 1]']))
                entered.set()
                go_on.wait(20)

            other.store.transact("publish", work)

    def subscribe() -> None:
        with postroom.open(url) as other:
            other.client("c").subscribe("Z")
            changed.set()

    threads = [threading.Thread(target=publish), threading.Thread(target=subscribe)]
    threads[0].start()
    assert entered.wait(20)
    threads[1].start()
    assert not changed.wait(0.5), "the change did not wait"
    go_on.set()
    for thread in threads:
        thread.join()
    room.publish("A", '["next", 1]')
    run()
    assert issues(room, "B") == ["slow", "next"]


def test_a_space_on_hold_does_not_keep_events_of_later_epochs_from_flowing(
    room: Postroom, load: Load, run: Callable[..., int]
) -> None:
    load(
        f"""domain d space A : {TRADES} space B : {TRADES} space X : {TRADES} space Y : {TRADES}
        arc a : A -> X merge arc b : B -> Y merge"""
    )
    for held in ("A", "X"):
        room.queues.set_password(held, password="pw")
        room.queues.disable(held, password="pw") if held == "X" else None
    room.publish("A", '["waits", 1]')
    room.client("c").subscribe("B")
    room.publish("B", '["flows", 1]')
    run()
    assert issues(room, "Y") == issues(room, "c") == ["flows"], "A waits for X"
    room.queues.enable("X", password="pw")
    room.queues.disable("A", password="pw")
    room.client("c2").subscribe("B")
    room.publish("B", '["on", 1]')
    run()
    assert issues(room, "Y") == ["flows", "on"]
    assert issues(room, "X") == []
    room.queues.enable("A", password="pw")
    run()
    assert issues(room, "X") == ["waits"]


def test_events_flow_on_when_a_space_that_was_held_is_free_again(
    room: Postroom, load: Load, run: Callable[..., int]
) -> None:
    load(GRAPH)
    room.queues.set_password("Big", password="pw")
    room.queues.disable("Big", password="pw")
    room.flows.publish_many("NYSE", ['["small", 1]', '["IBM", 80]', '["SUN", 120]'])
    run()
    assert said(room, "Out") == [], "the second event waits, and those behind it"
    assert issues(room, "NYSE") == ["IBM", "SUN"]
    room.queues.enable("Big", password="pw")
    run()
    assert issues(room, "Big") == ["IBM", "SUN"]
    assert issues(room, "Out") == ["SUN"]
