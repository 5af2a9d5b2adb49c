"""Runs the arcs with state on a batch: with the folding and states of steps, in the order of the batch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cached_property
from graphlib import TopologicalSorter
from operator import itemgetter
from typing import Any, NamedTuple

from postroom.flows.evaluation import plain
from postroom.flows.evaluation.folding import Take
from postroom.flows.evaluation.states import Begin, StatefulArc, stateful_arcs
from postroom.flows.graph.versions import RoomGraph
from postroom.flows.language.codecs import reader, writer
from postroom.flows.language.definitions import Plain
from postroom.flows.language.types import Type


class Refused(NamedTuple):
    """An event that failed, and why."""

    space: str
    why: str
    body: str
    arc: str | None = None


class Ends:
    """Where events from outside end: in a sink, in the room, or in a state."""

    def __init__(self, room_graph: RoomGraph) -> None:
        self._graph = room_graph

    def sinks(self, space: str) -> bool:
        return self._graph.running.spaces[space].sink is not None

    def stored(self, space: str) -> bool:
        """Whether the room keeps what arrives: at an end without a sink, or in a space that retains."""
        leads_on = space in self._graph.flowing or self.sinks(space)
        return self._graph.running.spaces[space].retain or not leads_on

    def folded(self, space: str) -> bool:
        return space in self._graph.ordered

    def passed(self, space: str) -> bool:
        """Whether events that the room keeps there have already gone on."""
        return space in self._graph.flowing


_Way = tuple[int, ...]
_BY_WAY = itemgetter(0)
_HERE = -1  # at a stop, before everything that follows


class _Codec(NamedTuple):
    """How events of a type are read and written."""

    read: Callable[[str], Any]
    write: Callable[[Any], str]

    @staticmethod
    def of(type: Type) -> _Codec:
        return _Codec(reader(type), writer(type))


class _Event:
    """An event on its path: text and value, each made from the other on demand."""

    __slots__ = ("_body", "_codec", "_value")

    def __init__(self, codec: _Codec, body: str | None = None, value: Any = None) -> None:
        self._codec, self._body, self._value = codec, body, value

    @property
    def body(self) -> str:
        if self._body is None:
            self._body = self._codec.write(self._value)
        return self._body

    @property
    def value(self) -> Any:
        if self._value is None:
            assert self._body is not None
            self._value = self._codec.read(self._body)
        return self._value


class _Trip:
    """The events of a batch under way."""

    def __init__(self) -> None:
        self.arrived: dict[str, list[tuple[_Way, _Event, bool]]] = defaultdict(list)  # by space; the last: at a root
        self.waiting: dict[str, list[tuple[_Way, str, _Event]]] = defaultdict(list)  # by arc with state, with spaces
        self.made: dict[str, list[tuple[_Way, str]]] = defaultdict(list)
        self.refused: list[tuple[_Way, Refused]] = []


class Router:
    """Routes the events of a batch. ``made`` are the events at the ends of the stream, by space.

    Arcs take their events together, one arc after another. An event has a way: its number in the batch, and at each
    stop which of the following it is. What is made is put into the order of ways, as if each event was led along its
    whole path before the next one.
    """

    def __init__(self, room_graph: RoomGraph, begin: Begin) -> None:
        self._graph = room_graph
        self._ends = Ends(room_graph)
        self._begin = begin
        self._spaces: dict[str, _Space] = {}
        self._takes: dict[str, Take] = {}
        self.made: dict[str, list[str]] = {}
        self.refused: list[Refused] = []

    def lead(self, events: Iterable[tuple[str, str, bool]]) -> None:
        """Route events, each with its space and body.

        At a root, a source, Spark has run the arcs without state. Elsewhere what no arc with state waits for is at its
        end.
        """
        trip = _Trip()
        for number, (space, body, root) in enumerate(events):
            known = self._of(space)
            if root or known.arcs:
                trip.arrived[space].append(((number,), _Event(known.codec, body), root))
            elif known.keeps:
                trip.made[space].append(((number,), body))
        for space in self._in_order:
            for arc in self._into.get(space, {}).values():
                if arc.state in trip.waiting:
                    self._fold(arc, trip)
            if space in trip.arrived:
                self._pass(space, trip)
        for space, made in trip.made.items():
            self.made.setdefault(space, []).extend(body for _, body in sorted(made, key=_BY_WAY))
        self.refused += [refused for _, refused in sorted(trip.refused, key=_BY_WAY)]

    def _pass(self, space: str, trip: _Trip) -> None:
        """Lead what has arrived in a space on to the arcs with state, and by the others."""
        known, came = self._of(space), sorted(trip.arrived.pop(space), key=_BY_WAY)
        if known.keeps:
            trip.made[space] += [(way, event.body) for way, event, _ in came]
        for number, arc in enumerate(known.arcs):
            trip.waiting[arc.state] += [((*way, number), space, event) for way, event, _ in came]
        if known.task is not None:
            for way, event, root in came:
                if not root:
                    self._passed(space, way, event, trip)

    def _passed(self, space: str, way: _Way, event: _Event, trip: _Trip) -> None:
        """What arcs without state deliver of an event, up to the next stop."""
        known = self._of(space)
        assert known.task is not None
        last = len(known.arcs)
        for number, (place, text, failure) in enumerate(known.task.deliveries(event.body)):
            arc = known.task.steps[place].arc
            body, target = event.body if text is None else text, self._of(arc.target)
            if failure is not None:
                trip.refused.append(((*way, _HERE, last, number), Refused(space, failure, event.body, arc.name)))
            elif target.arcs:
                trip.arrived[arc.target].append(((*way, last, number), _Event(target.codec, body), False))
            elif target.keeps:
                trip.made[arc.target].append(((*way, _HERE, last, number), body))

    def _fold(self, stateful_arc: StatefulArc, trip: _Trip) -> None:
        """Let an arc with state take the events that wait for it."""
        state, arc = stateful_arc.state, stateful_arc.arc
        if state not in self._takes:
            self._takes[state] = stateful_arc.fold.over(self._begin(state, stateful_arc.fold))
        came, codec = sorted(trip.waiting.pop(state), key=_BY_WAY), self._of(arc.target).codec
        made = self._takes[state]([(each, each[1], each[2].value) for each in came])
        for number, ((way, space, event), outcome) in enumerate(made):
            if outcome.failure is None:
                trip.arrived[arc.target].append(((*way, number), _Event(codec, value=outcome.event), False))
            else:
                why = f"arc {arc.name}: {outcome.failure}"
                refused = Refused(space, why, event.body, arc.name)
                trip.refused.append(((*way[:-1], _HERE, way[-1], number), refused))

    @cached_property
    def _in_order(self) -> list[str]:
        """The spaces, each behind those from which events come there."""
        before = {name: set[str]() for name in self._graph.running.spaces}
        for name, arcs in self._graph.running.outgoing().items():
            for arc in arcs:
                before[arc.target].add(name)
        return list(TopologicalSorter(before).static_order())

    @cached_property
    def _into(self) -> dict[str, dict[str, StatefulArc]]:
        """The arcs with state that lead to each space, by the names of their states."""
        into: dict[str, dict[str, StatefulArc]] = defaultdict(dict)
        for name in self._graph.running.spaces:
            for arc in stateful_arcs(self._graph, name):
                into[arc.arc.target][arc.state] = arc
        return into

    def _of(self, space: str) -> _Space:
        """Cached facts about a space."""
        known = self._spaces.get(space)
        if known is None:
            graph, ends = self._graph, self._ends
            leads_on = any(isinstance(arc.does, Plain) for arc in graph.running.outgoing().get(space, ()))
            known = self._spaces[space] = _Space(
                _Codec.of(graph.running.spaces[space].type),
                ends.sinks(space) or ends.stored(space),
                plain.task(graph.running, graph.keeping, graph.rows, space, {}) if leads_on else None,
                stateful_arcs(graph, space),
            )
        return known


class _Space(NamedTuple):
    codec: _Codec
    keeps: bool  # what arrives goes outside from here, or stays in the room
    task: plain.FlowTask | None  # of the arcs without state
    arcs: list[StatefulArc]
