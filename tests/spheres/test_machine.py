"""State machines of queues: an entity is a token in exactly one of them, and moves as the machine allows."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import postroom
from postroom.errors import (
    ArgumentInvalid,
    EntityExists,
    EntityUnknown,
    QueueOwned,
    StateTaken,
    TransitionRefused,
)
from postroom.room import Postroom
from postroom.spheres.machine import MachineHandle

STATES = ["NEW", "PAID", "SHIPPED", "LOST"]
ARCS = [("NEW", "PAID"), ("PAID", "SHIPPED"), ("NEW", "LOST"), ("PAID", "LOST"), ("LOST", "NEW")]


@pytest.fixture
def orders(room: Postroom) -> MachineHandle:
    return room.spheres.machine(STATES, ARCS)


def where(orders: MachineHandle) -> dict[str, list[str]]:
    return {state: orders.entities(state) for state in STATES}


def test_an_entity_goes_its_way(room: Postroom, orders: MachineHandle) -> None:
    orders.start("a")
    orders.start("b")
    assert orders.move("a", "PAID", "in cash") == "NEW"
    assert orders.move("b", "LOST") == "NEW"
    assert orders.move("b", "NEW") == "LOST"
    assert orders.move("a", "SHIPPED") == "PAID"
    assert (orders.state("a"), orders.state("b")) == ("SHIPPED", "NEW")
    assert where(orders) == {"NEW": ["b"], "PAID": [], "SHIPPED": ["a"], "LOST": []}
    (token,) = room.queues.info("SHIPPED")
    assert [(event.verb, event.target) for event in room.trace(token.key)] == [
        ("put", "NEW"),
        ("move", "PAID"),
        ("move", "SHIPPED"),
    ]
    assert [event.detail for event in room.trace(token.key)] == [
        {"machine": "machine NEW", "entity": "a"},
        {"reason": "in cash"},
        None,
    ]


def test_every_transition_that_is_not_there_is_refused_and_changes_nothing(room: Postroom) -> None:
    orders = room.spheres.machine(STATES, ARCS)
    ways = {"NEW": [], "PAID": ["PAID"], "SHIPPED": ["PAID", "SHIPPED"], "LOST": ["LOST"]}
    for state, way in ways.items():
        orders.start(state)
        for step in way:
            orders.move(state, step)
        for goal in (*STATES, "NOWHERE", ""):
            if (state, goal) not in ARCS:
                before = where(orders), len(room.journal.last(1_000))
                with pytest.raises(TransitionRefused):
                    orders.move(state, goal)
                assert (where(orders), len(room.journal.last(1_000))) == before


def test_an_entity_is_there_once_or_not_at_all(orders: MachineHandle) -> None:
    orders.start("a")
    orders.move("a", "PAID")
    with pytest.raises(EntityExists, match="PAID"):
        orders.start("a")
    for call in (orders.state, lambda entity: orders.move(entity, "PAID")):
        with pytest.raises(EntityUnknown):
            call("nobody")
    assert where(orders) == {"NEW": [], "PAID": ["a"], "SHIPPED": [], "LOST": []}


def test_a_machine_survives_its_process(url: str) -> None:
    with postroom.open(url) as room:
        room.spheres.machine(STATES, ARCS).start("a")
    with postroom.open(url) as room:
        orders = room.spheres.machine(STATES, ARCS)
        assert orders.state("a") == "NEW"
        assert orders.move("a", "PAID") == "NEW"
    with postroom.open(url) as room:
        assert room.spheres.machine(STATES, ARCS).entities("PAID") == ["a"]


def test_two_machines_do_not_know_each_others_entities(room: Postroom) -> None:
    first, second = room.spheres.machine(["A", "B"], [("A", "B")]), room.spheres.machine(["C", "D"], [("C", "D")])
    first.start("x")
    second.start("x")
    first.move("x", "B")
    assert (first.state("x"), second.state("x")) == ("B", "C")


def test_nobody_else_touches_a_token(room: Postroom, orders: MachineHandle) -> None:
    orders.start("a")
    for call in (lambda: room.send("NEW", "x"), lambda: room.receive("NEW"), lambda: room.queues.remove("NEW")):
        with pytest.raises(QueueOwned):
            call()
    assert orders.entities("NEW") == ["a"]


def test_a_queue_that_is_there_is_not_taken_over(room: Postroom) -> None:
    room.queues.create("PAID")
    room.send("PAID", "a message")
    with pytest.raises(StateTaken):
        room.spheres.machine(STATES, ARCS)
    assert [count.queue for count in room.queues.accept().queues] == ["PAID"]


def test_of_many_who_move_one_token_one_does(url: str) -> None:
    with postroom.open(url) as room:
        room.spheres.machine(["A", "B"], [("A", "B")]).start("x")
    moved: list[str] = []

    def move() -> None:
        with postroom.open(url) as room:
            try:
                moved.append(room.spheres.machine(["A", "B"], [("A", "B")]).move("x", "B"))
            except TransitionRefused:
                moved.append("refused")

    threads = [threading.Thread(target=move) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(moved) == ["A", "refused", "refused", "refused"]


NO_MACHINES: list[tuple[Any, Any]] = [
    ([], []),
    ("AB", []),
    (5, []),
    (None, []),
    (["A", "A"], []),
    ([""], []),
    ([" A"], []),
    (["a b"], []),
    (["a/b"], []),
    (["A\n"], []),
    ([5], []),
    ([["A"]], []),
    (["x" * 10_000], []),
    ([f"S{number}" for number in range(101)], []),
    (["A"], [("A", "B")]),
    (["A"], ["AA"]),
    (["A"], [("A",)]),
    (["A"], [5]),
    (["A"], 5),
    (["A"], [("A", ["A"])]),
]


def test_what_is_no_machine_is_refused_and_makes_no_queue(room: Postroom) -> None:
    for states, arcs in NO_MACHINES:
        with pytest.raises(ArgumentInvalid):
            room.spheres.machine(states, arcs)
    assert room.queues.accept().queues == ()


def test_what_is_no_entity_is_refused(orders: MachineHandle) -> None:
    no_entities: list[Any] = ["", " a", "a ", "a\nb", "x" * 201, None, 5, b"a", ["a"], "a\0"]
    for entity in no_entities:
        for call in (orders.start, orders.state, lambda each: orders.move(each, "PAID")):
            with pytest.raises(ArgumentInvalid):
                call(entity)
    no_reasons: list[Any] = [5, "x" * 1_001, "\0"]
    for reason in no_reasons:
        with pytest.raises(ArgumentInvalid):
            orders.move("a", "PAID", reason)
    for state in ("NOWHERE", None, ["NEW"]):
        with pytest.raises(ArgumentInvalid):
            orders.entities(state)  # type: ignore[arg-type]
    assert where(orders) == {state: [] for state in STATES}
