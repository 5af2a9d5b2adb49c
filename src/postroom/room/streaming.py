"""Runs the streams of a room, each in its own thread, with the operator's options."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from postroom.engine.evaluators import LOCAL
from postroom.errors import ArgumentInvalid, FlowInvalid, GatewayUnknown, StreamFailed, StreamUnknown
from postroom.flows.graph.streamed import behind, streams
from postroom.flows.language.outside import FILES, JSON, Outside, read_outside
from postroom.flows.language.words import Words
from postroom.gateways.credentials import secret
from postroom.gateways.transport import Undelivered
from postroom.model.definitions import nearest
from postroom.room.parts import Parts, spark_session
from postroom.store import absolute
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.endpoints import SINK, Endpoint

if TYPE_CHECKING:
    from postroom.flows.streams.running import StreamRun
    from postroom.flows.streams.totals import StreamProgress, StreamTotals

_FOLDER = ".streams"  # beside a room that is a file


@dataclass(frozen=True)
class StreamWishes:
    """The operator's options."""

    until_idle: bool = False
    checkpoints: str | None = None
    every: float = 0.0
    refused: str | None = None
    restart: bool = False
    master: str = LOCAL
    conf: Mapping[str, str] | None = None
    packages: str | None = None
    show: Callable[[str, str], None] | None = None
    progress: StreamProgress | None = None


def run_streams(parts: Parts, spaces: Sequence[str], wishes: StreamWishes, stop: threading.Event) -> list[StreamTotals]:
    """Run the streams of some spaces, or all; if one fails, the others stop after their current batch."""
    from postroom.flows.streams.holding import StreamHold
    from postroom.flows.streams.running import StreamRun, StreamSettings

    if not 0 <= wishes.every <= 86_400:
        raise ArgumentInvalid(argument="every", why="from 0 seconds to a day")
    chosen = parts.store.read(lambda tx: _chosen(parts, tx, spaces))
    settings = StreamSettings(
        _folder(parts, wishes.checkpoints),
        _kafka_options,
        wishes.show or (lambda space, line: print(f"{space} {line}", flush=True)),
        wishes.until_idle,
        wishes.every,
        None if wishes.refused is None else _dead_letters(parts, wishes.refused),
        wishes.restart,
    )
    conf = dict(wishes.conf or {})
    if wishes.packages:
        conf["spark.jars.packages"] = wishes.packages
    common = (parts.store, parts.room_graphs)
    runs = [
        StreamRun(
            *common,
            parts.admission,
            StreamHold(*common, parts.holder, names, settings.folder),
            settings,
            stop,
            wishes.progress,
        )
        for names in chosen
    ]
    spark = spark_session(wishes.master, conf, other=wishes.master == LOCAL and not conf)
    return _together(runs, spark, stop)


def _together(runs: Sequence[StreamRun], spark: object, stop: threading.Event) -> list[StreamTotals]:
    def run(stream_run: StreamRun) -> StreamTotals:
        try:
            return stream_run.run(spark)  # type: ignore[arg-type]  # a session
        except BaseException:
            stop.set()
            raise

    if len(runs) == 1:
        return [run(runs[0])]
    with ThreadPoolExecutor(len(runs), "postroom-stream") as pool:
        return [future.result() for future in [pool.submit(run, stream_run) for stream_run in runs]]


def _chosen(parts: Parts, tx: Transaction, spaces: Sequence[str]) -> list[tuple[str, ...]]:
    """The streams of some spaces, or all."""
    graph = parts.room_graphs.now(tx).running
    every = streams(graph)
    if not every:
        raise StreamUnknown(what="this room has no space with events from outside: space NAME : TYPE from …")
    reached = {names: behind(graph, names) for names in every}
    for space in spaces:
        if not any(space in reach for reach in reached.values()):
            known = [name for reach in reached.values() for name in reach]
            raise StreamUnknown(what=f"no stream comes to a space {space}{nearest(space, known)}")
    return [names for names in every if not spaces or reached[names].intersection(spaces)]


def _folder(parts: Parts, given: str | None) -> Path:
    if given is not None:
        return Path(given).absolute()
    where = absolute(parts.url)
    if "://" in where:
        raise ArgumentInvalid(argument="checkpoints", why="a room on PostgreSQL needs a folder for them")
    return Path(f"{where}{_FOLDER}")


def _dead_letters(parts: Parts, name: str) -> Outside:
    """The folder for dead letters, by the name of its gateway."""
    try:
        sink = read_outside(Words(f"{FILES} {json.dumps(name)} format {JSON}", "refused"), FILES)
    except FlowInvalid as error:
        raise ArgumentInvalid(argument="refused", why=error.facts["problems"][0].what) from None
    endpoints = parts.store.read(lambda tx: tx.endpoints.all())
    endpoint = endpoints.get(sink.gateway)
    if endpoint is None:
        raise GatewayUnknown(gateway=sink.gateway, nearest=nearest(sink.gateway, endpoints))
    if endpoint.transport != FILES or SINK not in endpoint.does:
        raise ArgumentInvalid(argument="refused", why=f"the gateway {sink.gateway} has no folder")
    return sink


def _kafka_options(endpoint: Endpoint) -> dict[str, str]:
    """Kafka's own settings of a gateway, with secrets read from their references."""
    where = endpoint.settings.get("options")
    if where is None:
        return {}
    try:
        lines = [line.strip() for line in secret(where).splitlines()]
    except Undelivered as error:
        raise StreamFailed(stream=endpoint.name, why=str(error), batch="its next") from None
    pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
    return {f"kafka.{name.strip()}": value.strip() for name, _, value in pairs}
