"""Rules in a worker of Spark: chunks are evaluated within bounds. With a ticket, messages are read in the store."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

import pyarrow as pa

from postroom.engine.spark.arrow import packed_rows, packed_values
from postroom.engine.spark.collector import collector_off
from postroom.engine.spark.exchange import Ticket
from postroom.engine.spark.worker import Answering, Bounds
from postroom.engine.steps.effects import Arrival
from postroom.engine.steps.serial import Timeline
from postroom.model.message import Stored
from postroom.rules.compilation.plan import Plan
from postroom.rules.evaluation.chunks import Base, answer_of, chunk_of, number_of
from postroom.rules.evaluation.evaluate import evaluate_chunk
from postroom.rules.evaluation.xquery import saxon


def work(answer: Answering, bounds: Bounds, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Evaluate every chunk of a partition, within bounds that the driver sets."""
    bounds.settle()
    saxon()  # before the time counts
    for rows in batches:
        with collector_off():
            answers = [answer(chunk, bounds) for chunk in packed_values(rows)]
        yield packed_rows(answers)


def evaluated(plan: Plan, chunk: bytes, bounds: Bounds | None = None) -> bytes:
    """The answer to one chunk."""
    return _evaluated(plan, *chunk_of(chunk), bounds, len(chunk))


def evaluated_there(plan: Plan, ticket: Ticket, chunk: bytes, bounds: Bounds | None = None) -> bytes:
    """The receipt for one chunk, whose messages are fetched from the store, where the answer is left.

    Time counts for the evaluation alone: that a store is slow, or away, is no message's fault.
    """
    arrivals, base, given = chunk_of(chunk)
    ours = [each.key for each in arrivals]
    others = {each.key for members in base.values() for each in members}

    def answer(found: dict[int, Stored]) -> bytes:
        damaged = {key for key in others if not found[key].sound}
        told = [each._replace(body=found[each.key].body) for each in arrivals]
        sets = {
            granule: [each._replace(body=found[each.key].body) for each in members if each.key not in damaged]
            for granule, members in base.items()
        }
        size = sum([len(stored.body) for stored in found.values()])
        return _evaluated(plan, told, sets, given, bounds, len(chunk) + size)

    return ticket.worked_off(number_of(chunk), {*ours, *others}, ours, answer).packed()


def _evaluated(
    plan: Plan, arrivals: Sequence[Arrival], base: Base, given: Timeline, bounds: Bounds | None, size: int
) -> bytes:
    with nullcontext() if bounds is None else _bounded(bounds, size):
        effects, unsettled = evaluate_chunk(plan, arrivals, base, given)
        return answer_of([arrival.order for arrival in arrivals], effects, unsettled)


@contextmanager
def _bounded(bounds: Bounds, size: int) -> Iterator[None]:
    with _hushed(), bounds.deadline(size):
        yield


@contextmanager
def _hushed() -> Iterator[None]:
    """Saxon dies with a thousand lines about its stack or heap. What matters is in the message's error message."""
    before, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(nowhere)
