"""A query over many stations: one number, one opening at every node, one Spark job that reads them all.

The query is opened at each node in scope, then at the mailboxes, under a lease of the control node: so queries run
everywhere in the order of their numbers. What each node had at that moment can be read until the query is closed, as
often as Spark needs, so a task that is done again finds the same.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from postroom.engine.launch import one_line
from postroom.errors import (
    ArgumentInvalid,
    LeaseHeld,
    NodeDown,
    PostroomError,
    QueryExpired,
    QueryOvertaken,
    QueryTooLarge,
    SparkUnavailable,
    StationUnknown,
)
from postroom.limits import IMAGES_MAX, NODE_SECONDS, QUERY_SECONDS_MAX
from postroom.model.catalog import nearest
from postroom.model.key import key_text
from postroom.model.message import Stored
from postroom.stations import mail
from postroom.stations.network import CONTROL, Network
from postroom.stations.reading import Plan, database, form_version, kept, place_of, read_mailboxes, read_stations
from postroom.store import open_store
from postroom.store.albums import Kept
from postroom.store.tracking import MAILBOXES, STATIONS
from postroom.store.transaction import Transaction
from postroom.store.transfers import Parcel

Spark = Callable[[], SparkSession]
Progress = Callable[[int, int], None]
_LEASE = "queries"
_serial = itertools.count(1)

_SCHEMA = "part int, key long, place string, form int, body string, damaged boolean, error string"
_ARROW = pyarrow.schema(
    [
        ("part", pyarrow.int32()),
        ("key", pyarrow.int64()),
        ("place", pyarrow.string()),
        ("form", pyarrow.int32()),
        ("body", pyarrow.string()),
        ("damaged", pyarrow.bool_()),
        ("error", pyarrow.string()),
    ]
)


class Scope(NamedTuple):
    nodes: tuple[str, ...]
    stations: frozenset[str] | None  # only these; None is all of the network, mailboxes too


class Part(NamedTuple):
    """What one task of the job reads."""

    node: str
    url: str
    place: str


def run(
    network: Network,
    node: str,
    plan: Plan,
    scope: str,
    spark: Spark,
    owner: str,
    timeout: float,
    progress: Progress | None = None,
) -> tuple[int, list[Kept], list[str]]:
    """Ask the stations of a scope, for someone on a node: the query's number, images, keys of what is damaged."""
    with _opened(network, node, plan, scope, spark, owner, timeout) as (query, session):
        return query.number, *query.read(session, progress)


def count(
    network: Network,
    node: str,
    plan: Plan,
    scope: str,
    spark: Spark,
    owner: str,
    timeout: float,
    progress: Progress | None = None,
) -> int:
    """How many messages a scope has that are what is asked for."""
    with _opened(network, node, plan, scope, spark, owner, timeout) as (query, session):
        return query.count(session, progress)


@contextmanager
def _opened(
    network: Network, node: str, plan: Plan, scope: str, spark: Spark, owner: str, timeout: float
) -> Iterator[tuple[_Query, SparkSession]]:
    if not 0 < timeout <= QUERY_SECONDS_MAX:
        raise ArgumentInvalid(argument="timeout", why=f"more than 0 and at most {QUERY_SECONDS_MAX:.0f} seconds")
    asked = scope_of(network, node, scope)
    session = spark()  # before there is a number: starting it takes its time
    while True:
        query = _Query(network, plan, asked, f"{owner}/{next(_serial)}", timeout)
        try:
            try:
                query.open()
            except QueryOvertaken:
                continue  # another one has begun while this one was held up; ask again under a new number
            yield query, session
            return
        finally:
            query.close()


def scope_of(network: Network, node: str, scope: str) -> Scope:
    stations = network.stations()
    if scope == "global":
        return Scope(tuple(network.nodes()), None)
    if scope == "group":
        return Scope((node,), frozenset(name for name, home in stations.items() if home == node))
    word, equals, names = scope.partition("=")
    listed = [name.strip() for name in names.split(",") if name.strip()]
    if word != "stations" or not equals or not listed:
        raise ArgumentInvalid(argument="scope", why=f"{scope!r} is not local, group, global, or stations=A,B")
    for name in listed:
        if name not in stations:
            raise StationUnknown(station=name, nearest=nearest(name, stations))
    return Scope(tuple(dict.fromkeys(stations[name] for name in listed)), frozenset(listed))


@dataclass
class _Query:
    network: Network
    plan: Plan
    scope: Scope
    owner: str
    seconds: float
    number: int = 0
    fence: int = 0
    started: float = field(default_factory=time.monotonic)
    opened: list[str] = field(default_factory=list)
    undecided: list[Parcel] = field(default_factory=list)

    # --- opening ---

    def open(self) -> None:
        """Have a number, be opened at every node and then at the mailboxes, before the next query begins."""
        self._begin()
        try:
            for node in self.scope.nodes:
                self._open_node(node)
            self.undecided = self.network.control.transact("query-open", self._open_mailboxes)
            self.opened.append(CONTROL)
        except BaseException:
            with suppress(PostroomError):
                self.network.control.transact("query-open", lambda tx: tx.leases.release(_LEASE, self.fence))
            raise

    def _begin(self) -> None:
        def work(tx: Transaction) -> tuple[int, int]:
            fence = tx.leases.acquire(_LEASE, self.owner, NODE_SECONDS * (len(self.scope.nodes) + 1))
            return fence, tx.tracking.number(self.owner, self.seconds + NODE_SECONDS)

        while True:
            try:
                self.fence, self.number = self.network.control.transact("query-number", work)
                return
            except LeaseHeld:
                self._left()
                time.sleep(0.005)

    def _open_node(self, node: str) -> None:
        """Open the query at a node, and bring what is leaving it to the mailboxes: there the query finds it."""

        def work(tx: Transaction) -> list[Parcel]:
            tx.tracking.open(self.number, STATIONS, self.owner, self.seconds + NODE_SECONDS)
            return tx.transfers.pending() if node != CONTROL else []

        def call() -> None:
            store = self.network.filing_store(node)
            leaving = store.transact("query-open", work)
            self.opened.append(node)
            for parcels in mail.by_target(leaving):
                mail.deliver(self.network, store, parcels)

        self.network.ask(node, min(NODE_SECONDS, self._left()), call)

    def _open_mailboxes(self, tx: Transaction) -> list[Parcel]:
        """Open it at the mailboxes; answers with what is on its way out of them to stations in scope."""
        tx.tracking.check_numbered(self.number)
        tx.tracking.open(self.number, MAILBOXES, self.owner, self.seconds + NODE_SECONDS)
        tx.leases.release(_LEASE, self.fence)
        stations = self.scope.stations
        return [
            parcel
            for parcel in tx.transfers.pending()
            if parcel.verb == mail.GET and parcel.seen < self.number and (stations is None or parcel.target in stations)
        ]

    # --- reading ---

    def read(self, spark: SparkSession, progress: Progress | None) -> tuple[list[Kept], list[str]]:
        """All that is in scope and matches: images, and keys of what is damaged."""
        late = [kept(each) for each in self._met_nowhere()]
        answer = self._collect(spark, progress, whole=True)
        sound = answer.filter(pyarrow.compute.invert(answer["damaged"]))
        if sound.num_rows + len(late) > IMAGES_MAX:
            raise QueryTooLarge(limit=IMAGES_MAX)
        columns = [sound[name].to_pylist() for name in ("key", "place", "form", "body")]
        type = self.plan.type
        found = [Kept(key, place, type, form, body) for key, place, form, body in zip(*columns, strict=True)]
        damaged = answer.filter(answer["damaged"])["key"].to_pylist()
        return found + late, [key_text(key) for key in damaged]

    def count(self, spark: SparkSession, progress: Progress | None) -> int:
        """How many there are; every part says its number."""
        late = self._met_nowhere()
        numbers: list[int] = self._collect(spark, progress, whole=False)["key"].to_pylist()
        return len(late) + sum(numbers)

    def _met_nowhere(self) -> list[Stored]:
        """Of what was between the mailboxes and a node: that which came there after the query had been."""
        found = []
        for parcels in mail.by_target(self.undecided):
            done = mail.deliver(self.network, self.network.control, parcels)
            for parcel in parcels:
                stored = parcel.stored
                if done[stored.key] >= self.number and stored.type == self.plan.type and self.plan.matches(stored.body):
                    found.append(stored._replace(queue=database(parcel.target)))
        return found

    def _collect(self, spark: SparkSession, progress: Progress | None, *, whole: bool) -> pyarrow.Table:
        urls = self.network.nodes()
        parts = [Part(node, urls[node], STATIONS) for node in self.scope.nodes]
        parts.append(Part(CONTROL, self.network.url, MAILBOXES))
        read = _reader(parts, self.number, self.plan, self.scope.stations, whole)
        answer = self._run(
            spark, spark.range(0, len(parts), 1, len(parts)).mapInArrow(read, _SCHEMA), len(parts), progress
        )
        for part, why in zip(answer["part"].to_pylist(), answer["error"].to_pylist(), strict=True):
            if why == QueryExpired.code:
                raise QueryExpired(query=self.number)
            if why is not None:
                raise NodeDown(node=parts[part].node, why=why)
        return answer

    def _run(self, spark: SparkSession, frame: DataFrame, total: int, progress: Progress | None) -> pyarrow.Table:
        """Run the job, and no longer than the query may take."""
        group = f"postroom query {self.owner}"
        result: list[pyarrow.Table] = []
        failure: list[BaseException] = []

        def call() -> None:
            try:
                spark.sparkContext.setJobGroup(group, f"query {self.number}", interruptOnCancel=True)
                result.append(frame.toArrow())
            except BaseException as error:
                failure.append(error)

        thread = threading.Thread(target=call, daemon=True, name=group)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(min(0.1 if progress else 1.0, self._left()))
                if progress is not None:
                    progress(_done(spark, group), total)
        except QueryExpired:
            spark.sparkContext.cancelJobGroup(group)
            self._name_the_silent()
            raise
        if failure:
            if isinstance(failure[0], PySparkException):
                why, advice = one_line(failure[0]), "ask again"
                raise SparkUnavailable(master=spark.sparkContext.master, why=why, advice=advice) from failure[0]
            raise failure[0]
        return result[0]

    def _name_the_silent(self) -> None:
        """Whose silence it was that took the time."""
        for node in self.scope.nodes:
            self.network.ask(node, 1.0, lambda node=node: self.network.store(node).read(lambda tx: tx.now))  # type: ignore[misc]

    def _left(self) -> float:
        left = self.seconds - (time.monotonic() - self.started)
        if left <= 0:
            raise QueryExpired(query=self.number)
        return left

    # --- closing ---

    def close(self) -> None:
        """Let go of what was kept for this query. A node that cannot be told finds out by the clock."""
        for node in dict.fromkeys(self.opened):
            if node != CONTROL:
                with suppress(PostroomError):
                    self.network.ask(node, NODE_SECONDS, lambda node=node: self._close_at(node))  # type: ignore[misc]
        if self.number:
            with suppress(PostroomError):
                self._close_at(CONTROL)

    def _close_at(self, node: str) -> None:
        self.network.store(node).transact("query-close", lambda tx: tx.tracking.close(self.number))


def _done(spark: SparkSession, group: str) -> int:
    """How many parts have been read."""
    tracker = spark.sparkContext.statusTracker()
    done = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info else ():
            status = tracker.getStageInfo(stage)
            done += status.numCompletedTasks if status else 0
    return done


# --- on a worker ---


def _reader(
    parts: Sequence[Part], number: int, plan: Plan, stations: frozenset[str] | None, whole: bool
) -> Callable[[Iterator[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    def read(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                yield read_part(index, parts[index], number, plan, stations, whole=whole)

    return read


def read_part(
    index: int, part: Part, number: int, plan: Plan, stations: frozenset[str] | None, *, whole: bool = True
) -> pyarrow.RecordBatch:
    """The answer of one node; what went wrong there is an answer, too."""
    work = read_stations if part.place == STATIONS else read_mailboxes
    try:
        store = open_store(part.url, actor="query", create=False)
        try:
            found = store.read(lambda tx: work(tx, number, plan, stations))
        finally:
            store.close()
    except PostroomError as error:
        why = QueryExpired.code if isinstance(error, QueryExpired) else str(error)
        return _batch([index], [0], [""], [0], [""], [False], [why])
    sound = [each.sound for each in found]
    if not whole:
        return _batch([index], [sum(sound)], [""], [0], [""], [False], [None])
    return _batch(
        [index] * len(found),
        [each.key for each in found],
        [place_of(each.queue) for each in found],
        [form_version(each.properties) for each in found],
        [each.body if well else "" for each, well in zip(found, sound, strict=True)],
        [not well for well in sound],
        [None] * len(found),
    )


def _batch(*columns: Sequence[Any]) -> pyarrow.RecordBatch:
    arrays = [pyarrow.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=_ARROW)
