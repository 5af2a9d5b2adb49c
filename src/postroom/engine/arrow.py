"""Rows on their way through Spark as one value, an Arrow stream."""

from __future__ import annotations

import pyarrow


def stream(*batches: pyarrow.RecordBatch) -> bytes:
    """Batches of one schema as an Arrow stream, with that schema."""
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())
