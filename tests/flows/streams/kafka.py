"""A stand-in for Spark's package for Kafka, which is not on PyPI: a folder, with the documented columns and options.

It shows what we ask of Spark and what we make of its rows, and nothing about a broker.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrameReader, DataFrameWriter, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceWriter,
    SimpleDataSourceStreamReader,
    WriterCommitMessage,
)
from pyspark.sql.streaming.readwriter import DataStreamReader

NAME = "kafka_stand_in"
#: https://spark.apache.org/docs/latest/streaming/structured-streaming-kafka-integration.html
COLUMNS = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
_FOLDER = "kafka.stand.in"  # a setting of Kafka's own, as far as we know


def topic_file(options: Mapping[str, str], topic: str) -> Path:
    return Path(options[_FOLDER]) / f"{topic}.jsonl"


def put(folder: Path, topic: str, partition: int, values: Sequence[bytes | None]) -> None:
    """Records in a topic, a second apart."""
    folder.mkdir(exist_ok=True)
    with (folder / f"{topic}.jsonl").open("a") as file:
        for value in values:
            file.write(json.dumps([partition, None if value is None else value.hex()]) + "\n")


def taken(folder: Path, topic: str) -> list[bytes]:
    """The values of a topic."""
    lines = (folder / f"{topic}.jsonl").read_text().splitlines()
    return [bytes.fromhex(json.loads(line)[1]) for line in lines]


class KafkaStandIn(DataSource):
    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return COLUMNS

    def reader(self, schema: Any) -> DataSourceReader:
        raise NotImplementedError  # only looked up, to see whether the package is there

    def simpleStreamReader(self, schema: Any) -> SimpleDataSourceStreamReader:
        return _Records(dict(self.options))

    def writer(self, schema: Any, overwrite: bool) -> DataSourceWriter:
        assert [field.name for field in schema.fields] == ["value"]
        return _Sink(dict(self.options))


class _Records(SimpleDataSourceStreamReader):
    def __init__(self, options: dict[str, str]) -> None:
        given = {name.lower(): value for name, value in options.items()}
        assert given["kafka.bootstrap.servers"] == "127.0.0.1:9", given
        assert (given["startingoffsets"], given["maxoffsetspertrigger"]) == ("earliest", "100000"), given
        self._file = topic_file(given, given["subscribe"])

    def initialOffset(self) -> dict[str, int]:
        return {"line": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[Any, ...]], dict[str, int]]:
        end = {"line": len(self._file.read_text().splitlines())}
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Iterator[tuple[Any, ...]]:
        lines = self._file.read_text().splitlines()
        return iter([self._record(place, *json.loads(lines[place])) for place in range(start["line"], end["line"])])

    def _record(self, place: int, partition: int, value: str | None) -> tuple[Any, ...]:
        when = datetime.fromtimestamp(1_700_000_000 + place, UTC)
        said = None if value is None else bytes.fromhex(value)
        return None, said, self._file.stem, partition, place, when, 0


class _Sink(DataSourceWriter):
    def __init__(self, options: dict[str, str]) -> None:
        given = {name.lower(): value for name, value in options.items()}
        assert given["kafka.bootstrap.servers"] == "127.0.0.1:9", given
        self._file = topic_file(given, given["topic"])

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        values = [row.value for row in iterator]
        with self._file.open("a") as file:
            file.writelines(json.dumps([0, value.encode().hex()]) + "\n" for value in values)
        return WriterCommitMessage()


def stand_in(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the end of a test, ``kafka`` is the stand-in."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]  # Spark's own copy
    spark.dataSource.register(KafkaStandIn)
    for kind in (DataStreamReader, DataFrameReader, DataFrameWriter):
        known = kind.format

        def chosen(self: Any, source: str, known: Any = known) -> Any:
            return known(self, NAME if source == "kafka" else source)

        monkeypatch.setattr(kind, "format", chosen)
