"""A query over many stations: one number, opened once at every node, and read by one Spark job.

The query is opened at each node in scope, then at the mailboxes, under a lease of the control node: so queries run
everywhere in the order of their numbers. The state of each node at that moment can be read until the query is closed,
so a repeated Spark task reads the same.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from postroom.engine.spark.garbage_collection import freeze_loaded, rarely_collecting
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
from postroom.limits import IMAGES_MAX, NODE_SECONDS, SCANNED_MAX
from postroom.model.definitions import nearest
from postroom.model.key import key_text
from postroom.model.message import Stored
from postroom.model.progress import OnProgress
from postroom.stations.mail import mail
from postroom.stations.places.desk import GET
from postroom.stations.places.names import database
from postroom.stations.places.network import CONTROL, Network
from postroom.stations.queries.node_answers import Job, NodeAnswer, Part, packed, read_part, unpacked
from postroom.stations.queries.reading import Plan, TooMany, kept, route
from postroom.stations.queries.timeouts import check_timeout
from postroom.store.kernel.queues import MAILBOX, STATION
from postroom.store.kernel.transaction import Transaction
from postroom.store.kernel.transfers import Parcel
from postroom.store.tables.images import KeptImage
from postroom.store.tables.tracking import MAILBOXES, STATIONS

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

Spark = Callable[[], "SparkSession"]
_LEASE = "queries"
_serial = itertools.count(1)

T = TypeVar("T")
_FRAMES_MAX = 16  # of different sets of nodes, whose plans are kept


class Scope(NamedTuple):
    nodes: tuple[str, ...]
    stations: frozenset[str] | None  # only these; None is all of the network, mailboxes too


@dataclass(frozen=True)
class Question:
    """A query from a station to the stations of a scope."""

    network: Network
    node: str
    plan: Plan
    scope: str
    spark: Spark
    owner: str
    timeout: float
    progress: OnProgress | None = None

    def images(self) -> tuple[int, list[KeptImage], list[str]]:
        """The query's number, the images, and keys of damaged messages."""
        return self._asked(lambda query, spark: (query.number, *query.read(spark, self.progress)))

    def count(self) -> tuple[int, int]:
        """The query's number, and the count."""
        return self._asked(lambda query, spark: (query.number, query.count(spark, self.progress)))

    def _asked(self, work: Callable[[_Query, SparkSession | None], T]) -> T:
        """Run a small query directly, any other on Spark."""
        check_timeout(self.timeout)
        scope = self._scope()  # what is wrong with it is told before anything is begun
        if _is_narrow(self.network, self.plan) or _is_small(self.network, scope):
            with suppress(TooMany), self._opened() as query:
                return work(query, None)
        from postroom.engine.spark import jobs

        spark = self.spark()  # before there is a number: starting it takes its time
        jobs.start_workers(spark)  # and so do its workers
        with self._opened() as query:
            return work(query, spark)

    @contextmanager
    def _opened(self) -> Iterator[_Query]:
        while True:
            query = _Query(self.network, self.plan, self._scope(), f"{self.owner}/{next(_serial)}", self.timeout)
            try:
                try:
                    query.open(self._scope)
                except QueryOvertaken:
                    continue  # another one has begun while this one was held up; ask again under a new number
                yield query
                return
            finally:
                query.close()

    def _scope(self) -> Scope:
        return scope_of(self.network, self.node, self.scope)


def _is_narrow(network: Network, plan: Plan) -> bool:
    """Whether an index narrows the query, so that reading each node may cost less than a Spark job."""
    way = network.indexed_store(CONTROL).read(lambda tx: route(tx.field_index.of_type(plan.type), plan))
    return way is not None and all(span.low == span.high for span in way.spans)


def _is_small(network: Network, scope: Scope) -> bool:
    """Whether there are few messages in scope, so that reading them is faster than starting a Spark job."""
    most, count = SCANNED_MAX, 0
    for node in (*scope.nodes, CONTROL):
        count += network.look(node, _held, NODE_SECONDS)
        if count > most:
            return False
    return True


def _held(tx: Transaction) -> int:
    return sum(queue.unprocessed for kind in (STATION, MAILBOX) for queue in tx.queues.of_kind(kind))


def scope_of(network: Network, node: str, scope: str) -> Scope:
    stations = network.stations()
    if not isinstance(scope, str):
        raise ArgumentInvalid(argument="scope", why="it is a text: local, group, global, or stations=A,B")
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

    def open(self, again: Callable[[], Scope] | None = None) -> None:
        """Get a number, and open at every node and then at the mailboxes, before the next query begins.

        ``again`` returns the scope once there is a number: nodes added later are not part of this query.
        """
        self._begin()
        try:
            if again is not None:
                self.scope = again()
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
        """Open the query at a node, and deliver what is leaving it to the mailboxes, where the query finds it."""

        def work(tx: Transaction) -> list[Parcel]:
            tx.tracking.open(self.number, STATIONS, self.owner, self.seconds + NODE_SECONDS)
            return tx.transfers.pending() if node != CONTROL else []

        def call() -> None:
            store = self.network.store(node)
            leaving = store.transact("query-open", work)
            self.opened.append(node)
            for parcels in mail.by_target(leaving):
                mail.deliver(self.network, store, parcels)

        self.network.ask(node, min(NODE_SECONDS, self._left()), call)

    def _open_mailboxes(self, tx: Transaction) -> list[Parcel]:
        """Open it at the mailboxes; returns the mail on its way to stations in scope."""
        tx.tracking.check_numbered(self.number)
        tx.tracking.open(self.number, MAILBOXES, self.owner, self.seconds + NODE_SECONDS)
        tx.leases.release(_LEASE, self.fence)
        stations = self.scope.stations
        return [
            parcel
            for parcel in tx.transfers.pending()
            if parcel.verb == GET and parcel.seen < self.number and (stations is None or parcel.target in stations)
        ]

    # --- reading ---

    def read(self, spark: SparkSession | None, progress: OnProgress | None) -> tuple[list[KeptImage], list[str]]:
        """Everything in scope that matches: images, and keys of damaged messages."""
        late = [kept(image) for image in self._met_nowhere()]
        answer = self._collect(spark, progress, whole=True)
        damaged = [key for key, is_damaged in zip(answer.key, answer.damaged, strict=True) if is_damaged]
        if len(answer.key) - len(damaged) + len(late) > IMAGES_MAX:
            raise QueryTooLarge(limit=IMAGES_MAX)
        with rarely_collecting():
            types = itertools.repeat(self.plan.type, len(answer.key))
            columns = zip(answer.key, answer.place, types, answer.form, answer.body, strict=True)
            rows = (
                itertools.compress(columns, (not is_damaged for is_damaged in answer.damaged)) if damaged else columns
            )
            images = [tuple.__new__(KeptImage, row) for row in rows]  # the constructor's half cost counts here
        return images + late, [key_text(key) for key in damaged]

    def count(self, spark: SparkSession | None, progress: OnProgress | None) -> int:
        """The number of matches; each part counts its own."""
        late = self._met_nowhere()
        return len(late) + sum(self._collect(spark, progress, whole=False).key)

    def _met_nowhere(self) -> list[Stored]:
        """Mail in transit during the query that reached its node after the query had read it."""
        names = []
        for parcels in mail.by_target(self.undecided):
            done = mail.deliver(self.network, self.network.control, parcels)
            for parcel in parcels:
                stored = parcel.stored
                if (
                    done.get(stored.key, 0) >= self.number
                    and stored.type == self.plan.type
                    and self.plan.matches(stored.body)
                ):
                    names.append(stored._replace(queue=database(parcel.target)))
        return names

    def _collect(self, spark: SparkSession | None, progress: OnProgress | None, *, whole: bool) -> NodeAnswer:
        urls = self.network.ways()
        parts = [Part(node, urls[node], STATIONS) for node in self.scope.nodes]
        parts.append(Part(CONTROL, self.network.url, MAILBOXES))
        job = Job(parts, self.number, self.plan, self.scope.stations, whole)
        answer = self._looked_up(job, progress) if spark is None else self._run(spark, job, progress)
        for part, why in zip(answer.part, answer.error, strict=True):
            if why == QueryExpired.code:
                raise QueryExpired(query=self.number, limit=f" of {self.seconds:g} s")
            if why is not None:
                raise NodeDown(node=parts[part].node, why=why)
        return answer

    def _looked_up(self, job: Job, progress: OnProgress | None) -> NodeAnswer:
        """Read every node directly; raises if there is too much for that."""

        def look(index: int) -> NodeAnswer:
            part, whole = job.parts[index], job.whole
            return read_part(index, part, job.number, job.plan, job.stations, whole=whole, most=SCANNED_MAX)

        answers = []
        for index, part in enumerate(job.parts):
            answers.append(self.network.ask(part.node, self._left(), partial(look, index)))
            if progress is not None:
                progress(index + 1, len(job.parts))
        return NodeAnswer.together(answers)

    def _run(self, spark: SparkSession, job: Job, progress: OnProgress | None) -> NodeAnswer:
        """Run the job with the time limit of the query."""
        from pyspark.errors import PySparkException

        from postroom.engine.spark import jobs
        from postroom.engine.spark.launch import one_line

        frame, total = _frame(spark, tuple(part.url for part in job.parts)), len(job.parts)
        group = f"postroom query {self.owner}"
        coming: Future[NodeAnswer] = Future()

        def call() -> None:
            try:
                spark.sparkContext.setJobGroup(group, f"query {self.number}", interruptOnCancel=True)
                coming.set_result(unpacked(jobs.run_planned(spark, frame, job.packed()).column(0)))
            except BaseException as error:
                coming.set_exception(error)

        threading.Thread(target=call, daemon=True, name=group).start()
        try:
            while not wait([coming], min(0.1 if progress else 1.0, self._left())).done:
                if progress is not None:
                    progress(jobs.progress(spark, group)[0], total)
            answer = coming.result()
        except PySparkException as error:
            why, master = one_line(error), spark.sparkContext.master
            raise SparkUnavailable(master=master, why=why, advice="ask again") from error
        except BaseException as error:  # it has taken too long, or whoever follows it wants it no more
            spark.sparkContext.cancelJobGroup(group)
            if isinstance(error, QueryExpired):
                self._name_the_silent()
            raise
        if progress is not None:
            progress(total, total)  # what Spark tells of its tasks may come later than what they bring
        return answer

    def _name_the_silent(self) -> None:
        """Raise an error that names the nodes that did not respond."""
        for node in self.scope.nodes:
            self.network.look(node, lambda tx: tx.now, seconds=1.0)

    def _left(self) -> float:
        left = self.seconds - (time.monotonic() - self.started)
        if left <= 0:
            raise QueryExpired(query=self.number, limit=f" of {self.seconds:g} s")
        return left

    # --- closing ---

    def close(self) -> None:
        """Release the records of this query. A node that cannot be told does so at a timeout."""
        for node in dict.fromkeys(self.opened):
            if node != CONTROL:
                with suppress(PostroomError):
                    self.network.ask(node, NODE_SECONDS, partial(self._close_at, node))
        if self.number:
            with suppress(PostroomError):
                self._close_at(CONTROL)

    def _close_at(self, node: str) -> None:
        self.network.store(node).transact("query-close", lambda tx: tx.tracking.close(self.number))


@lru_cache(maxsize=_FRAMES_MAX)
def _frame(spark: SparkSession, urls: tuple[str, ...]) -> DataFrame:
    """The frame, planned once for all queries over the same nodes.

    Queries are sent as job properties. These are public, so URLs, which may contain passwords, are sent with the task's
    code.
    """
    from postroom.engine.spark import jobs

    return jobs.tasks(spark, len(urls)).mapInArrow(partial(_read, urls), jobs.PACKED)


# --- on a worker ---


def _read(urls: tuple[str, ...], batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    from postroom.engine.spark import jobs

    job = Job.unpacked(jobs.told(), urls)
    freeze_loaded()
    for batch in batches:
        for index in batch.column(0).to_pylist():
            with rarely_collecting():
                answer = packed(read_part(index, job.parts[index], job.number, job.plan, job.stations, whole=job.whole))
            yield answer
