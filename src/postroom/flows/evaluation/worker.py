"""Events in a worker of Spark: a plan begins with a task that reads them, and may end with one that writes the answers.

A plan is made once and run for many steps. Each job gets its events, or their keys in the store, and its ticket.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from postroom.engine.spark import jobs
from postroom.engine.spark.arrow import packed_rows, stream
from postroom.engine.spark.executor_store import Ticket
from postroom.engine.steps.effects import Arrival
from postroom.errors import BodyError, FlowInvalid, PostroomError
from postroom.flows.evaluation.events import as_event
from postroom.flows.language.types import Type
from postroom.model.message import Stored

#: What a plan begins with; where executors read it, with what they found wrong.
EVENTS = "n long, body string"
READ = f"{EVENTS}, problem string"
GONE, DAMAGED, UNFIT, UNREACHED = "gone", "damaged", "unfit: ", "unreached: "
#: The place of what no arc delivers: the problem of a message that is no event.
NO_PLACE = -1
BODY = "body"
_EVENT = pa.schema([("n", pa.int64()), (BODY, pa.string())])
_READ = _EVENT.append(pa.field("problem", pa.string()))
_KEY = pa.schema([("n", pa.int64()), ("key", pa.int64())])


# --- in the driver -----------------------------------------------------------------------------------------------


def events_of(arrivals: Sequence[Arrival]) -> pa.RecordBatch:
    """A part of a job's events, serialised."""
    return _rows(_EVENT, [arrival.order for arrival in arrivals], [arrival.body for arrival in arrivals])


def keys_of(arrivals: Sequence[Arrival]) -> pa.RecordBatch:
    """Numbers and keys of events, for executors that read the bodies in the store."""
    return _rows(_KEY, [arrival.order for arrival in arrivals], [arrival.key for arrival in arrivals])


def _rows(schema: pa.Schema, *columns: Sequence[object]) -> pa.RecordBatch:
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


# --- in the worker -----------------------------------------------------------------------------------------------


def given(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The events that came with the job."""
    return (rows for batch in batches for number in batch.column(0).to_pylist() for rows in jobs.part(number))


def read(url: str, type: Type, space: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read the events of the job's keys from the store; for a message that is no event, the reason."""
    ticket = Ticket.of(url, jobs.told())
    for batch in given(batches):
        numbers, keys = (column.to_pylist() for column in batch.columns)
        try:
            messages = ticket.fetched(keys)
            events = [_told(messages.get(key), type, space) for key in keys]
        except PostroomError as error:  # it is no event's fault, and told as what it is
            events = [(None, UNREACHED + str(error))] * len(keys)
        yield _rows(_READ, numbers, *zip(*events, strict=True))


def _told(stored: Stored | None, type: Type, space: str) -> tuple[str | None, str | None]:
    """The event of a message, or what is wrong with it."""
    if stored is None:
        return None, GONE
    if not stored.sound:
        return None, DAMAGED
    try:
        return as_event(stored, type, space), None
    except (BodyError, FlowInvalid) as error:
        return None, UNFIT + str(error)


def leave(url: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write deliveries to the store, a body that several arcs deliver only once; yields receipts."""
    some = [batch for batch in batches if batch.num_rows]
    if not some:
        return
    table = pa.Table.from_batches(some)
    at = table.column_names.index(BODY)
    (rows,) = table.set_column(at, BODY, table.column(at).dictionary_encode()).combine_chunks().to_batches()
    receipt = Ticket.of(url, jobs.told()).left(jobs.task_number(), stream(rows))
    yield packed_rows([receipt.packed()])


def delivered(answer: bytes) -> pa.Table:
    """Read what was written."""
    table = pa.ipc.open_stream(answer).read_all()
    at = table.column_names.index(BODY)
    return table.set_column(at, BODY, table.column(at).cast(pa.string()))
