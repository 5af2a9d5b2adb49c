"""The search for complete working sets: from a message to partners by value, oldest first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from postroom.limits import CANDIDATE_ROWS, INDEXED_CHARS_MAX, SEARCH_TRIES_MAX
from postroom.stations.procedures.plan import Desk, Find, Plan, Selected, compare, joined, value_at
from postroom.store.tables.working_sets import Candidate

#: The next candidates of a slot and a value from behind a turn, in the order of turns.
LookUp = Callable[[str, str, int], Sequence[Candidate]]


_FEW = 8  # candidates that are passed over as fast as the place of the first is remembered


class TooManyTries(Exception):
    """A message was compared with too many candidates."""


@dataclass
class Memory:
    """The candidates of a station during a step: stored ones, read on demand, and new ones."""

    desk: Desk
    look_up: LookUp | None  # None if there are none in the store
    gone: set[int] = field(default_factory=set)  # messages that are no candidates any more
    stale: list[Candidate] = field(default_factory=list)  # that were found in the store, and whose messages have moved
    added: list[tuple[Selected, Candidate]] = field(default_factory=list)  # the new ones
    _stored: dict[tuple[str, str], _Known] = field(default_factory=dict)
    _added: defaultdict[str, dict[str, list[Candidate]]] = field(default_factory=lambda: defaultdict(dict))
    _passed: dict[tuple[str, str, bool], int] = field(default_factory=dict)  # how many from the first one on are gone
    tries: int = 0  # candidates that were compared

    def know(self, slot: str, values: Iterable[str], candidates: Mapping[str, Sequence[Candidate]]) -> None:
        """Add all stored candidates of a slot with any of these values, looked up before."""
        for value in values:
            self._keep((slot, value), candidates.get(value, ()), is_all=True)

    def add(self, chosen: Selected, candidate: Candidate) -> None:
        """Add a new message for a sketch to each of its slots."""
        self.added.append((chosen, candidate))
        number, sketch, values = chosen
        for name, places in self.desk.plans[number].slot_places[sketch]:
            slot, value = self._added[name], value_at(places, values)
            others = slot.get(value)
            if others is None:
                slot[value] = [candidate]
            else:
                others.append(candidate)

    def is_empty(self, slot: str, value: str) -> bool:
        """Whether there are certainly no candidates."""
        if value in self._added[slot]:
            return False
        if self.look_up is None:
            return True
        known = self._stored.get((slot, value))
        return known is not None and known.is_all and not known.here

    def candidates(self, slot: str, value: str) -> Iterable[Candidate]:
        """The candidates for a slot and value, oldest first; some may be gone."""
        some = self._added[slot].get(value, ())
        added: Iterable[Candidate] = some
        if len(some) > _FEW and self.gone:
            added = map(some.__getitem__, range(self._first((slot, value, True), some), len(some)))
        if self.look_up is None:
            return added
        return chain(self._in_store((slot, value), self.look_up), added)

    def _first(self, key: tuple[str, str, bool], some: Sequence[Candidate]) -> int:
        """The start position: older candidates that were used need not be skipped again."""
        at = self._passed.get(key, 0)
        while at < len(some) and some[at].message in self.gone:
            at += 1
        self._passed[key] = at
        return at

    def _in_store(self, key: tuple[str, str], look_up: LookUp) -> Iterator[Candidate]:
        at = self._first((*key, False), self._stored.get(key, _NOTHING).here)
        while True:
            known = self._stored.get(key, _NOTHING)
            while at < len(known.here):
                yield known.here[at]
                at += 1
            if known.is_all:
                return
            page = look_up(*key, known.until)
            self._keep(key, page, is_all=len(page) < CANDIDATE_ROWS)

    def _keep(self, key: tuple[str, str], candidates: Sequence[Candidate], *, is_all: bool) -> None:
        before = self._stored.get(key, _NOTHING)
        here = [candidate for candidate in candidates if candidate.is_there]
        if len(here) < len(candidates):
            self.stale += [candidate for candidate in candidates if not candidate.is_there]
        # Each turn is one message, which stands in a slot once: so a page ends between two turns.
        until = candidates[-1].turn if candidates else before.until
        self._stored[key] = _Known([*before.here, *here], until, is_all)


class _Known(NamedTuple):
    """The known part of the stored candidates of a slot and value."""

    here: list[Candidate]
    until: int
    is_all: bool


_NOTHING = _Known([], 0, False)


def probes(plan: Plan, chosen: Selected) -> Iterator[tuple[str, str]]:
    """The slots and values to look up for a message."""
    values = chosen.values
    for slot, places in plan.own_probes[chosen.sketch]:
        yield slot, value_at(places, values)


def rows(plan: Plan, sketch: int, candidate: Candidate) -> list[Candidate]:
    """The stored rows of a candidate: one for each slot."""
    values = candidate.values
    return [candidate._replace(slot=name, value=value_at(places, values)) for name, places in plan.slot_places[sketch]]


def complete(plan: Plan, chosen: Selected, first: Candidate, memory: Memory) -> dict[int, Candidate] | None:
    """The working set that a message completes, by sketch; None if it has to wait.

    Of several sets it is the one with the oldest messages, in search order.
    """
    way = plan.searches[chosen.sketch]
    bound = {chosen.sketch: first}
    if not way:
        return bound
    value = probe(way[0], bound)
    if memory.is_empty(way[0].name, value):
        return None
    return bound if _fill(memory, way, 0, value, bound, memory.tries + SEARCH_TRIES_MAX) else None


def _fill(
    memory: Memory, way: Sequence[Find], place: int, value: str, bound: dict[int, Candidate], tries_max: int
) -> bool:
    """Find partners from a step of the search order on, among those with a value."""
    find, gone = way[place], memory.gone
    is_sure = find.is_sure and len(value) < INDEXED_CHARS_MAX
    for candidate in memory.candidates(find.name, value):
        if candidate.message in gone:
            continue
        memory.tries += 1
        if memory.tries > tries_max:
            raise TooManyTries
        if is_sure or fits(find, candidate, bound):
            bound[find.sketch] = candidate
            next = place + 1
            if next == len(way) or _fill(memory, way, next, probe(way[next], bound), bound, tries_max):
                return True
            del bound[find.sketch]
    return False


def probe(find: Find, bound: Mapping[int, Candidate]) -> str:
    """The lookup key of the next candidates."""
    if len(find.probe) == 1:  # as most are
        ((sketch, place),) = find.probe
        return value_at((place,), bound[sketch].values)
    return joined([bound[sketch].values[place] for sketch, place in find.probe])


def fits(find: Find, candidate: Candidate, bound: Mapping[int, Candidate]) -> bool:
    """Whether a candidate fits; a message cannot fill two sketches of a set."""
    for other in bound.values():
        if other.message == candidate.message:
            return False
    values = candidate.values
    return all(compare(values[ours], sign, bound[sketch].values[theirs]) for ours, sign, sketch, theirs in find.checks)
