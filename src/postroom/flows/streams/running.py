"""Runs a stream: a Structured Streaming query, each batch with one version of the room's graph."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from time import monotonic
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from postroom.engine.spark.internals import SOURCE_EVOLUTION, kafka_package
from postroom.engine.spark.launch import one_line
from postroom.errors import PostroomError, StreamFailed, StreamPackageMissing
from postroom.flows.graph.streamed import behind, streams
from postroom.flows.graph.versions import RoomGraph, RoomGraphs
from postroom.flows.language.definitions import Space
from postroom.flows.language.outside import FILES, KAFKA, Outside
from postroom.flows.streams.batches import MicroBatch, Places
from postroom.flows.streams.frames import folder_of, source_frame
from postroom.flows.streams.holding import StreamHold
from postroom.flows.streams.ledger import Ledger, Waits
from postroom.flows.streams.totals import StreamProgress, StreamTotals
from postroom.limits import STREAM_HELD_SECONDS
from postroom.store.kernel.base import Store
from postroom.store.kernel.batch import Admit
from postroom.store.tables.endpoints import Endpoint

_making = threading.Lock()
_SETTINGS = {
    SOURCE_EVOLUTION: "true",
    "spark.sql.maxConcurrentOutputFileWriters": "100",  # a batch is written without being sorted by its goals
}
_LOOK_SECONDS = 0.3  # between two looks whether a stream is to stop, or has other sources


@dataclass(frozen=True)
class StreamSettings:
    """Settings of a run from the operator."""

    folder: Path  # of checkpoints
    options: Callable[[Endpoint], Mapping[str, str]]  # Kafka's own, with their secrets
    show: Callable[[str, str], None]  # a line of a space, on the console
    until_idle: bool = False
    every: float = 0.0  # seconds from one batch to the next
    dead_letters: Outside | None = None
    restart: bool = False


class Stopped(Exception):
    """A batch was not started, or not finished, because the stream is to stop."""


class StreamRun:
    """One run of a stream, in the thread that calls ``run``."""

    def __init__(
        self,
        store: Store,
        room_graphs: RoomGraphs,
        admit: Admit,
        hold: StreamHold,
        settings: StreamSettings,
        stop: threading.Event,
        progress: StreamProgress | None = None,
    ) -> None:
        self._store = store
        self._room_graphs = room_graphs
        self._hold = hold
        self._settings = settings
        self._stop = stop
        self._progress = progress
        self._ledger = Ledger(store, room_graphs, admit, hold.name, hold.check)
        self._failure: PostroomError | None = None
        self._halt = False  # the query is to end behind the batch at hand
        self._turn = threading.Lock()  # of the batch at hand
        self.totals = StreamTotals(hold.name)

    def run(self, spark: SparkSession) -> StreamTotals:
        """Run until stopped, or until all available input has been read."""
        with self._hold.held(self._fail):
            self._hold.open(restart=self._settings.restart)
            while not self._stop.is_set():
                graph, endpoints = self._now()
                spaces = self._spaces(graph)
                if not spaces or not self._query(spark, graph, spaces, endpoints):
                    break
        if self._failure is not None:
            raise self._failure
        return self.totals

    def _fail(self, failure: PostroomError) -> None:
        self._failure = self._failure or failure
        self._stop.set()

    def _failed(self, why: str) -> StreamFailed:
        return StreamFailed(stream=self._hold.name, why=why, batch=self.totals.batch + 1)

    # --- the query ---

    def _now(self) -> tuple[RoomGraph, dict[str, Endpoint]]:
        return self._store.read(lambda tx: (self._room_graphs.now(tx), tx.endpoints.all()))

    def _spaces(self, graph: RoomGraph) -> list[Space]:
        """The sources of this stream in a graph."""
        ours = set(self._hold.sources)
        names = {name for part in streams(graph.running) if ours & set(part) for name in part}
        return [graph.running.spaces[name] for name in sorted(names)]

    def _query(
        self, spark: SparkSession, graph: RoomGraph, spaces: Sequence[Space], endpoints: Mapping[str, Endpoint]
    ) -> bool:
        """Run one query; True if the sources have changed and another query must follow."""
        self._hold.follow([space.name for space in spaces])
        self._check(spark, graph, spaces, endpoints)
        self._halt = False
        with _query_settings(spark):
            query = self._started(
                reduce(DataFrame.unionByName, [self._source(spark, one, endpoints) for one in spaces])
            )
        changed = False
        while query.isActive and not self._stop.is_set() and not changed:
            try:
                query.awaitTermination(_LOOK_SECONDS)
            except PySparkException:
                break  # it is asked why when it has ended
            changed = self._spaces(self._now()[0]) != list(spaces)
        self._end(query)
        return changed and self._failure is None

    def _started(self, events: DataFrame) -> Any:
        writer = events.writeStream.queryName(f"postroom {self._hold.name} {secrets.token_hex(4)}")
        writer = writer.option("checkpointLocation", str(self._hold.folder / "spark"))
        if self._settings.until_idle:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{int(self._settings.every * 1000)} milliseconds")
        try:
            return writer.foreachBatch(self._batch).start()
        except PySparkException as error:
            raise self._failed(one_line(error)) from error

    def _end(self, query: Any) -> None:
        """Wait for the current batch and end the query; no other batch is started."""
        self._halt = True
        with self._turn:
            pass
        query.stop()
        failure = query.exception()
        if failure is not None and self._failure is None and Stopped.__name__ not in str(failure):
            raise self._failed(one_line(failure)) from failure

    def _source(self, spark: SparkSession, space: Space, endpoints: Mapping[str, Endpoint]) -> DataFrame:
        assert space.source is not None
        endpoint = endpoints[space.source.gateway]
        try:
            return source_frame(spark, space, endpoint.settings, self._settings.options(endpoint))
        except PySparkException as error:
            raise self._failed(f"space {space.name}: {one_line(error)}") from error

    def _check(
        self, spark: SparkSession, graph: RoomGraph, spaces: Sequence[Space], endpoints: Mapping[str, Endpoint]
    ) -> None:
        """Raise early if something that the query needs is missing: Spark would end with a stack trace."""
        reached = behind(graph.running, self._hold.sources)
        ends = [graph.running.spaces[name].outside for name in sorted(reached)]
        if any(end is not None and end.kind == KAFKA for end in ends):
            try:
                given = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "any"}
                spark.read.format(KAFKA).options(**given).load()
            except PySparkException as error:
                raise StreamPackageMissing(kind="Kafka", package=kafka_package()) from error
        for space in spaces:
            source = space.source
            if source is not None and source.kind == FILES:
                folder = folder_of(source, endpoints[source.gateway].settings)
                if not folder.is_dir():
                    raise self._failed(f"space {space.name}: there is no folder {folder}")

    # --- a batch ---

    def _batch(self, came: DataFrame, number: int) -> None:
        with self._turn:
            if self._stop.is_set() or self._halt:
                raise Stopped
            try:
                self._work(came, number)
            except (Stopped, PostroomError) as error:
                if isinstance(error, PostroomError):
                    self._failure = self._failure or error
                raise
            except (PySparkException, OSError) as error:
                self._failure = self._failure or self._failed(one_line(error))
                raise

    def _work(self, came: DataFrame, number: int) -> None:
        began = monotonic()
        pinned = self._ledger.pin(number)
        if pinned is None:
            return
        settings, (_, endpoints) = self._settings, self._now()
        places = Places(self._hold.folder, endpoints, settings.dead_letters, settings.show, self._to_kafka)
        done = MicroBatch(self._store, pinned, came, self._hold.sources, places).run()
        while True:
            try:
                self._ledger.finish(pinned, done)
                break
            except Waits:
                if self._stop.wait(STREAM_HELD_SECONDS):
                    raise Stopped from None
        self.totals = self.totals.plus(pinned.stream, done.figures, monotonic() - began)
        if self._progress is not None:
            self._progress(self.totals)

    def _to_kafka(self, spark: SparkSession, sink: Outside, endpoint: Endpoint, lines: Sequence[str]) -> None:
        options = {"kafka.bootstrap.servers": endpoint.settings["brokers"], "topic": sink.path}
        frame = spark.createDataFrame([(line,) for line in lines], "value string")
        frame.write.format(KAFKA).options(**options, **self._settings.options(endpoint)).mode("append").save()


@contextmanager
def _query_settings(spark: SparkSession) -> Iterator[None]:
    """Only while a query is made, which keeps its settings: others in this session have their own.

    One query is made at a time: a second one would take the settings of the first for those of the session.
    """
    with _making:
        before = {name: spark.conf.get(name) for name in _SETTINGS}
        for name, value in _SETTINGS.items():
            spark.conf.set(name, value)
        try:
            yield
        finally:
            for name, known in before.items():
                spark.conf.set(name, str(known))
