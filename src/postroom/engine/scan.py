"""Reading a queue as a table: in partitions of keys, with the filters that the store can apply itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pyarrow
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from postroom.engine.frames import STATES, Frames
from postroom.engine.options import Place, parts
from postroom.errors import KeyInvalid
from postroom.limits import PAGE_ROWS
from postroom.model.key import key_number
from postroom.model.moment import to_datetime
from postroom.store.base import Store
from postroom.store.messages import State
from postroom.store.queues import Queue
from postroom.store.scans import END, Found, Wanted
from postroom.store.transaction import Transaction

_NEVER_NULL = {"key", "queue", "format", "body", "properties", "created", "state"}


@dataclass
class KeyRange(InputPartition):
    first: int
    last: int


@dataclass
class KeyList(InputPartition):
    keys: tuple[int, ...]


class Scan(DataSourceReader):
    """One reading of a queue. What is there is read as it is at that moment: not all partitions at the same one."""

    def __init__(self, place: Place, frames: Frames, partitions: int | None) -> None:
        self._place = place
        self._frames = frames
        self._partitions = partitions
        self._states = set(STATES)
        self._keys: set[int] | None = None
        self._wanted = Wanted()

    # --- filters ---

    def pushFilters(self, filters: list[Filter]) -> list[Filter]:
        """Take what the store can tell by itself; the rest is Spark's to apply."""
        return [each for each in filters if not (self._take(each) or self._take_time(each))]

    def _take(self, wish: Filter) -> bool:
        match wish:
            case IsNotNull((name,)):
                return name in _NEVER_NULL
            case EqualTo(("key",), str(value)):
                return self._take_keys([value])
            case In(("key",), values):
                return self._take_keys(values)
            case EqualTo(("state",), str(value)):
                self._states &= {value}
                return True
            case EqualTo(("type",), str(value)) if self._wanted.type in (None, value):
                self._wanted = self._wanted._replace(type=value)
                return True
        return False

    def _take_keys(self, texts: Iterable[Any]) -> bool:
        numbers = {number for number in map(_number, filter(None, texts)) if number is not None}
        self._keys = numbers if self._keys is None else self._keys & numbers
        return True

    def _take_time(self, wish: Filter) -> bool:
        first, last = self._wanted.created
        match wish:
            case EqualTo(("created",), datetime(tzinfo=zone) as moment) if zone is not None:
                first, last = max(first, _microseconds(moment)), min(last, _microseconds(moment))
            case GreaterThanOrEqual(("created",), datetime(tzinfo=zone) as moment) if zone is not None:
                first = max(first, _microseconds(moment))
            case GreaterThan(("created",), datetime(tzinfo=zone) as moment) if zone is not None:
                first = max(first, _microseconds(moment) + 1)
            case LessThanOrEqual(("created",), datetime(tzinfo=zone) as moment) if zone is not None:
                last = min(last, _microseconds(moment))
            case LessThan(("created",), datetime(tzinfo=zone) as moment) if zone is not None:
                last = min(last, _microseconds(moment) - 1)
            case _:
                return False
        self._wanted = self._wanted._replace(created=(first, last))
        return True

    # --- reading ---

    def partitions(self) -> list[InputPartition]:
        store = self._place.open()
        try:
            queue = store.read(self._place.find)
            if self._keys is not None:
                return [KeyList(tuple(sorted(self._keys)))]
            cut = parts(self._partitions, store.read(lambda tx: tx.scans.count(queue)))
            bounds = store.read(lambda tx: tx.scans.key_bounds(queue, cut))
        finally:
            store.close()
        # The last part is open at its end, for what comes in now.
        return [KeyRange(low + 1, high) for low, high in zip([-1, *bounds[:-1]], [*bounds[:-1], END], strict=True)]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        store = self._place.open()
        try:
            queue = store.read(self._place.find)
            if isinstance(partition, KeyList):
                keys = partition.keys
                found = store.read(lambda tx: tx.scans.find(queue, keys, self._wanted))
                yield self._frames.batch([each for each in found if STATES[each.state] in self._states])
            elif isinstance(partition, KeyRange):
                wanted = self._wanted._replace(keys=(partition.first, partition.last))
                yield from map(self._frames.batch, self._pages(store, queue, wanted))
        finally:
            store.close()

    def _pages(self, store: Store, queue: Queue, wanted: Wanted) -> Iterator[list[Found]]:
        """Each message once, page by page, so that no long reading stands in the way of the writers.

        One that is processed meanwhile goes from the unprocessed to the end of the processed. In this order it may be
        met twice, and is left out the second time, but it cannot be missed.
        """
        seen: set[int] = set()
        for state in (State.UNPROCESSED, State.PROCESSED):
            if STATES[state] in self._states:
                for page in _pages_of(store, queue, state, wanted):
                    yield [found for found in page if found.stored.key not in seen]
                    if state is State.UNPROCESSED:
                        seen.update(found.stored.key for found in page)


def _pages_of(store: Store, queue: Queue, state: State, wanted: Wanted) -> Iterator[list[Found]]:
    after = -1
    while True:
        page = store.read(partial(_page, queue, state, wanted, after))
        if not page:
            return
        yield page
        after = page[-1].after


def _page(queue: Queue, state: State, wanted: Wanted, after: int, tx: Transaction) -> list[Found]:
    return tx.scans.page(queue, state, wanted, after, PAGE_ROWS)


def _number(text: str) -> int | None:
    """A key that is none is nobody's key."""
    try:
        return key_number(text)
    except KeyInvalid:
        return None


def _microseconds(moment: datetime) -> int:
    return (moment - to_datetime(0)) // timedelta(microseconds=1)
