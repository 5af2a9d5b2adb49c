"""A room as a Spark data source: ``spark.read.format("postroom")``, and the same for streams and for writing."""

from __future__ import annotations

from abc import abstractmethod

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from postroom.engine.datasource import options
from postroom.engine.datasource.delivery import Put
from postroom.engine.datasource.frames import SCHEMA, Frames
from postroom.engine.datasource.options import READING, STREAMING, WRITING
from postroom.engine.datasource.scan import Scan
from postroom.engine.datasource.sink import BatchSink, Sheet, StreamSink
from postroom.engine.datasource.stream import Stream
from postroom.errors import ArgumentInvalid
from postroom.store.kernel.base import Store


class Source(DataSource):
    """What every room offers to Spark. ``postroom.spark`` adds how messages are admitted to a queue."""

    @staticmethod
    @abstractmethod
    def admission(store: Store) -> Put:
        """How messages are admitted to the queues of this store."""

    @classmethod
    def name(cls) -> str:
        return "postroom"

    def schema(self) -> StructType:
        return SCHEMA

    def reader(self, schema: StructType) -> Scan:
        place = options.place(self.options, READING)
        return Scan(place, self._frames(schema), options.partitions(self.options), options.choice(self.options))

    def streamReader(self, schema: StructType) -> Stream:
        place = options.place(self.options, STREAMING)
        start = options.word(self.options, "startingOffset", ("earliest", "latest"))
        frames = self._frames(schema)
        return Stream(place, frames, options.partitions(self.options), options.batch_max(self.options), start)

    def writer(self, schema: StructType, overwrite: bool) -> BatchSink:
        return BatchSink(options.place(self.options, WRITING), self._sheet(schema, overwrite), type(self).admission)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamSink:
        return StreamSink(options.place(self.options, WRITING), self._sheet(schema, overwrite), type(self).admission)

    def _frames(self, schema: StructType) -> Frames:
        return Frames(schema, options.word(self.options, "corrupt", ("fail", "skip")))

    def _sheet(self, schema: StructType, overwrite: bool) -> Sheet:
        if overwrite:
            raise ArgumentInvalid(argument="mode", why="a queue is only ever appended to; use the mode append")
        return Sheet(schema)
