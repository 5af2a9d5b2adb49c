"""The paths of events in a graph: every way from a space to its consumers. Independent of Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from postroom.flows.graph.graph import Graph
from postroom.flows.language.definitions import Arc, Plain, Select, Stateful, Transform
from postroom.flows.language.predicates import Predicate, predicates
from postroom.limits import FLOW_COPIES_MAX, INDEXED_ARCS_MIN

#: Why an arc delivers nothing of an event that it can make nothing of.
NO_VALUE = "a value is too large for its type, or divided by zero"


@dataclass(frozen=True, slots=True)
class PathStep:
    """One arc on one path from the source; its events have a column of their own."""

    number: int
    before: int  # the number of the step whose events it takes; -1 is the source
    arc: Arc


class ArcPaths:
    """The arcs of a graph.

    ``stored`` are the spaces that keep what arrives; arcs in ``aside`` only deliver the reason.
    """

    def __init__(
        self,
        graph: Graph,
        stored: frozenset[str],
        aside: Mapping[str, str] | None = None,
        cuts: Sequence[str] = (),
    ) -> None:
        self._graph = graph
        self._stored = stored.union(cuts)
        self._aside = aside or {}
        self._cuts = frozenset(cuts)
        self._outgoing = {
            name: [arc for arc in arcs if isinstance(arc.does, Plain)] for name, arcs in graph.outgoing().items()
        }
        self._ordered = frozenset(
            source for arc, *_ in graph.arcs.values() if isinstance(arc.does, Stateful) for source in arc.sources
        )

    def ways(self, source: str) -> list[PathStep]:
        """Every arc on every path from a source to its consumers, each after the one it follows.

        Paths end at arcs with state, because events wait there for their turn.
        """
        return list(self._ways(source, -1, count()))

    def junctions(self, source: str) -> list[str]:
        """The spaces where paths join and continue, in order, if there are very many paths.

        A plan is cut there, so that it has every arc once.
        """
        arcs, order = 0, list[str]()
        entered: dict[str, int] = {}
        walk, seen = [(source, iter(self._outgoing.get(source, ())))], {source}
        while walk:
            space, following = walk[-1]
            arc = next(following, None)
            if arc is None:
                order.append(walk.pop()[0])
                continue
            arcs, entered[arc.target] = arcs + 1, entered.get(arc.target, 0) + 1
            if arc.target not in seen and arc.target not in self._ordered:
                seen.add(arc.target)
                walk.append((arc.target, iter(self._outgoing.get(arc.target, ()))))
        steps: dict[str, int] = {}
        for space in order:
            steps[space] = sum(1 + steps.get(arc.target, 0) for arc in self._outgoing.get(space, ()))
        if steps[source] <= arcs + FLOW_COPIES_MAX:
            return []
        return [space for space in reversed(order) if entered.get(space, 0) > 1 and self._outgoing.get(space)]

    def _ways(self, space: str, before: int, numbers: Iterator[int]) -> Iterator[PathStep]:
        todo: list[tuple[str, int]] = [(space, before)]
        while todo:
            space, before = todo.pop()
            following = []
            for arc in self._outgoing.get(space, ()):
                step = PathStep(next(numbers), before, arc)
                yield step
                if arc.target not in self._cuts and arc.target not in self._ordered:
                    following.append((arc.target, step.number))
            todo += reversed(following)

    def unchanged(self, source: str) -> set[int]:
        """The steps whose events are the unchanged input."""
        numbers = {-1}
        for step in self.ways(source):
            types = [self._graph.spaces[name].type for name in (step.arc.source, step.arc.target)]
            if step.before in numbers and not isinstance(step.arc.does, Transform) and types[0] == types[1]:
                numbers.add(step.number)
        return numbers - {-1}

    def indexed(self, source: str, steps: Sequence[PathStep]) -> dict[int, list[Predicate]]:
        """The arcs that an index evaluates: very many that select from the source for consumers of their own."""
        indexes = {}
        for step in steps:
            ends = step.arc.target in self._stored and not self._outgoing.get(step.arc.target)
            if (
                step.before == -1
                and ends
                and isinstance(step.arc.does, Select)
                and step.arc.full_name not in self._aside
            ):
                asked = predicates(step.arc.does.pattern, self._graph.spaces[source].type)
                if asked is not None:
                    indexes[step.number] = asked
        return indexes if len(indexes) >= INDEXED_ARCS_MIN else {}
