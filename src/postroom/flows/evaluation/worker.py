"""Events in a worker of Spark: a plan begins with a task that finds them, and may end with one that leaves answers.

A plan is made once and run for many steps, so what is new in a job must come with the properties of the job: the events
themselves, or a ticket and the keys under which they are in the store.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from postroom.engine.spark.arrow import packed_rows, stream
from postroom.engine.spark.exchange import Receipt, Ticket, Unreached
from postroom.engine.steps.effects import Arrival
from postroom.errors import BodyError, FlowInvalid, PostroomError
from postroom.flows.conversion import event
from postroom.flows.language.types import Type
from postroom.model.message import Draft, Stored

if TYPE_CHECKING:
    from pyspark import TaskContext

#: The properties of a job: each part of its events, and its ticket.
PART = "postroom.flow.{}"
TICKET = "postroom.flow.ticket"
#: What a plan begins with; where executors read it, with what they found wrong.
EVENTS = "n long, body string"
READ = f"{EVENTS}, problem string"
GONE, DAMAGED, UNFIT = "gone", "damaged", "unfit: "
#: The place of what no arc delivers: the problem of a message that is no event.
NO_PLACE = -1
BODY = "body"
_EVENT = pa.schema([("n", pa.int64()), (BODY, pa.string())])
_READ = _EVENT.append(pa.field("problem", pa.string()))
_KEY = pa.schema([("n", pa.int64()), ("key", pa.int64())])


def is_event(message: Arrival | Stored) -> bool:
    """Whether a message in a space was admitted as an event; what a rule has made was not."""
    return message.cause is None and message.format == "json"


def as_event(message: Arrival | Stored, type: Type, space: str) -> str:
    """What a message in a space says, as an event; raises if it is none."""
    if is_event(message):
        return message.body
    return event(Draft(message.body, message.format, None, message.properties), type, space, {}).body


# --- in the driver -----------------------------------------------------------------------------------------------


def packed(arrivals: Sequence[Arrival]) -> str:
    """A part of a job's events."""
    return _packed(_EVENT, [each.order for each in arrivals], [each.body for each in arrivals])


def packed_keys(arrivals: Sequence[Arrival]) -> str:
    """The same, for executors that read them in the store."""
    return _packed(_KEY, [each.order for each in arrivals], [each.key for each in arrivals])


def _packed(schema: pa.Schema, *columns: Sequence[object]) -> str:
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return base64.b64encode(stream(pa.RecordBatch.from_arrays(arrays, schema=schema))).decode()


def packed_ticket(ticket: Ticket) -> str:
    """Without the URL, which may hold a password: the properties of a job are for everyone to see."""
    return f"{ticket.fence} {ticket.step} {ticket.job}"


# --- in the worker -----------------------------------------------------------------------------------------------


def given(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The events that came with the job."""
    context = _context()
    for batch in batches:
        for part in batch.column(0).to_pylist():
            packed = context.getLocalProperty(PART.format(part))
            if packed is not None:
                yield from pa.ipc.open_stream(base64.b64decode(packed))


def read(url: str, type: Type, space: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The events whose keys came with the job, out of the store; of what is none, why."""
    ticket = _ticket(url)
    for batch in given(batches):
        numbers, keys = (column.to_pylist() for column in batch.columns)
        with _reaching():
            found = ticket.fetched(keys)
        told = [_told(found.get(key), type, space) for key in keys]
        columns = [numbers, *zip(*told, strict=True)]
        arrays = [pa.array(values, field.type) for values, field in zip(columns, _READ, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_READ)


def _told(stored: Stored | None, type: Type, space: str) -> tuple[str | None, str | None]:
    """What an event says, and if it is none, what is wrong."""
    if stored is None:
        return None, GONE
    if not stored.sound:
        return None, DAMAGED
    try:
        return as_event(stored, type, space), None
    except (BodyError, FlowInvalid) as error:
        return None, UNFIT + str(error)


def leave(url: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Leave what arcs deliver in the store, a body that many deliver only once; a receipt goes on."""
    some = [batch for batch in batches if batch.num_rows]
    if not some:
        return
    found = pa.Table.from_batches(some)
    at = found.column_names.index(BODY)
    (rows,) = found.set_column(at, BODY, found.column(at).dictionary_encode()).combine_chunks().to_batches()
    chunk = _context().partitionId()
    with _reaching():
        _ticket(url).leave(chunk, stream(rows))
    yield packed_rows([Receipt(chunk).packed()])


def delivered(answer: bytes) -> pa.Table:
    """What was left."""
    found = pa.ipc.open_stream(answer).read_all()
    at = found.column_names.index(BODY)
    return found.set_column(at, BODY, found.column(at).cast(pa.string()))


def _ticket(url: str) -> Ticket:
    fence, step, job = map(int, str(_context().getLocalProperty(TICKET)).split())
    return Ticket(url, fence, step, job)


def _context() -> TaskContext:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return context


@contextmanager
def _reaching() -> Iterator[None]:
    """A store that cannot be used ends the task, and is told of as what it is: it is no message's fault."""
    try:
        yield
    except PostroomError as error:
        raise Unreached(str(error)) from error
