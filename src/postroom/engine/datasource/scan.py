"""Reading a queue as a table, in partitions of keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import pyarrow
from pyspark.sql.datasource import DataSourceReader, InputPartition

from postroom.engine.datasource.frames import Frames
from postroom.engine.datasource.options import STATES, Choice, Place, parts
from postroom.limits import PAGE_ROWS
from postroom.store.kernel.base import Store
from postroom.store.kernel.message_rows import State
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.scans import END, Found, Wanted


@dataclass
class KeyRange(InputPartition):
    first: int
    last: int


@dataclass
class KeyList(InputPartition):
    keys: tuple[int, ...]


class Scan(DataSourceReader):
    """One reading of a queue. Each partition reads the queue at its own moment.

    The store's filters are options. ``pushFilters`` is not used: Spark keeps pushed filters with the table, so another
    query on the same frame, or the other half of a union, would read with the filters of the first.
    """

    def __init__(self, place: Place, frames: Frames, partitions: int | None, choice: Choice) -> None:
        self._place = place
        self._frames = frames
        self._partitions = partitions
        self._choice = choice

    def partitions(self) -> list[InputPartition]:
        with closing(self._place.open()) as store:
            queue = store.read(self._place.find)
            if self._choice.keys is not None:
                return [KeyList(self._choice.keys)]
            cut = parts(self._partitions, store.read(lambda tx: tx.scans.count(queue)))
            bounds = store.read(lambda tx: tx.scans.key_bounds(queue, cut))
        # The last part is open at its end, for what comes in now.
        return [KeyRange(low + 1, high) for low, high in zip([-1, *bounds[:-1]], [*bounds[:-1], END], strict=True)]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        with closing(self._place.open()) as store:
            queue = store.read(self._place.find)
            if isinstance(partition, KeyList):
                keys = partition.keys
                messages = store.read(lambda tx: tx.scans.find(queue, keys, self._choice.wanted))
                yield self._frames.batch(
                    [message for message in messages if STATES[message.state] in self._choice.states]
                )
            elif isinstance(partition, KeyRange):
                wanted = self._choice.wanted._replace(keys=(partition.first, partition.last))
                yield from map(self._frames.batch, self._pages(store, queue, wanted))

    def _pages(self, store: Store, queue: Queue, wanted: Wanted) -> Iterator[list[Found]]:
        """Each message once, page by page, so that a long read does not block writers.

        A message that is processed meanwhile moves from the unprocessed to the end of the processed ones. In this order
        it may be met twice, and is skipped the second time, but is never missed.
        """
        seen: set[int] = set()
        for state in (State.UNPROCESSED, State.PROCESSED):
            if STATES[state] in self._choice.states:
                for page in _pages_of(store, queue, state, wanted):
                    yield [row for row in page if row.stored.key not in seen]
                    if state is State.UNPROCESSED:
                        seen.update(row.stored.key for row in page)


def _pages_of(store: Store, queue: Queue, state: State, wanted: Wanted) -> Iterator[list[Found]]:
    after = -1
    while page := store.read(partial(_page, queue, state, wanted, after)):
        yield page
        after = page[-1].after


def _page(queue: Queue, state: State, wanted: Wanted, after: int, tx: Transaction) -> list[Found]:
    return tx.scans.page(queue, state, wanted, after, PAGE_ROWS)
