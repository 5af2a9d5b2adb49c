"""The flows' part in the engine's steps: which messages, and which graph they meet."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from postroom.engine.stage import Share
from postroom.engine.step import releases
from postroom.flows.chart import Chart, Charts, parked
from postroom.flows.definitions import Table
from postroom.store.epochs import END, Flowing
from postroom.store.transaction import Transaction

if TYPE_CHECKING:
    from postroom.flows.stage import FlowShare


class FlowStage:
    share_class: type[FlowShare] | None = None  # another way to evaluate, for tests

    def __init__(self, charts: Charts) -> None:
        self._charts = charts

    def share(self, tx: Transaction, waiting: Collection[str] = ()) -> Share | None:
        """The oldest messages that have yet to flow, with the graph that was in force when they came.

        A space that is on hold, or waits for one that is, does not keep those of later epochs in others from flowing.
        """
        flowing = [each for each in tx.epochs.flowing() if each.name not in waiting and _releases(tx, each)]
        if not flowing:
            return None
        now = self._charts.now(tx)
        aside = {parked(name) for name in now.durable}
        released = [each for each in flowing if each.name in aside and tx.epochs.first(each) is not None]
        if released:  # older than all that is still to come over their arcs
            return self._share(now, now, {each.name: (each.since, each.end) for each in released})
        rest = [each for each in flowing if each.name not in aside]
        firsts = [first for first in map(tx.epochs.first, rest) if first is not None]
        epoch = tx.epochs.at(min(firsts, default=END))
        if epoch is None:
            return None
        windows = {
            each.name: (max(each.since, epoch.since), min(each.end, epoch.until))
            for each in rest
            if each.since < epoch.until and each.end > epoch.since
        }
        return self._share(self._charts.at(tx, epoch.version), now, windows)

    def _share(self, met: Chart, now: Chart, windows: dict[str, tuple[int, int]]) -> Share:
        from postroom.flows.stage import FlowShare  # pyarrow, and with it half a second, only when it is needed

        return (self.share_class or FlowShare)(now.version, _with_rows(met, now), now.places, windows)


def _releases(tx: Transaction, flowing: Flowing) -> bool:
    queue = tx.queues.named_to_read(flowing.name)
    return queue is not None and releases(tx, queue)


def _with_rows(met: Chart, now: Chart) -> Chart:
    """An older graph with the rows that collections have now: master data is not kept for the past."""
    tables = {
        key: each
        for key, each in now.kept.items()
        if isinstance(each.statement, Table) and each.statement.collection and key in met.kept
    }
    if met is now or not tables:
        return met
    found: Chart | None = now.memory.get(met.version)
    if found is None:
        kept = {key: replace(each, rows=tables[key].rows) if key in tables else each for key, each in met.kept.items()}
        found = now.memory[met.version] = Chart(met.version, kept)
    return found
