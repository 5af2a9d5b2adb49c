"""The dry run: where proposed arcs would have led the events that are stored. Nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from postroom.engine.tryout import Tried, begins
from postroom.flows import catalog
from postroom.flows.changes import typed
from postroom.flows.chart import Chart, Charts
from postroom.flows.definitions import Statement
from postroom.flows.tables import Rows
from postroom.model.key import key_text
from postroom.model.message import Stored
from postroom.store.base import Store
from postroom.store.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PAGE = 5_000


def tried(
    store: Store,
    charts: Charts,
    proposed: Sequence[Statement],
    rows: Mapping[str, Rows],
    since: datetime | None,
    spark: Callable[[], SparkSession],
) -> Iterator[Tried]:
    """Every stored event of the spaces that the proposed arcs leave, oldest first, with what they would deliver."""

    def work(tx: Transaction) -> tuple[Chart, list[Stored]]:
        chart = Chart(0, typed(catalog.proposed(tx, charts.now(tx), proposed, rows)))
        after = begins(since)
        found = [
            stored
            for name in chart.flowing
            if tx.queues.named_to_read(name) is not None
            for stored in tx.slices.queue(name)
            if stored.sound and stored.created >= after
        ]
        return chart, sorted(found, key=lambda each: each.key)

    chart, messages = store.read(work)
    if not messages:
        return
    from postroom.flows.share import FlowShare

    share = FlowShare(0, chart, chart.places, dict.fromkeys(chart.flowing, (0, 0)))
    for start in range(0, len(messages), _PAGE):
        some = messages[start : start + _PAGE]
        arrivals = share.arrivals(None, some)
        effects = {order: made for group in share.evaluate(spark(), arrivals, {}, {}) for order, made in group.items()}
        for stored, arrival in zip(some, arrivals, strict=True):
            yield Tried(key_text(stored.key), stored.queue, effects.get(arrival.order, ()))
