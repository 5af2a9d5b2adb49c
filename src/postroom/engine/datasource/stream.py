"""Reading a queue as a stream: every arrival once, by its number in the journal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from postroom.engine.datasource.frames import Frames
from postroom.engine.datasource.options import Place, parts
from postroom.engine.datasource.tail import Tail
from postroom.limits import PAGE_ROWS
from postroom.store.kernel.base import Store
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.scans import END, Found

Offset = dict[str, int]


@dataclass
class Span(InputPartition):
    """A range of arrivals by journal number: after one, up to another."""

    after: int
    until: int


class Stream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The arrivals of one queue, without messages that left the queue before they were read."""

    def __init__(self, place: Place, frames: Frames, partitions: int | None, batch_max: int | None, start: str) -> None:
        self._place = place
        self._frames = frames
        self._partitions = partitions
        self._batch_max = batch_max
        self._start = start
        self._store: Store | None = None
        self._tail: Tail | None = None
        self._until = END

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_store": None, "_tail": None}  # a task opens the room for itself

    # --- offsets, in one process that lives as long as the query ---

    def initialOffset(self) -> Offset:
        return {"journal": 0 if self._start == "earliest" else self._followed().last(0)}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self._batch_max is None else ReadMaxRows(self._batch_max)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        after = start["journal"]
        self._followed().check(after)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else END
        return {"journal": max(after, min(self._followed().last(after, most), self._until))}

    def prepareForTriggerAvailableNow(self) -> None:
        self._until = self._followed().last(0)

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        after, until = start["journal"], end["journal"]
        store = self._opened()

        def work(tx: Transaction) -> list[int]:
            queue = self._place.find(tx)
            cut = parts(self._partitions, tx.scans.count_arrivals(queue, after, until))
            return tx.scans.arrival_bounds(queue, after, until, cut)

        bounds = store.read(work)
        return [Span(low, high) for low, high in zip([after, *bounds[:-1]], bounds, strict=False)]

    def stop(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = self._tail = None

    def _opened(self) -> Store:
        if self._store is None:
            self._store = self._place.open()
        return self._store

    def _followed(self) -> Tail:
        if self._tail is None:
            store = self._opened()
            self._tail = Tail(store, store.read(self._place.find).name)
        return self._tail

    # --- reading, in a task ---

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        assert isinstance(partition, Span)
        with closing(self._place.open()) as store:
            queue = store.read(self._place.find)
            after = partition.after
            while page := store.read(partial(_page, queue, after, partition.until)):
                yield self._frames.batch(page)
                after = page[-1].after


def _page(queue: Queue, after: int, until: int, tx: Transaction) -> list[Found]:
    return tx.scans.arrivals(queue, after, until, PAGE_ROWS)
