"""Movement control as rules, against the truth: a message that exists throughout a query is reported once.

The model has what the stores have (``store/tables/tracking.py``, ``store/kernel/transfers.py``) and nothing else: each
step is one transaction of one store. Every interleaving of a few moves and queries is explored, those with a crash
among them, and many random ones of larger worlds. The text's pathological histories are named tests.
``test_movement_in_stores.py`` walks the same steps in real stores.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

import pytest

T = TypeVar("T")
MAIL, TRANSIT = "mailboxes", "transit"


class Place(NamedTuple):
    """The stations of a node, or the mailboxes: the last query that was opened there, and who is hidden from some."""

    done: int = 0
    hidden: frozenset[tuple[str, int]] = frozenset()

    def hides(self, message: str) -> int:
        return max((seen for name, seen in self.hidden if name == message), default=-1)

    def seen(self, message: str) -> int:
        return max(self.done, self.hides(message))

    def without(self, message: str) -> Place:
        return self._replace(hidden=frozenset(each for each in self.hidden if each[0] != message))

    def with_come(self, message: str, seen: int) -> Place:
        return self._replace(hidden=self.hidden | {(message, seen)}) if seen > self.done else self


class Parcel(NamedTuple):
    message: str
    hop: int
    source: str
    target: str
    seen: int
    came: int | None = None  # the last query at the target when it came

    @property
    def is_get(self) -> bool:
        return self.source == MAIL


@dataclass(frozen=True)
class Opening:
    """A query that is being opened; the others wait."""

    number: int
    at: frozenset[str] = frozenset()
    pushed: frozenset[tuple[str, int]] = frozenset()  # what was leaving a node then, and must have come first


@dataclass(frozen=True)
class World:
    places: tuple[tuple[str, Place], ...]
    where: tuple[tuple[str, str], ...]
    ways: tuple[tuple[str, tuple[str, ...]], ...]
    queries: int
    crashes: int = 0
    hops: tuple[tuple[str, int], ...] = ()
    parcels: frozenset[Parcel] = frozenset()
    shown: frozenset[tuple[str, int, int]] = frozenset()  # message, seen, until
    begun: int = 0
    opening: Opening | None = None
    found: tuple[tuple[int, str], ...] = ()
    undecided: frozenset[tuple[int, str, int]] = frozenset()  # query, message, hop
    over: frozenset[int] = field(default_factory=frozenset)

    # --- every step ---

    def steps(self) -> Iterator[World]:
        yield from self.moves()
        if self.opening is not None:
            yield from self.openings(self.opening)
        elif self.begun < self.queries:
            yield self.begin()

    def moves(self) -> Iterator[World]:
        places = dict(self.places)
        for message, place in self.where:
            way = dict(self.ways)[message]
            if place == MAIL:
                yield self.departed(message, MAIL, way[0])
            elif place in places and way:
                yield self.departed(message, place, MAIL)
        for parcel in self.parcels:
            yield self.came(parcel) if parcel.came is None else self.concluded(parcel)

    def openings(self, opening: Opening) -> Iterator[World]:
        for name, _ in self.places:
            if name != MAIL and name not in opening.at:
                yield self.opened(name)
        if len(opening.at) == len(self.places) - 1 and self.all_pushed():
            yield self.opened_mail()
        if self.crashes:
            yield replace(self, opening=None, crashes=self.crashes - 1)

    def departed(self, message: str, source: str, target: str) -> World:
        """The first commit of a hand-over."""
        place = dict(self.places)[source]
        hop = dict(self.hops).get(message, 0) + 1
        parcel = Parcel(message, hop, source, target, place.seen(message))
        ways = self.ways
        if source == MAIL:
            ways = tuple((each, way[1:] if each == message else way) for each, way in ways)
        return replace(
            self._with(source, place.without(message)),
            where=_put(self.where, message, TRANSIT),
            hops=_put(self.hops or tuple((each, 0) for each, _ in self.where), message, hop),
            parcels=self.parcels | {parcel},
            ways=ways,
        )

    def came(self, parcel: Parcel) -> World:
        """The second one, by anyone."""
        place = dict(self.places)[parcel.target]
        known = parcel._replace(came=place.done)
        late = {each for each in self.undecided if each[1:] == (parcel.message, parcel.hop)}
        found = self.found
        for query, message, _ in late:
            if place.done >= query:
                found = _add(found, query, [message])
        return replace(
            self._with(parcel.target, place.with_come(parcel.message, parcel.seen)),
            where=_put(self.where, parcel.message, parcel.target),
            parcels=self.parcels - {parcel} | {known},
            undecided=self.undecided - late,
            found=found,
        )

    def concluded(self, parcel: Parcel) -> World:
        """The third one."""
        assert parcel.came is not None
        late = parcel.is_get and parcel.came > parcel.seen
        shown = self.shown | ({(parcel.message, parcel.seen, parcel.came + 1)} if late else set())
        return replace(self, parcels=self.parcels - {parcel}, shown=shown)

    def begin(self) -> World:
        return replace(self, begun=self.begun + 1, opening=Opening(self.begun + 1))

    def opened(self, name: str) -> World:
        assert self.opening is not None
        place, number = dict(self.places)[name], self.opening.number
        here = [each for each, at in self.where if at == name and place.hides(each) < number]
        leaving = {(each.message, each.hop) for each in self.parcels if each.source == name and each.came is None}
        opening = Opening(number, self.opening.at | {name}, self.opening.pushed | leaving)
        return replace(
            self._with(name, place._replace(done=number)), found=_add(self.found, number, here), opening=opening
        )

    def all_pushed(self) -> bool:
        assert self.opening is not None
        waiting = {(each.message, each.hop) for each in self.parcels if each.came is None}
        return not waiting & self.opening.pushed

    def opened_mail(self) -> World:
        assert self.opening is not None
        place, number = dict(self.places)[MAIL], self.opening.number
        here = [each for each, at in self.where if at == MAIL and place.hides(each) < number]
        here += [message for message, seen, until in self.shown if seen < number < until]
        undecided = set()
        for parcel in self.parcels:
            if parcel.is_get and parcel.seen < number:
                if parcel.came is None:
                    undecided.add((number, parcel.message, parcel.hop))
                elif parcel.came >= number:
                    here.append(parcel.message)
        return replace(
            self._with(MAIL, place._replace(done=number)),
            found=_add(self.found, number, here),
            undecided=self.undecided | undecided,
            opening=None,
            over=self.over | {number},
        )

    # --- the truth ---

    @property
    def at_rest(self) -> bool:
        return self.begun == self.queries and self.opening is None and not self.parcels and not any(self.way_left())

    def way_left(self) -> list[bool]:
        return [bool(way) for _, way in self.ways]

    def check(self) -> None:
        counts = Counter(self.found)
        assert set(counts.values()) <= {1}, f"counted twice: {counts}"
        for query in self.over - {number for number, _, _ in self.undecided}:
            assert {message for number, message in counts if number == query} == dict(self.where).keys(), "missed"

    def _with(self, name: str, place: Place) -> World:
        return replace(self, places=tuple((each, place if each == name else before) for each, before in self.places))


def _put(where: tuple[tuple[str, T], ...], message: str, value: T) -> tuple[tuple[str, T], ...]:
    return tuple((each, value if each == message else before) for each, before in where)


def _add(found: tuple[tuple[int, str], ...], query: int, here: list[str]) -> tuple[tuple[int, str], ...]:
    return tuple(sorted([*found, *((query, message) for message in here)]))


def world(ways: Mapping[str, tuple[str, ...]], queries: int, nodes: str = "ij", crashes: int = 0) -> World:
    """Every message begins at the first node of its way."""
    where = tuple((message, way[0]) for message, way in ways.items())
    rest = tuple((message, way[1:]) for message, way in ways.items())
    places = (*((name, Place()) for name in nodes), (MAIL, Place()))
    return World(places, where, rest, queries, crashes)


def explored(first: World) -> int:
    """Look at every state that can be reached; answers with how many there are."""
    known, todo = {first}, [first]
    ends = 0
    while todo:
        state = todo.pop()
        state.check()
        ends += state.at_rest
        for following in state.steps():
            if following not in known:
                known.add(following)
                todo.append(following)
    assert ends, "no history came to its end"
    return len(known)


@pytest.mark.parametrize(
    ("ways", "queries", "nodes", "crashes"),
    [
        ({"m": ("i", "j")}, 3, "ij", 0),
        ({"m": ("i", "j")}, 3, "ij", 2),
        ({"m": ("i", "j", "i")}, 2, "ij", 1),
        ({"m": ("i", "i", "j")}, 2, "ij", 0),
        ({"m": ("i", "j", "k", "i")}, 1, "ijk", 0),
        pytest.param({"m": ("i", "j", "i", "j")}, 3, "ij", 1, marks=pytest.mark.slow),
        ({"m": ("i", "j"), "n": ("j", "i")}, 2, "ij", 0),
        pytest.param({"m": ("i", "j", "k", "i")}, 2, "ijk", 0, marks=pytest.mark.slow),
    ],
)
def test_every_interleaving_of_a_small_world(
    ways: dict[str, tuple[str, ...]], queries: int, nodes: str, crashes: int
) -> None:
    assert explored(world(ways, queries, nodes, crashes)) > 100


@pytest.mark.parametrize("seed", range(60))
def test_random_histories_of_larger_worlds(seed: int) -> None:
    chance = random.Random(seed)
    nodes = "ijklm"[: chance.randint(2, 5)]
    ways = {f"m{n}": tuple(chance.choice(nodes) for _ in range(chance.randint(1, 6))) for n in range(12)}
    state = world(ways, 6, nodes, crashes=seed % 3)
    while not state.at_rest:
        state = chance.choice(list(state.steps()))
        state.check()


def moved(state: World, message: str, source: str, target: str, *, settled: bool = True) -> World:
    """Shipped from a node and got at another, all commits at once."""
    for start, end in ((source, MAIL), (MAIL, target)):
        state = state.departed(message, start, end)
        (parcel,) = [each for each in state.parcels if each.came is None]
        state = state.came(parcel)
        if settled:
            (parcel,) = state.parcels
            state = state.concluded(parcel)
    return state


def test_a_message_that_goes_where_a_query_has_been_is_not_missed() -> None:
    """The first pathological history of the text."""
    state = moved(world({"m": ("j", "i")}, 1).begin().opened("i"), "m", "j", "i").opened("j").opened_mail()
    assert state.found == ((1, "m"),)


def test_a_message_that_goes_where_a_query_has_yet_to_come_is_not_counted_twice() -> None:
    """The second pathological history of the text."""
    state = moved(world({"m": ("i", "j")}, 1).begin().opened("i"), "m", "i", "j").opened("j").opened_mail()
    assert state.found == ((1, "m"),)


def test_a_message_that_is_between_two_stores_is_neither() -> None:
    """It has left a node or the mailboxes and not come: the query waits for the one, and settles the other later."""
    state = world({"m": ("i", "j")}, 2).departed("m", "i", MAIL).begin().opened("i").opened("j")
    assert not state.all_pushed()
    (parcel,) = state.parcels
    state = state.came(parcel).opened_mail()
    assert state.found == ((1, "m"),)
    state = state.departed("m", MAIL, "j").begin().opened("i").opened("j").opened_mail()
    assert (2, "m") not in state.found
    assert state.undecided
    (parcel,) = [each for each in state.parcels if each.came is None]
    assert state.came(parcel).found == ((1, "m"), (2, "m"))


def test_without_the_rules_the_truth_is_missed() -> None:
    """A gate that cannot close is no gate: the same histories, and nothing is hidden or shown."""
    state = moved(world({"m": ("i", "j")}, 1).begin().opened("i"), "m", "i", "j")
    forgetful = state._with("j", Place()).opened("j").opened_mail()
    with pytest.raises(AssertionError, match="counted twice"):
        forgetful.check()
    state = moved(world({"m": ("j", "i")}, 1).begin().opened("i"), "m", "j", "i")
    forgetful = replace(state, shown=frozenset()).opened("j").opened_mail()
    with pytest.raises(AssertionError, match="missed"):
        forgetful.check()
