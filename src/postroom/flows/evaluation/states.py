"""The states of arcs in a step: read on demand, written for the messages that the step has settled."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from postroom.engine.steps.effects import Arrival, Effects, Enqueue
from postroom.flows.evaluation.events import error
from postroom.flows.evaluation.folding import NEVER, Fold, Row, States, Take, fold_of
from postroom.flows.graph.versions import RoomGraph
from postroom.flows.language.codecs import writer
from postroom.flows.language.definitions import Arc, Meet, Stateful
from postroom.flows.language.values import parse_event
from postroom.model.message import IN_SPHERE, NO_PROPERTIES
from postroom.store.tables.arc_states import ArcState, ArcStates

_SPHERE = "an event of a sphere may be undone, and a state may not"
Begin = Callable[[str, Fold], States]  # the states of an arc, by their name
_Writes = dict[tuple[str, int], Row | None]


class StoredStates:
    """The state of one arc in the store. Changes are kept here until they are written, message by message."""

    def __init__(self, table: ArcStates, arc: str, fold: Fold) -> None:
        self._table = table
        self.arc = arc
        self._fold = fold  # knows what rows say
        self._rows: dict[str, dict[int, Row]] = {}
        self._heap: list[tuple[int, str, int]] = []  # when rows that were read are due
        self._read_until = -(2**63)  # all that is due up to then has been read
        self._next = table.next_due(arc, self._read_until)
        self._whole = False  # every group that is stored is here
        self._stored: set[tuple[str, int]] = set()  # the rows that were read
        self.writes: list[_Writes] = [{}]  # of each message

    def read(self, most: int) -> None:
        """Read the whole state for a large batch, unless it has more than ``most`` rows."""
        stored = self._table.whole(self.arc, most)
        if stored is not None:
            groups: dict[str, list[ArcState]] = {}
            for state in stored:
                groups.setdefault(state.group, []).append(state)
            for group, states in groups.items():
                self._note(group, states)
            self._whole, self._next = True, None

    def rows(self, group: str) -> Mapping[int, Row]:
        rows = self._rows.get(group)
        if rows is not None:
            return rows
        return {} if self._whole else self._read(group)

    def row(self, group: str, place: int) -> Row | None:
        return self.rows(group).get(place)

    def put(self, group: str, place: int, row: Row | None) -> None:
        rows = self._rows.get(group)
        if rows is None:
            rows = self._note(group, ()) if self._whole else self._read(group)
        if row is None:
            rows.pop(place, None)
        else:
            before = rows.get(place)
            rows[place] = row
            if row.due < NEVER and (before is None or before.due != row.due):
                heapq.heappush(self._heap, (row.due, group, place))
        self.writes[-1][group, place] = row

    def _read(self, group: str) -> dict[int, Row]:
        return self._note(group, self._table.group(self.arc, group))

    def _note(self, group: str, stored: Sequence[ArcState]) -> dict[int, Row]:
        value = self._fold.value
        rows = self._rows[group] = {state.place: Row(state.due, value(group, state.value)) for state in stored}
        for place, row in rows.items():
            heapq.heappush(self._heap, (row.due, group, place))
            self._stored.add((group, place))
        return rows

    def due(self, until: int) -> list[tuple[str, int, Row]]:
        if self._next is not None and self._next <= until:
            for state in self._table.due(self.arc, self._read_until, until):
                self.rows(state.group)
            self._read_until = until
            self._next = self._table.next_due(self.arc, until)
        rows: dict[tuple[str, int], Row] = {}
        while self._heap and self._heap[0][0] <= until:
            due, group, place = heapq.heappop(self._heap)
            row = self._rows[group].get(place)
            if row is not None and row.due == due:
                rows[group, place] = row
        return [(group, place, row) for (group, place), row in rows.items()]

    def write(self, messages: int) -> None:
        """Write the changes of the first ``messages`` messages."""
        changed: _Writes = {}
        for write in self.writes[:messages]:
            changed |= write
        text = self._fold.text
        put = [
            ArcState(self.arc, group, place, row.due, text(group, row.value))
            for (group, place), row in changed.items()
            if row is not None
        ]
        gone = [(self.arc, *place) for place, row in changed.items() if row is None and place in self._stored]
        self._table.write(put, gone)


@dataclass(frozen=True)
class StatefulArc:
    """An arc with state, as a graph has it."""

    arc: Arc
    fold: Fold
    state: str

    def effects(self, arrival: Arrival, event: Any, take: Take, graph: RoomGraph) -> Iterator[Enqueue]:
        """What the arc delivers of an event, or an error instead."""
        write = writer(graph.running.spaces[self.arc.target].type)
        for _, made in take([(None, arrival.queue, event)]):
            if made.failure is not None:
                yield error(arrival, f"arc {self.arc.name}: {made.failure}", self.arc.name)
                continue
            yield Enqueue(self.arc.name, self.arc.target, "json", None, NO_PROPERTIES, write(made.event))


def stateful_arcs(graph: RoomGraph, space: str) -> list[StatefulArc]:
    """The arcs with state that events of a space meet, in order."""
    kept: list[StatefulArc] | None = graph.memory.get(("stateful", space))
    if kept is None:
        arcs = [arc for arc in graph.running.outgoing().get(space, ()) if isinstance(arc.does, Stateful)]
        kept = graph.memory["stateful", space] = [_stateful(graph, arc) for arc in arcs]
    return kept


def _stateful(graph: RoomGraph, arc: Arc) -> StatefulArc:
    spaces = graph.running.spaces
    source, target = spaces[arc.source].type, spaces[arc.target].type
    other = spaces[arc.does.space].type if isinstance(arc.does, Meet) else None
    return StatefulArc(arc, fold_of(arc, source, target, other), graph.state_name(arc))


class Folding:
    """The arcs with state of some spaces, applied to one event after another."""

    def __init__(
        self,
        graph: RoomGraph,
        living: frozenset[str],
        spaces: Sequence[str],
        begin: Begin,
        barred: Mapping[str, str] | None = None,
    ) -> None:
        self._graph = graph
        self._barred = barred or {}  # arcs that may not act, and why
        self.arcs: Mapping[str, list[StatefulArc]] = {
            space: [stateful_arc for stateful_arc in stateful_arcs(graph, space) if stateful_arc.arc.target in living]
            for space in spaces
        }
        self._begin = begin
        self._takes: dict[str, Take] = {}

    @property
    def targets(self) -> frozenset[str]:
        """The queues that it may put messages into."""
        return frozenset(arc.arc.target for arcs in self.arcs.values() for arc in arcs)

    def effects(self, arrival: Arrival) -> Effects:
        """The effects of an event at the arcs with state; errors come first."""
        arcs = self.arcs.get(arrival.queue, ())
        if not arcs or arrival.failure is not None:
            return ()
        if IN_SPHERE in arrival.properties:
            return tuple(error(arrival, f"arc {arc.arc.name}: {_SPHERE}", arc.arc.name) for arc in arcs)
        event = parse_event(arrival.body, self._graph.running.spaces[arrival.queue].type, arrival.queue)
        made = [effect for arc in arcs for effect in self._made(arc, arrival, event)]
        return tuple(sorted(made, key=lambda effect: not effect.failed))

    def _made(self, arc: StatefulArc, arrival: Arrival, event: Any) -> Iterable[Enqueue]:
        why = self._barred.get(arc.arc.full_name)
        if why is not None:
            return [error(arrival, f"arc {arc.arc.name}: {why}", arc.arc.name)]
        return arc.effects(arrival, event, self._take(arc), self._graph)

    def _take(self, arc: StatefulArc) -> Take:
        if arc.state not in self._takes:
            self._takes[arc.state] = arc.fold.over(self._begin(arc.state, arc.fold))
        return self._takes[arc.state]


class StepFolding:
    """Folding in the commit of a step: writes the states as they were after the settled messages."""

    def __init__(
        self,
        graph: RoomGraph,
        living: frozenset[str],
        spaces: Sequence[str],
        table: ArcStates,
        enter: Callable[[Arrival], Arrival],
        barred: Mapping[str, str] | None = None,
    ) -> None:
        self._table = table
        self._enter = enter  # a message as an event
        self._states: list[StoredStates] = []
        self._count = 0  # messages so far
        self._folding = Folding(graph, living, spaces, self._begin, barred)

    @property
    def targets(self) -> frozenset[str]:
        return self._folding.targets

    def effects(self, arrival: Arrival) -> Effects:
        self._count += 1
        for states in self._states:
            states.writes.append({})
        return self._folding.effects(self._enter(arrival))

    def write(self, messages: int) -> None:
        """Write the states as they were after so many messages."""
        for states in self._states:
            states.write(max(len(states.writes) - (self._count - messages), 0))

    def _begin(self, name: str, fold: Fold) -> StoredStates:
        self._states.append(StoredStates(self._table, name, fold))
        return self._states[-1]
