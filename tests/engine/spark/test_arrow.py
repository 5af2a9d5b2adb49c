"""Rows as values."""

from __future__ import annotations

import pyarrow

from postroom.engine.spark.arrow import packed_rows, packed_values, stream


def test_a_stream_brings_the_rows_and_their_schema() -> None:
    rows = pyarrow.RecordBatch.from_pydict({"n": [1, 2], "t": ["a", None]})
    (again,) = pyarrow.ipc.open_stream(stream(rows))
    assert again == rows
    empty = pyarrow.RecordBatch.from_arrays([pyarrow.array([], pyarrow.int64())], names=["n"])
    assert pyarrow.ipc.open_stream(stream(empty)).schema == empty.schema


def test_values_come_out_as_they_were_packed() -> None:
    values = [b"", b"\x00\xff", b"x" * 100_000]
    assert packed_values(packed_rows(values)) == values
    assert packed_values(pyarrow.Table.from_batches([packed_rows(values[:1]), packed_rows(values[1:])])) == values
