"""Rows as values: each row crosses Spark as one binary value.

As columns, each value would be converted four times on its way through the JVM, which costs more than evaluating a
rule.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow


def stream(rows: pyarrow.RecordBatch) -> bytes:
    """A batch as an Arrow stream, with its schema."""
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue())


def packed_rows(values: Sequence[bytes]) -> pyarrow.RecordBatch:
    """Values as a batch with one column."""
    return pyarrow.RecordBatch.from_arrays([pyarrow.array(values, pyarrow.binary())], names=["packed"])


def packed_values(rows: pyarrow.Table | pyarrow.RecordBatch) -> list[bytes]:
    values: list[bytes] = rows.column(0).to_pylist()
    return values
