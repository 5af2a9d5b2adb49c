"""Streams as Spark frames: the input of a source, and a batch as lines with their destinations."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from postroom.engine.spark.jobs import parallelism
from postroom.flows.evaluation.dataflow import ROOT, ArcNetwork
from postroom.flows.evaluation.plans import table_frame
from postroom.flows.evaluation.worker import NO_PLACE
from postroom.flows.graph.versions import RoomGraph
from postroom.flows.language.definitions import Space
from postroom.flows.language.outside import FILES, JSON, KAFKA, RATE, Outside
from postroom.flows.language.sql import Sql, body_of, event_of, text
from postroom.flows.language.types import Tuple, Type
from postroom.flows.language.values import label
from postroom.flows.streams.admission import event_of_raw, fits, raw_of
from postroom.flows.streams.formats import ENDINGS, admitted, rows_of
from postroom.flows.streams.routing import Ends
from postroom.limits import BODY_BYTES_MAX, STREAM_EVENTS, STREAM_FILES

_ROWS = "body string, problem string, time long, name string, line long"
_ADMITTED = "n string, body string, problem string"
#: Where lines of a batch lead to that is no space: Python has to look at it, it does not fit, an arc failed.
DOUBTFUL, UNFIT, FAILED = "doubtful", "unfit", "failed"
_UNKNOWN, _KNOWN = "?", "!"  # how the problem of a line begins
TAB = "\t"


# --- sources ------------------------------------------------------------------------------------------------------


def source_name(space: str) -> str:
    """The name of a source in checkpoints, which allow few characters."""
    return f"s_{hashlib.sha256(space.encode()).hexdigest()[:24]}"


def source_frame(
    spark: SparkSession, space: Space, settings: Mapping[str, Any], options: Mapping[str, str]
) -> DataFrame:
    """The stream of a space with a source, as the operator has set it."""
    source = space.source
    assert source is not None
    reader = spark.readStream.name(source_name(space.name))
    head = f"{text(space.name)} AS space"
    if source.kind == FILES:
        return _files(reader, space, source, settings, head)
    if source.kind == RATE:
        rate = reader.format("rate").option("rowsPerSecond", settings.get("events", 1)).load()
        return rate.selectExpr(head, *_rate(space.type))
    if source.kind == KAFKA:
        chosen = {
            "kafka.bootstrap.servers": settings["brokers"],
            "subscribe": source.path,
            "startingOffsets": settings.get("starting", "earliest"),
            "maxOffsetsPerTrigger": settings.get("max-events", STREAM_EVENTS),
            **options,
        }
        place = [
            "unix_micros(timestamp) AS time",
            "lpad(CAST(partition AS STRING), 10, '0') AS name",
            "offset AS block",
        ]
        came = reader.format("kafka").options(**chosen).load()
        return came.selectExpr(head, *_lines("CAST(value AS STRING)", _one_line), *place, "0L AS line")
    host, _, port = str(settings["address"]).rpartition(":")
    lines = reader.format("socket").option("host", host).option("port", port).option("includeTimestamp", True).load()
    return lines.selectExpr(head, *_lines("value"), *_NO_FILE)


#: What Spark says of a file that it reads whole.
_BINARY = "path string, modificationTime timestamp, length long, content binary"
_WHOLE = ["unix_micros(modificationTime) AS time", "hex(element_at(split(path, '/'), -1)) AS name"]
_NO_FILE = ["unix_micros(timestamp) AS time", "'' AS name", "0L AS block", "CAST(NULL AS BIGINT) AS line"]
_FILE = ["unix_micros(_metadata.file_modification_time) AS time", "hex(_metadata.file_name) AS name"]


def _files(reader: Any, space: Space, source: Outside, settings: Mapping[str, Any], head: Sql) -> DataFrame:
    folder = str(folder_of(source, settings))
    glob = f"*.{{{','.join(ENDINGS[source.format])}}}"
    reader = reader.option("maxFilesPerTrigger", settings.get("max-files", STREAM_FILES)).option("pathGlobFilter", glob)
    if source.format == JSON:
        lines: DataFrame = reader.format("text").load(folder).where("trim(value) <> ''")
        return lines.selectExpr(
            head, *_lines("value"), *_FILE, "_metadata.file_block_start AS block", "CAST(NULL AS BIGINT) AS line"
        )
    files: DataFrame = reader.format("binaryFile").schema(_BINARY).load(folder).selectExpr("content", *_WHOLE)
    rows = files.mapInArrow(partial(_decoded, source.format, space.type, space.name), _ROWS)
    return rows.selectExpr(head, "body", "problem", "true AS known", "time", "name", "0L AS block", "line")


def folder_of(outside: Outside, settings: Mapping[str, Any]) -> Path:
    return Path(settings["folder"]) / outside.path


def _lines(value: Sql, as_line: Callable[[Sql], Sql] = str) -> list[Sql]:
    """A line of text, unless it cannot be one."""
    long = f"octet_length({value}) > {BODY_BYTES_MAX}"
    why = f"CASE WHEN {value} IS NULL THEN 'there is no value'"
    why += f" WHEN {long} THEN 'it is larger than {BODY_BYTES_MAX} bytes'"
    why += f" WHEN NOT is_valid_utf8({value}) THEN 'it is not UTF-8' END"
    # Whatever it is, it will be told as text: a byte that belongs to no character becomes a sign for one.
    body = as_line(f"make_valid_utf8(IF({long}, substring({value}, 1, 2000), {value}))")
    return [f"{body} AS body", f"{why} AS problem", "false AS known"]


def _one_line(value: Sql) -> Sql:
    """A text without line breaks, which Kafka allows and lines of a batch cannot have.

    They become tabs, which mean the same in JSON: white space between values, invalid within a string.
    """
    return rf"translate({value}, '\r\n', '\t\t')"


def _rate(type: Type) -> list[Sql]:
    assert isinstance(type, Tuple)
    utc = "CAST(to_utc_timestamp(timestamp, current_timezone()) AS timestamp_ntz)"
    event = f"named_struct({text(label(type, 0))}, {utc}, {text(label(type, 1))}, value)"
    return [
        f"{body_of(event, type)} AS body",
        "CAST(NULL AS STRING) AS problem",
        "true AS known",
        "unix_micros(timestamp) AS time",
        "'' AS name",
        "0L AS block",
        "value AS line",
    ]


def _decoded(format: str, type: Type, space: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of files."""
    for batch in batches:
        for file in batch.to_pylist():
            rows = list(rows_of(file["content"], format, type, space))
            columns = {
                "body": pa.array([row.body for row in rows], pa.string()),
                "problem": pa.array([row.problem for row in rows], pa.string()),
                "time": pa.array([file["time"]] * len(rows), pa.int64()),
                "name": pa.array([file["name"]] * len(rows), pa.string()),
                "line": pa.array(range(len(rows)), pa.int64()),
            }
            yield pa.RecordBatch.from_pydict(columns)


# --- batches ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BatchFrames:
    """The frames of one batch, by the graph of its version."""

    spark: SparkSession
    room_graph: RoomGraph
    sources: Sequence[str]  # the spaces from outside that the graph has, in their order
    lines: frozenset[str]  # spaces of which only bodies are wanted, in any order

    def delivered(self, came: DataFrame) -> DataFrame:
        """The destination of each event of a batch (``goal``), and what arrives there (``value``), with a
        task for each core: beginning one takes Spark longer than many events."""
        frames = [self._of_space(came, place) for place in range(len(self.sources))]
        return reduce(DataFrame.union, frames).coalesce(parallelism(self.spark))

    def admitted(self, lines: DataFrame, place: int) -> DataFrame:
        """The destinations of lines that Python has to parse (``value``: number and body)."""
        space = self.sources[place]
        type = self.room_graph.running.spaces[space].type
        events = lines.mapInArrow(partial(_admitted, type, space), _ADMITTED)
        return self._lines(place, events, event_of("body", type))

    def bodies(self, came: DataFrame, place: int, numbers: Sequence[str]) -> dict[str, str]:
        """The bodies of some events of a space."""
        events = came.where(f"space = {text(self.sources[place])}").selectExpr(f"{self._number(place)} AS n", "body")
        return {row.n: row.body for row in events.where(events.n.isin(list(numbers))).collect()}

    def _of_space(self, came: DataFrame, place: int) -> DataFrame:
        space = self.sources[place]
        type = self.room_graph.running.spaces[space].type
        events = came.where(f"space = {text(space)}").selectExpr(f"{self._number(place)} AS n", "*")
        known = f"{text(_KNOWN)} || problem || {text(TAB)} || coalesce(body, '')"
        raw = raw_of("body", type)
        source = self.room_graph.running.spaces[space].source
        if source is not None and (source.kind == RATE or source.format != JSON):
            events = events.selectExpr("n", "IF(problem IS NULL, body, NULL) AS body", f"{known} AS problem")
            return self._lines(place, events, event_of("body", type))
        doubt = f"{text(_UNKNOWN)} || body"
        if raw is None:
            events = events.selectExpr("n", "CAST(NULL AS STRING) AS body", f"coalesce({known}, {doubt}) AS problem")
            return self._lines(place, events, event_of("body", type))
        # One step of Spark's planning; of the names in it, those of the frame come before those that it makes.
        events = events.selectExpr(
            "n",
            f"{raw} AS raw",
            "to_json(raw) AS again",
            f"problem IS NULL AND {fits('body', 'raw', 'again', type)} AS fits",
            f"IF(fits, {event_of_raw('raw', type)}, NULL) AS given",
            f"{body_of('given', type)} AS body",
            f"IF(fits, NULL, coalesce({known}, {doubt})) AS problem",
        )
        return self._lines(place, events, "given")

    def _number(self, place: int) -> Sql:
        """The order of events in a batch: time of arrival, then place in a file or topic."""
        if not self._ordered:
            return "CAST(monotonically_increasing_id() AS STRING)"
        line = "coalesce(line, monotonically_increasing_id())"
        time, block, line = (f"lpad(CAST({column} AS STRING), 20, '0')" for column in ("time", "block", line))
        return f"concat_ws('.', {time}, name, '{place:04}', {block}, {line})"

    @property
    def _ordered(self) -> bool:
        """Whether the order of events matters."""
        return not self.lines.issuperset(self._goals())

    def _goals(self) -> set[str]:
        network = ArcNetwork(self.room_graph.running, self.room_graph.keeping)
        targets = {step.arc.target for source in self.sources for step in network.ways(source)}
        return (targets & self.room_graph.keeping) | {source for source in self.sources if self._is_root(source)}

    def _is_root(self, space: str) -> bool:
        ends = Ends(self.room_graph)
        return ends.stored(space) or ends.folded(space)

    def _lines(self, place: int, events: DataFrame, event: Sql) -> DataFrame:
        """What the arcs deliver of events; lines that are no events go to Python, or to the problems."""
        space, graph = self.sources[place], self.room_graph.running
        network = ArcNetwork(graph, self.room_graph.keeping)
        deliveries = network.deliveries(
            space, events, self._tables(network, space), problems=True, event=event, root=self._is_root(space)
        )
        doubtful = f"startswith(failure, {text(_UNKNOWN)})"
        goal = (
            f"CASE WHEN place = {NO_PLACE} THEN IF({doubtful}, '{DOUBTFUL}-{place}', '{UNFIT}-{place}') "
            f"WHEN failure IS NOT NULL THEN '{FAILED}-{place}' WHEN place = {ROOT} THEN 'root-{place}' "
            f"{' '.join(self._goal_cases(network, space))} END"
        )
        numbered = f"concat_ws({text(TAB)}, n, lpad(CAST(place AS STRING), 6, '0'), rows, body)"
        short = [text(name) for name in sorted(self.lines)]
        plain = f"WHEN place >= 0 AND space IN ({', '.join(short)}) THEN body" if short else ""
        line = (
            f"CASE WHEN place = {NO_PLACE} THEN concat_ws({text(TAB)}, n, substring(failure, 2)) "
            f"WHEN failure IS NOT NULL THEN concat_ws({text(TAB)}, n, arc, failure) {plain} ELSE {numbered} END"
        )
        return deliveries.selectExpr(f"{goal} AS goal", f"{line} AS value")

    def _goal_cases(self, network: ArcNetwork, space: str) -> Iterator[Sql]:
        for name in sorted({step.arc.target for step in network.ways(space)} & self.room_graph.keeping):
            yield f"WHEN space = {text(name)} THEN {text(goal_name(name))}"

    def _tables(self, network: ArcNetwork, space: str) -> dict[str, DataFrame]:
        names = {step.arc.table for step in network.ways(space)}
        return {name: table_frame(self.spark, self.room_graph, name) for name in names if name is not None}


def goal_name(space: str) -> str:
    """The folder for the events of a space."""
    return f"space-{hashlib.sha256(space.encode()).hexdigest()[:24]}"


def _admitted(type: Type, space: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        split = [line.split(TAB, 1) for line in batch.column(0).to_pylist()]
        rows = [admitted(body, type, space) for _, body in split]
        bodies = [row.body if row.problem is None else None for row in rows]
        problems = [None if row.problem is None else f"{_KNOWN}{row.problem}{TAB}{row.body}" for row in rows]
        columns = [[number for number, _ in split], bodies, problems]
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, pa.string()) for column in columns], names=["n", "body", "problem"]
        )
