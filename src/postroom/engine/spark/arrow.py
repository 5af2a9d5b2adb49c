"""What crosses Spark as one value: chunks of work on their way out, answers on their way back.

Taken apart, each of their values would be converted four times on its way through the JVM, which costs more than
evaluating a rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The one column of a frame of packed values.
PACKED = "packed binary"


def stream(rows: pyarrow.RecordBatch) -> bytes:
    """A batch as an Arrow stream, with its schema."""
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue())


def packed_frame(spark: SparkSession, values: Sequence[bytes]) -> DataFrame:
    return spark.createDataFrame(pyarrow.Table.from_batches([packed_rows(values)]), PACKED)


def packed_rows(values: Sequence[bytes]) -> pyarrow.RecordBatch:
    return pyarrow.RecordBatch.from_arrays([pyarrow.array(values, pyarrow.binary())], names=["packed"])


def packed_values(rows: pyarrow.Table | pyarrow.RecordBatch) -> list[bytes]:
    found: list[bytes] = rows.column(0).to_pylist()
    return found
