"""Rows on their way through Spark as one value, an Arrow stream."""

from __future__ import annotations

import pyarrow


def stream(rows: pyarrow.RecordBatch) -> bytes:
    """A batch as an Arrow stream, with its schema."""
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue())
