"""Graphs that change between publications: every consumer gets what was published while it was one, in that order."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.faults.here import evaluate_here
from tests.flows.conftest import Load

import postroom
from postroom.room import Postroom

Passes = Callable[[int], bool]


def numbers(room: Postroom, space: str) -> list[int]:
    return [json.loads(message.body)["n"] for message in room.queues.info(space)]


def test_what_was_published_before_a_subscription_stays_where_it_was_for(
    room: Postroom, load: Load, run: Callable[..., int]
) -> None:
    """It lies in the space that its arc led to, however late the engine brings it there; nothing overtakes it."""
    load("domain d space A : [n: int] space B : [n: int] arc m : A -> B merge")
    room.flows.publish_many("A", ["[1]", "[2]"])
    room.client("desk").subscribe("B")
    room.publish("A", "[3]")
    room.publish("B", "[4]")
    run()
    assert numbers(room, "B") == [1, 2]
    assert numbers(room, "desk") == [3, 4]
    room.client("desk").unsubscribe()
    room.publish("A", "[5]")
    run()
    assert numbers(room, "B") == [1, 2, 5]


def test_what_was_published_before_a_client_unsubscribed_comes_to_it(
    room: Postroom, load: Load, run: Callable[..., int]
) -> None:
    load("domain d space A : [n: int] space B : [n: int] arc m : A -> B merge")
    room.client("desk").subscribe("B")
    room.flows.publish_many("A", ["[1]", "[2]"])
    room.client("desk").unsubscribe()
    room.publish("A", "[3]")
    run()
    assert (numbers(room, "B"), numbers(room, "desk")) == ([3], [1, 2])
    room.client("desk").subscribe("B")
    room.publish("A", "[4]")
    run()
    assert (numbers(room, "B"), numbers(room, "desk")) == ([3], [1, 2, 4])
    assert room.journal.verify().differences == ()


def test_what_stays_is_passed_over_in_steps_of_one_message(room: Postroom, load: Load, run: Callable[..., int]) -> None:
    load("domain d space A : [n: int] space B : [n: int] arc m : A -> B merge")
    room.flows.publish_many("A", [f"[{n}]" for n in range(4)])
    room.client("desk").subscribe("B")
    room.flows.publish_many("B", ["[10]", "[11]"])
    room.flows.publish_many("A", ["[12]", "[13]"])
    run(step_messages=1)
    assert (numbers(room, "B"), numbers(room, "desk")) == ([0, 1, 2, 3], [10, 11, 12, 13])


# --- generated ---


@dataclass
class Arc:
    name: str
    source: str
    target: str
    bound: int
    add: int = 0
    durable: bool = False
    disabled: bool = False
    missed: list[int] = field(default_factory=list)
    caught_up: list[int] = field(default_factory=list)  # what it had missed, and the engine has not delivered yet

    def passed(self, n: int) -> list[int]:
        return [n + self.add] if n % 7 >= self.bound else []


@dataclass
class Model:
    """The plain meaning: each event goes its ways at the moment when it is published."""

    arcs: dict[str, Arc] = field(default_factory=dict)
    contents: dict[str, list[int]] = field(default_factory=dict)
    unsure: dict[str, set[int]] = field(default_factory=dict)  # of clients that left before the engine ran
    direct: dict[str, list[int]] = field(default_factory=dict)  # what was published where it stays: there at once

    def publish(self, space: str, n: int) -> None:
        if not any(arc.source == space for arc in self.arcs.values()):
            self.direct.setdefault(space, []).append(n)
        self._flow(space, n)

    def _flow(self, space: str, n: int) -> None:
        following: list[tuple[str, int]] = []
        for arc in [arc for arc in self.arcs.values() if arc.source == space]:
            if arc.disabled:
                arc.missed += arc.passed(n) if arc.durable else []
                continue
            for made in arc.passed(n):
                self._arrive(arc.target, made)
                following.append((arc.target, made))
        for target, made in following:
            self._flow(target, made)

    def _arrive(self, space: str, n: int) -> None:
        if not any(arc.source == space for arc in self.arcs.values()):
            self.contents.setdefault(space, []).append(n)

    def switch(self, name: str, disabled: bool) -> None:
        arc = self.arcs[name] = self.arcs.pop(name)  # arcs are in the order in which they became what they are
        arc.disabled = disabled
        if not disabled:
            for n in arc.missed:
                self._arrive(arc.target, n)
            arc.caught_up += arc.missed
            arc.missed.clear()

    def remove(self, name: str) -> None:
        """What it has missed goes with it, but for what the engine has delivered, which it may do early."""
        arc = self.arcs.pop(name)
        self.unsure[arc.target] = set(arc.caught_up)

    def deliver(self) -> None:
        for arc in self.arcs.values():
            if not arc.disabled:
                arc.caught_up.clear()

    def expected(self, space: str, found: list[int]) -> list[int]:
        """What is there, given what was found of that which need not be."""
        missing = self.unsure.get(space, set()) - set(found)
        return [n for n in self.contents.get(space, []) if n not in missing]


@dataclass
class Play:
    """A room and its model, to which the same happens."""

    room: Postroom
    chance: random.Random
    work_off: Callable[..., object]
    model: Model = field(default_factory=Model)
    clients: dict[str, str] = field(default_factory=dict)  # with the spaces that they read
    left: list[str] = field(default_factory=list)  # clients that have unsubscribed: they still get what was for them
    count: int = 0

    def begin(self, folder: Path) -> None:
        spaces, chance = self.chance.randint(3, 6), self.chance
        lines = ["domain d allow * : disableArc, enableArc, addArc, deleteArc"]
        lines += [f"space S{n} : [n: int]" for n in range(spaces)]
        for number in range(chance.randint(2, 6)):
            source = chance.randrange(spaces - 1)
            arc = Arc(f"a{number}", f"S{source}", f"S{chance.randrange(source + 1, spaces)}", chance.randrange(4))
            arc.add = chance.choice([0, 0, 100])
            self.model.arcs[arc.name] = arc
            lines.append(f"arc {arc.name} : {arc.source} -> {arc.target} {self.does(arc)}")
        (folder / "g.flow").write_text("\n".join(lines))
        self.room.load(folder / "g.flow")
        self.spaces = [f"S{n}" for n in range(spaces)]

    def does(self, arc: Arc) -> str:
        pattern = f"[n: n >= 0 and (n % 7) >= {arc.bound}]".replace("and (n % 7) >=", "and >= n - n % 7 +")
        return f"transform {pattern} => [n: n + {arc.add}]" if arc.add else f"select {pattern}"

    def act(self) -> None:
        chance, kind = self.chance, self.chance.random()
        if kind < 0.5:
            self.count += 1
            space = chance.choice(self.spaces)
            self.room.publish(space, f"[{self.count}]")
            self.model.publish(space, self.count)
        elif kind < 0.65:
            self.subscribe()
        elif kind < 0.75 and self.clients:
            name = chance.choice(sorted(self.clients))
            self.room.client(name).unsubscribe()
            self.forget(name)
        elif kind < 0.85 and self.clients:
            name = chance.choice(sorted(self.clients))
            disabled = not self.model.arcs[f"{name}_{self.clients[name]}"].disabled
            client = self.room.client(name)
            client.disconnect() if disabled else client.connect()
            self.model.switch(f"{name}_{self.clients[name]}", disabled)
        elif kind < 0.92:
            name = chance.choice([each for each in self.model.arcs if each.startswith("a")])
            disabled = not self.model.arcs[name].disabled
            action = "DisableArc" if disabled else "EnableArc"
            self.room.publish("meta:d", {action: {"arcName": name}})
            self.model.switch(name, disabled)
        else:
            self.work_off(step_messages=chance.choice([1, 2, 50]))
            self.model.deliver()

    def subscribe(self) -> None:
        self.count += 1
        name, space = f"c{self.count}", self.chance.choice(self.spaces)
        arc = Arc(f"{name}_{space}", space, name, self.chance.randrange(3), durable=self.chance.random() < 0.4)
        pattern = self.does(arc).removeprefix("select ")
        self.room.client(name).subscribe(space, pattern, durable=arc.durable)
        self.clients[name] = space
        self.model.arcs[arc.name] = arc

    def forget(self, name: str) -> None:
        self.left.append(name)
        self.model.remove(f"{name}_{self.clients.pop(name)}")

    def check(self) -> None:
        """What a durable arc keeps, it delivers at the latest when the engine runs while it is enabled."""
        for name, space in self.clients.items():
            if self.model.arcs[f"{name}_{space}"].disabled:
                self.room.client(name).connect()
                self.model.switch(f"{name}_{space}", False)
        self.work_off()
        for place in [*self.spaces, *self.clients, *self.left]:
            direct, found = self.model.direct.get(place, []), numbers(self.room, place)
            assert [n for n in found if n in direct] == direct, place
            assert [n for n in found if n not in direct] == self.model.expected(place, found), place
        assert list(self.room.queues.info("postroom-errors")) == []


def seeds(first: int, most: int) -> list[Any]:
    """The first ones in ``make test``, all in ``make test-all``."""
    return [*range(first), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(first, most))]


def play(room: Postroom, folder: Path, seed: int, work_off: Callable[..., object]) -> None:
    it = Play(room, random.Random(seed), work_off)
    it.begin(folder)
    for _ in range(60):
        it.act()
    it.check()
    assert it.count > 20


@pytest.mark.parametrize("seed", seeds(12, 400))
def test_whatever_comes_and_goes_every_consumer_gets_its_events_in_the_order_of_publication(
    tmp_path: Path, seed: int
) -> None:
    with postroom.open(tmp_path / "room.db") as room:
        play(evaluate_here(room), tmp_path, seed, room.run_until_idle)


@pytest.mark.parametrize("seed", seeds(2, 60))
def test_the_same_on_postgresql(tmp_path: Path, postgres_url: str, seed: int) -> None:
    with postroom.open(postgres_url) as room:
        play(evaluate_here(room), tmp_path, seed, room.run_until_idle)


@pytest.mark.parametrize("seed", seeds(1, 20))
def test_the_same_by_the_engine_in_its_workers(tmp_path: Path, seed: int) -> None:
    with postroom.open(tmp_path / "room.db") as room:
        play(room, tmp_path, seed, room.run_until_idle)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_the_same_on_spark(spark: SparkSession, tmp_path: Path, postgres_url: str, seed: int) -> None:
    with postroom.open(postgres_url) as room:
        play(room, tmp_path, seed, partial(room.run_until_idle, spark="always", master="local[2]"))
