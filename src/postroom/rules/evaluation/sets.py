"""The sets that the messages of one query read.

Each message is written once, and a set has the positions of its messages. So a message in several sets is the same node
to a rule, and all are in arrival order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from graphlib import TopologicalSorter
from itertools import chain, pairwise

from postroom.engine.steps.effects import Arrival, Change, Document, Granule
from postroom.engine.steps.serial import Timeline, before
from postroom.rules.compilation.plan import Plan
from postroom.rules.evaluation.grouping import Base as Base
from postroom.rules.evaluation.saxon_format import element

#: A message by what made it (-1 if it is stored) and its place there.
_Known = tuple[int, int, str]
_Run = tuple[int, int]  # first place and length


class Sets:
    def __init__(self, plan: Plan, base: Base, known: Timeline, arrivals: Iterable[Arrival]) -> None:
        self._base = base
        self._known = known
        self._numbers: dict[object, int] = {}
        self._places: dict[_Known, int] = {}  # from 1
        self._by_key: dict[int, int] = {}
        self._histories: dict[Granule, tuple[int, list[_Run]]] = {}
        self.elements: list[str] = []
        granules = dict.fromkeys(granule for arrival in arrivals if arrival.reads for granule in arrival.granules)
        there = {_stored(granule, member): member for granule in granules for member in base.get(granule, ())}
        made = {
            _made(change): change.document
            for granule in granules
            for change in known.get(granule, ())
            if change.document
        }
        for one in chain(_in_order(_lists(plan, base, granules)), sorted(made)):
            document = there[one] if one in there else made[one]
            if document.format == "json" and document.type is None and document.body.strip() == "null":
                continue  # it is nothing: no item
            self.elements.append(element(document, plan))
            self._places[one] = len(self.elements)
            if document.key:
                self._by_key[document.key] = len(self.elements)

    def place(self, key: int) -> int | None:
        """The position of a message; None if it is in no set."""
        return self._by_key.get(key)

    def number(self, index: int, read: Sequence[Granule]) -> int:
        """The number of the set that a message reads."""
        seen = tuple([(granule, len(before(index, self._known.get(granule, ())))) for granule in read])
        known = self._numbers.get(seen)
        if known is None:
            known = self._numbers[seen] = len(self._numbers)
            self.elements.append(f'<s id="{known}" d="{self._runs(seen)}"/>')
        return known

    def _runs(self, seen: Sequence[tuple[Granule, int]]) -> str:
        """The positions of a set's messages as runs."""
        if len(seen) == 1:
            runs: Iterable[_Run] = self._history(*seen[0])
        else:  # entries of an index: a message that two of them lead to is one message, and all are in their order
            inside = {
                place
                for pair in seen
                for start, length in self._history(*pair)
                for place in range(start, start + length)
            }
            runs = _run_together(sorted(inside))
        return " ".join([f"{start}+{length}" for start, length in runs])

    def _history(self, granule: Granule, count: int) -> list[_Run]:
        """A set after so many changes: a reset empties it, a new message is appended.

        Computed incrementally in message order.
        """
        done, runs = self._histories.get(granule, (-1, []))
        if not 0 <= done <= count:
            stored = [self._places.get(_stored(granule, member), 0) for member in self._base.get(granule, ())]
            done, runs = 0, _run_together([place for place in stored if place])
        for change in self._known.get(granule, ())[done:count]:
            place = None if change.document is None else self._places.get(_made(change), 0)
            if place is None:
                runs = []
            elif place:
                _add(runs, place)
        self._histories[granule] = (count, runs)
        return runs


def _run_together(places: Iterable[int]) -> list[_Run]:
    """
    >>> _run_together([1, 2, 3, 7, 9, 10])
    [(1, 3), (7, 1), (9, 2)]
    """
    runs: list[_Run] = []
    for place in places:
        _add(runs, place)
    return runs


def _add(runs: list[_Run], place: int) -> None:
    if runs and place == sum(runs[-1]):
        runs[-1] = (runs[-1][0], runs[-1][1] + 1)
    else:
        runs.append((place, 1))


def _stored(granule: Granule, document: Document) -> _Known:
    return (-1, document.key or document.place, "" if document.key else granule.name)


def _made(change: Change) -> _Known:
    assert change.document is not None
    return (change.at, change.document.place, "")


def _lists(plan: Plan, base: Base, granules: Iterable[Granule]) -> list[list[_Known]]:
    """The messages of each queue and slice that are read, in order."""
    by_queue: defaultdict[str, dict[_Known, int]] = defaultdict(dict)
    lists: list[list[_Known]] = []
    for granule in granules:
        places = {_stored(granule, member): member.place for member in base.get(granule, ())}
        if granule.kind == "slice":
            lists.append(list(places))
        else:
            by_queue[granule.name if granule.kind == "queue" else plan.indexes[granule.name].queue] |= places
    return [*(sorted(members, key=members.__getitem__) for members in by_queue.values()), *lists]


def _in_order(lists: Sequence[Sequence[_Known]]) -> Iterable[_Known]:
    """Merge lists: every message once, in an order consistent with all of them."""
    filled = [sequence for sequence in lists if sequence]
    if len(filled) < 2:
        return filled[0] if filled else ()
    graph: TopologicalSorter[_Known] = TopologicalSorter()
    for sequence in filled:
        graph.add(sequence[0])
        for earlier, later in pairwise(sequence):
            graph.add(later, earlier)
    return graph.static_order()
