"""Runs the arcs with state on a batch: its events one after another, each along its whole path.

It uses the same folding and states as steps do, in the order of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from postroom.flows.evaluation import plain
from postroom.flows.evaluation.folding import States
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


class Router:
    """Routes the events of one batch. ``made`` are the events at the ends of the stream, by space."""

    def __init__(self, room_graph: RoomGraph, begin: Begin) -> None:
        self._graph = room_graph
        self._ends = Ends(room_graph)
        self._begin = begin
        self._spaces: dict[str, _Space] = {}
        self._states: dict[str, States] = {}
        self._tasks: dict[str, plain.FlowTask] = {}
        self.made: dict[str, list[str]] = {}
        self.refused: list[Refused] = []

    def lead(self, space: str, body: str, *, root: bool = False) -> None:
        """Route an event that arrived in a space. At a source, Spark has already run the arcs without state."""
        todo = [(space, _Event(self._of(space).codec, body), root)]
        while todo:
            space, event, root = todo.pop()
            following = list(self._next(space, event, root))
            todo += [(target, made, False) for target, made in reversed(following)]

    def keep(self, space: str, body: str) -> None:
        """Keep an event at the end of its path."""
        if self._of(space).keeps:
            self.made.setdefault(space, []).append(body)

    def _next(self, space: str, event: _Event, root: bool) -> Iterator[tuple[str, _Event]]:
        """The next places of an event: first from arcs with state, then from the others."""
        known = self._of(space)
        if known.keeps:
            self.keep(space, event.body)
        for stateful_arc, states, target in known.arcs:
            for made in stateful_arc.fold.take(space, event.value, states):
                if made.failure is not None:
                    why = f"arc {stateful_arc.arc.name}: {made.failure}"
                    self.refused.append(Refused(space, why, event.body, stateful_arc.arc.name))
                else:
                    yield stateful_arc.arc.target, _Event(target, value=made.event)
        if not root and known.leads_on:
            yield from self._passed(space, event.body)

    def _passed(self, space: str, body: str) -> Iterator[tuple[str, _Event]]:
        """What arcs without state deliver of an event, up to the next stop."""
        task = self._tasks.get(space)
        if task is None:
            graph = self._graph
            task = self._tasks[space] = plain.task(graph.running, graph.keeping, graph.rows, space, {})
        for place, text, failure in task.deliveries(body):
            arc = task.steps[place].arc
            if failure is not None:
                self.refused.append(Refused(space, failure, body, arc.name))
            elif self._ends.folded(arc.target):
                yield arc.target, _Event(self._of(arc.target).codec, body if text is None else text)
            else:
                self.keep(arc.target, body if text is None else text)

    def _of(self, space: str) -> _Space:
        """Cached facts about a space."""
        known = self._spaces.get(space)
        if known is None:
            ends, spaces = self._ends, self._graph.running.spaces
            arcs = [
                (arc, self._states_of(arc), _Codec.of(spaces[arc.arc.target].type))
                for arc in stateful_arcs(self._graph, space)
            ]
            known = _Space(
                _Codec.of(spaces[space].type),
                ends.sinks(space) or ends.stored(space),
                any(isinstance(arc.does, Plain) for arc in self._graph.running.outgoing().get(space, ())),
                arcs,
            )
            self._spaces[space] = known
        return known

    def _states_of(self, stateful_arc: StatefulArc) -> States:
        name = stateful_arc.state
        if name not in self._states:
            self._states[name] = self._begin(name, stateful_arc.fold)
        return self._states[name]


class _Space(NamedTuple):
    codec: _Codec
    keeps: bool  # what arrives goes outside from here, or stays in the room
    leads_on: bool  # by arcs without state
    arcs: list[tuple[StatefulArc, States, _Codec]]  # with state, and how what each makes is written
