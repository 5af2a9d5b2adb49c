"""Looking for complete working sets: from a message to the partners that its values lead to, the oldest first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from postroom.limits import CANDIDATE_ROWS, SEARCH_TRIES_MAX
from postroom.stations.procedures.plan import Desk, Find, Plan, Selected, compare, joined
from postroom.store.desks import Candidate

#: The next candidates of a slot and a value from behind a turn, in the order of turns.
LookUp = Callable[[str, str, int], Sequence[Candidate]]


class TooManyTries(Exception):
    """A message was compared with more candidates than anyone would wait for."""


@dataclass
class Memory:
    """The candidates of a station during a step: those in the store, as they are asked for, and the new ones."""

    desk: Desk
    look_up: LookUp
    gone: set[int] = field(default_factory=set)  # messages that are no candidates any more
    stale: list[Candidate] = field(default_factory=list)  # that were found in the store, and whose messages have moved
    _stored: dict[tuple[str, str], tuple[list[Candidate], bool]] = field(default_factory=dict)
    _added: dict[tuple[str, str], list[Candidate]] = field(default_factory=dict)

    def know(self, slot: str, values: Iterable[str], found: Mapping[str, Sequence[Candidate]]) -> None:
        """All candidates of a slot with any of these values, which someone has looked up for us."""
        for value in values:
            some = found.get(value, ())
            here = [each for each in some if each.is_there]
            if len(here) < len(some):
                self.stale += [each for each in some if not each.is_there]
            self._stored[slot, value] = (here, True)

    def add(self, candidates: Sequence[Candidate]) -> None:
        for each in candidates:
            self._added.setdefault((each.slot, each.value), []).append(each)

    @property
    def added(self) -> list[Candidate]:
        """All new candidates."""
        return [each for some in self._added.values() for each in some]

    def candidates(self, slot: str, value: str) -> Iterator[Candidate]:
        at = 0
        while True:
            known, is_all = self._stored.get((slot, value), ([], False))
            while at < len(known):
                if known[at].message not in self.gone:
                    yield known[at]
                at += 1
            if is_all:
                break
            self._keep(slot, value, self.look_up(slot, value, known[-1].turn if known else 0))
        for each in self._added.get((slot, value), ()):
            if each.message not in self.gone:
                yield each

    def _keep(self, slot: str, value: str, found: Sequence[Candidate]) -> None:
        known, _ = self._stored.get((slot, value), ([], False))
        self.stale += [each for each in found if not each.is_there]
        # A page ends where a turn may not be complete; each turn is one message, which stands in a slot once.
        is_all = len(found) < CANDIDATE_ROWS
        self._stored[slot, value] = ([*known, *(each for each in found if each.is_there)], is_all)
        if not is_all and not any(each.is_there for each in found):
            self._keep(slot, value, self.look_up(slot, value, found[-1].turn))


def probes(plan: Plan, chosen: Selected) -> Iterator[tuple[str, str]]:
    """The slots and values that a message leads to by itself."""
    values = chosen.values
    for slot, places in plan.own_probes[chosen.sketch]:
        yield slot, joined([values[place] for place in places])


def rows(
    desk: Desk, chosen: Selected, turn: int, message: int, position: int, remote: bool, since: int
) -> list[Candidate]:
    """Where others will look for a message that fits a sketch."""
    plan = desk.plans[chosen.plan]
    about = (turn, message, position, int(remote), since, chosen.values, True)
    new = tuple.__new__  # the constructor's half cost counts here
    return [
        new(Candidate, (name, plan.slot_value(chosen.sketch, slot, chosen.values), *about))
        for slot, name in enumerate(plan.slot_names[chosen.sketch])
    ]


def complete(plan: Plan, chosen: Selected, first: Candidate, memory: Memory) -> dict[int, Candidate] | None:
    """The working set that a message completes, by sketch; None if it has to wait.

    Of several sets it is the one whose messages are the oldest, in the order in which the search asks for them.
    """
    search = _Search(plan, memory, {chosen.sketch: first})
    return search.bound if search.fill(plan.searches[chosen.sketch]) else None


def probe(find: Find, bound: Mapping[int, Candidate]) -> str:
    """The value by which the next candidates are looked up."""
    return joined([bound[sketch].values[place] for sketch, place in find.probe])


class _Search:
    def __init__(self, plan: Plan, memory: Memory, bound: dict[int, Candidate]) -> None:
        self._plan = plan
        self._memory = memory
        self._tries = SEARCH_TRIES_MAX
        self.bound = bound

    def fill(self, way: Sequence[Find]) -> bool:
        if not way:
            return True
        find, *rest = way
        plan, bound = self._plan, self.bound
        value = probe(find, bound)
        for each in self._memory.candidates(plan.slot_names[find.sketch][find.slot], value):
            self._tries -= 1
            if self._tries < 0:
                raise TooManyTries
            if self._fits(find, each, bound):
                bound[find.sketch] = each
                if self.fill(rest):
                    return True
                del bound[find.sketch]
        return False

    @staticmethod
    def _fits(find: Find, each: Candidate, bound: Mapping[int, Candidate]) -> bool:
        """One message does not match two sketches of a working set."""
        for other in bound.values():
            if other.message == each.message:
                return False
        for ours, sign, sketch, theirs in find.checks:
            if not compare(each.values[ours], sign, bound[sketch].values[theirs]):
                return False
        return True
