"""Movement control against the truth: a message that exists throughout a query is reported once.

Every interleaving of a few moves and queries is explored, and many random ones of larger worlds. The text's
pathological histories are named tests.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pytest

from postroom.stations.movement import Mailboxes, Place

MAIL = "mailboxes"


@dataclass(frozen=True)
class World:
    """Nodes, mailboxes, messages with the way that is before each, and queries with what they have found so far."""

    nodes: tuple[tuple[str, Place], ...]
    mail: Mailboxes
    where: tuple[tuple[str, str], ...]  # message, and a node or the mailboxes
    ways: tuple[tuple[str, tuple[str, ...]], ...]  # message, and the nodes that it will be sent to
    asked: int  # queries that were begun
    queries: int  # queries that there will be
    found: tuple[tuple[int, str], ...] = ()  # query and message, as reported

    def steps(self) -> Iterator[World]:
        """Everything that can happen next, each at once: a ship, a get, a new query, a query on one place."""
        for message, place in self.where:
            way = dict(self.ways)[message]
            if place != MAIL and way:
                yield self.shipped(message, place)
            elif place == MAIL:
                yield self.got(message, way[0])
        if self.asked < self.queries:
            yield replace(self, asked=self.asked + 1)
        for name, node in self.nodes:
            if node.done < self.asked:
                yield self.queried(name)
        following = self.mail.place.done + 1
        if following <= self.asked and all(node.done >= following for _, node in self.nodes):
            yield self.mail_queried()

    def shipped(self, message: str, place: str) -> World:
        node = dict(self.nodes)[place]
        return replace(
            self._with_node(place, node.without(message)),
            mail=self.mail.arrive(message, node.seen(message)),
            where=_put(self.where, message, MAIL),
        )

    def got(self, message: str, name: str) -> World:
        node = dict(self.nodes)[name]
        seen, mail = self.mail.leave(message, name, node.done)
        return replace(
            self._with_node(name, node.with_arrived(message, seen)),
            mail=mail,
            where=_put(self.where, message, name),
            ways=tuple((each, way[1:] if each == message else way) for each, way in self.ways),
        )

    def queried(self, name: str) -> World:
        node = dict(self.nodes)[name]
        here = node.visible(message for message, place in self.where if place == name)
        return replace(self._with_node(name, node.after(node.done + 1)), found=_add(self.found, node.done + 1, here))

    def mail_queried(self) -> World:
        query = self.mail.place.done + 1
        here = self.mail.found(query, [message for message, place in self.where if place == MAIL])
        return replace(self, mail=self.mail.after(query), found=_add(self.found, query, here))

    def _with_node(self, name: str, node: Place) -> World:
        return replace(self, nodes=tuple((each, node if each == name else place) for each, place in self.nodes))

    @property
    def over(self) -> bool:
        return self.mail.place.done == self.queries and not any(way for _, way in self.ways)

    def check(self) -> None:
        """Each query that is over has reported each message once; none has reported one twice."""
        counts = Counter(self.found)
        assert set(counts.values()) <= {1}, f"counted twice: {counts}"
        for query in range(1, self.mail.place.done + 1):
            assert {message for number, message in counts if number == query} == dict(self.where).keys(), "missed"


def _put(where: tuple[tuple[str, str], ...], message: str, place: str) -> tuple[tuple[str, str], ...]:
    return tuple((each, place if each == message else before) for each, before in where)


def _add(found: tuple[tuple[int, str], ...], query: int, here: frozenset[str]) -> tuple[tuple[int, str], ...]:
    return tuple(sorted([*found, *((query, message) for message in here)]))


def world(ways: Mapping[str, tuple[str, ...]], queries: int, nodes: str = "ij") -> World:
    """Every message begins at the first node of its way."""
    where = tuple((message, way[0]) for message, way in ways.items())
    rest = tuple((message, way[1:]) for message, way in ways.items())
    return World(tuple((name, Place()) for name in nodes), Mailboxes(), where, rest, 0, queries)


def explored(first: World) -> int:
    """Look at every state that can be reached; answers with how many there are."""
    known, todo = {first}, [first]
    ends = 0
    while todo:
        state = todo.pop()
        state.check()
        ends += state.over
        for following in state.steps():
            if following not in known:
                known.add(following)
                todo.append(following)
    assert ends, "no history came to its end"
    return len(known)


@pytest.mark.parametrize(
    ("ways", "queries", "nodes"),
    [
        ({"m": ("i", "j")}, 3, "ij"),
        ({"m": ("i", "j", "i")}, 2, "ij"),
        ({"m": ("i", "j", "i", "j")}, 3, "ij"),
        ({"m": ("i", "i", "j")}, 3, "ij"),
        ({"m": ("i", "j"), "n": ("j", "i")}, 2, "ij"),
        ({"m": ("i", "j", "k", "i")}, 2, "ijk"),
        pytest.param({"m": ("i", "j", "i"), "n": ("j", "i")}, 3, "ij", marks=pytest.mark.slow),
    ],
)
def test_every_interleaving_of_a_small_world(ways: dict[str, tuple[str, ...]], queries: int, nodes: str) -> None:
    assert explored(world(ways, queries, nodes)) > 100


@pytest.mark.parametrize("seed", range(30))
def test_random_histories_of_larger_worlds(seed: int) -> None:
    chance = random.Random(seed)
    nodes = "ijklm"[: chance.randint(2, 5)]
    ways = {f"m{n}": tuple(chance.choice(nodes) for _ in range(chance.randint(1, 6))) for n in range(12)}
    state = world(ways, 6, nodes)
    while not state.over:
        state = chance.choice(list(state.steps()))
        state.check()


def test_a_message_that_goes_where_a_query_has_been_is_not_missed() -> None:
    """The first pathological history of the text."""
    state = replace(world({"m": ("j", "i")}, 1), asked=1).queried("i")
    state = state.shipped("m", "j").got("m", "i").queried("j").mail_queried()
    assert state.found == ((1, "m"),)


def test_a_message_that_goes_where_a_query_has_yet_to_come_is_not_counted_twice() -> None:
    """The second pathological history of the text."""
    state = replace(world({"m": ("i", "j")}, 1), asked=1).queried("i")
    state = state.shipped("m", "i").got("m", "j").queried("j").mail_queried()
    assert state.found == ((1, "m"),)


def test_without_the_rules_the_truth_is_missed() -> None:
    """A gate that cannot close is no gate: the same histories, and nothing is hidden or shown."""
    state = replace(world({"m": ("i", "j")}, 1), asked=1).queried("i").shipped("m", "i").got("m", "j")
    forgetful = state._with_node("j", Place()).queried("j").mail_queried()
    with pytest.raises(AssertionError, match="counted twice"):
        forgetful.check()
    state = replace(world({"m": ("j", "i")}, 1), asked=1).queried("i").shipped("m", "j").got("m", "i")
    forgetful = replace(state, mail=replace(state.mail, shown=frozenset())).queried("j").mail_queried()
    with pytest.raises(AssertionError, match="missed"):
        forgetful.check()


def test_two_queries_never_disagree_about_their_order() -> None:
    """The X and Y anomaly: queries run on every node in the order of their numbers, so it cannot be reached."""
    state = replace(world({"x": ("i",), "y": ("j",)}, 2), asked=2)
    orders = set()

    def walk(state: World, seen: tuple[tuple[str, int], ...]) -> None:
        orders.add(tuple(query for place, query in seen if place == "i"))
        for name, node in state.nodes:
            if node.done < state.asked:
                walk(state.queried(name), (*seen, (name, node.done + 1)))

    walk(state, ())
    assert orders <= {(), (1,), (1, 2)}
