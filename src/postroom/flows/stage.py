"""The flows' part in the engine's steps: which messages, and by which version of the graph."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from postroom.engine.steps.stage import Result, Share, Turn
from postroom.engine.steps.step import releases
from postroom.engine.steps.watching import WatchingStage
from postroom.flows.clients import Clients
from postroom.flows.graph.versions import CLIENT, RoomGraph, RoomGraphs
from postroom.flows.language.definitions import Table
from postroom.flows.presence import end_lapsed
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.epochs import END, Flowing

if TYPE_CHECKING:
    from postroom.flows.evaluation.share import FlowShare


class FlowStage(WatchingStage):
    share_class: type[FlowShare] | None = None  # another way to evaluate, for tests

    def __init__(self, room_graphs: RoomGraphs) -> None:
        self._room_graphs = room_graphs

    def steps(self, turn: Turn) -> Generator[Result] | None:
        end_lapsed(turn.store, Clients(turn.store, self._room_graphs))
        return super().steps(turn)

    def share(self, tx: Transaction, waiting: Collection[str] = ()) -> Share | None:
        """The oldest messages that have yet to flow, with the graph that was in force when they arrived.

        A space that is on hold, or waits for one on hold, does not block later epochs in other spaces.
        """
        flowing = tx.epochs.flowing()
        if not flowing:
            return None
        now = self._room_graphs.now(tx)
        free = {source.name for source in flowing if source.name not in waiting and _releases(tx, source)}
        aside = now.durable
        sources = _oldest(tx, [source for source in flowing if source.name not in aside and source.name in free])
        firsts = [first for first in map(tx.epochs.first, sources) if first is not None]
        epoch = tx.epochs.at(min(firsts, default=END))
        if epoch is None:
            return None
        met = self._room_graphs.at(tx, epoch.version)
        # What an arc has missed comes before all that is published while it is enabled.
        missed = [
            source
            for source in flowing
            if source.name in aside and _is_enabled(met, source.name) and tx.epochs.first(source) is not None
        ]
        if any(source.name in free for source in missed):
            return self._share(
                met, now, {source.name: (source.since, source.end) for source in missed if source.name in free}
            )
        late = met.before(aside[source.name].source for source in missed)
        windows = {
            source.name: (max(source.since, epoch.since), min(source.end, epoch.until))
            for source in sources
            if source.since < epoch.until and source.end > epoch.since and source.name not in late
        }
        return self._share(met, now, windows) if windows else None

    def worker_module(self, store: Store) -> str:
        return "postroom.flows.evaluation.plain" if store.read(lambda tx: tx.epochs.flowing()) else ""

    def _share(self, met: RoomGraph, now: RoomGraph, windows: dict[str, tuple[int, int]]) -> Share:
        from postroom.flows.evaluation.share import FlowShare  # pyarrow takes half a second: only when it is needed

        # What is for a consumer's space stays there, also if arcs leave that space by now: they are too late for it.
        staying = frozenset(met.graph.spaces) & now.flowing - met.flowing
        # A client that has unsubscribed still gets what was published before; the spaces of files go with all of it.
        past = frozenset(name for name in met.graph.spaces if met.origin(f"space {name}") == CLIENT) - now.places
        living = met.living(now) | past
        return (self.share_class or FlowShare)(now.version, _with_rows(met, now), living, windows, staying, past)


def _oldest(tx: Transaction, flowing: Iterable[Flowing]) -> list[Flowing]:
    """For each space the first part of its messages that has yet to flow."""
    oldest: dict[str, Flowing] = {}
    for source in flowing:
        if source.name not in oldest or tx.epochs.first(oldest[source.name]) is None:
            oldest[source.name] = source
    return list(oldest.values())


def _is_enabled(room_graph: RoomGraph, queue: str) -> bool:
    arc = room_graph.durable.get(queue)
    return arc is not None and not room_graph.is_disabled(arc)


def _releases(tx: Transaction, flowing: Flowing) -> bool:
    queue = tx.queues.named_to_read(flowing.name)
    return queue is not None and releases(tx, queue)


def _with_rows(met: RoomGraph, now: RoomGraph) -> RoomGraph:
    """An older graph with the current rows of collections: master data has no history here."""
    tables = {
        key: entry
        for key, entry in now.kept.items()
        if isinstance(entry.statement, Table) and entry.statement.collection and key in met.kept
    }
    if met is now or not tables:
        return met
    graph: RoomGraph | None = now.memory.get(met.version)
    if graph is None:
        kept = {
            key: replace(entry, rows=tables[key].rows) if key in tables else entry for key, entry in met.kept.items()
        }
        graph = now.memory[met.version] = RoomGraph(met.version, kept)
    return graph
