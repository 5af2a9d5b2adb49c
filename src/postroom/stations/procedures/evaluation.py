"""Actions on Spark: complete working sets go out in chunks, what they lead to comes back, by one ``mapInArrow``.

The functions that procedures name are someone else's code. It runs in Spark's workers, within bounds, and travels there
by value: a cluster need not have the modules of whoever runs the room.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from postroom.engine.spark.arrow import PACKED, packed_frame, packed_rows, packed_values
from postroom.engine.spark.exchange import Receipt, Ticket
from postroom.engine.spark.isolation import isolated, reason
from postroom.engine.spark.worker import Answering, Bounds
from postroom.limits import EVALUATION_SECONDS, SLOW_SECONDS
from postroom.model.message import Stored
from postroom.stations.forms import functions
from postroom.stations.procedures.actions import Bench, Complete, Made, Member, Outcome
from postroom.stations.procedures.confinement import confined
from postroom.stations.procedures.working import Exchange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHUNK_MIN = 64  # fewer working sets are not worth a second task


def evaluate(
    spark: SparkSession,
    bench: Bench,
    sets: Sequence[Complete],
    exchange: Exchange | None = None,
    seconds: float = SLOW_SECONDS,
) -> dict[int, Outcome]:
    """What working sets lead to, by their numbers; one that cannot be worked on has an error of its own.

    One whose functions take longer than ``seconds`` is slow, and has no outcome yet.
    """
    found: dict[int, Outcome] = {}
    for some in isolated(spark, sets, partial(_together, spark, bench, exchange, seconds)):
        found.update(some)
    return found


def keep_warm(spark: SparkSession) -> None:
    try:
        chunks: list[list[Complete]] = [[]] * spark.sparkContext.defaultParallelism
        list(_evaluated(spark, Bench({}, {}, {}, {}), None, SLOW_SECONDS, chunks))
    except Exception as error:
        reason(spark, error)  # a worker that has died will be made anew; if Java has, that is told


def _together(
    spark: SparkSession, bench: Bench, exchange: Exchange | None, seconds: float, sets: Sequence[Complete]
) -> Iterator[Mapping[int, Outcome]]:
    count = max(1, min(spark.sparkContext.defaultParallelism, len(sets) // _CHUNK_MIN))
    size = -(-len(sets) // count)
    chunks = [sets[start : start + size] for start in range(0, len(sets), size)]
    return _evaluated(spark, bench, exchange, seconds, chunks)


def _evaluated(
    spark: SparkSession,
    bench: Bench,
    exchange: Exchange | None,
    seconds: float,
    chunks: Sequence[Sequence[Complete]],
) -> Iterator[Mapping[int, Outcome]]:
    _travel(bench.functions.values())
    if exchange is None:
        answers = _answers(spark, bench, [packed(chunk) for chunk in chunks], partial(answered, bench, seconds))
    else:
        ticket = exchange.bay.ticket()
        rows = [packed_keys(chunk, exchange.keys, number) for number, chunk in enumerate(chunks)]
        receipts = _answers(spark, bench, rows, partial(answered_there, bench, ticket, seconds))
        answers = exchange.bay.answers(ticket, map(Receipt.unpacked, receipts))
    for answer in answers:
        yield unpacked(answer)


def _answers(spark: SparkSession, bench: Bench, chunks: Sequence[bytes], answer: Answering) -> list[bytes]:
    bounds = Bounds.beside(str(spark.sparkContext.master))
    frame = packed_frame(spark, chunks).mapInArrow(partial(work, bench, answer, bounds), PACKED)
    return packed_values(frame.toArrow())


def _travel(some: Any) -> None:
    """Have functions go to the workers as they are, and not as the name of a module that is only here."""
    from pyspark import cloudpickle

    for each in some:
        module = sys.modules.get(getattr(each, "__module__", None) or "")
        if module is not None and not module.__name__.startswith("postroom") and module.__name__ != "__main__":
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # Spark's own copy


def work(
    bench: Bench, answer: Answering, bounds: Bounds, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """In a worker: the answers to every chunk of a partition."""
    bounds.settle()
    functions.provide(bench.functions)
    for batch in batches:
        yield packed_rows([answer(chunk, bounds) for chunk in packed_values(batch)])


def answered(bench: Bench, seconds: float, chunk: bytes, bounds: Bounds | None = None) -> bytes:
    """The answer to one chunk."""
    return _answered(bench, seconds, json.loads(chunk), bounds, len(chunk))


def answered_there(bench: Bench, ticket: Ticket, seconds: float, chunk: bytes, bounds: Bounds | None = None) -> bytes:
    """The receipt for one chunk, whose messages are read in the store, where the answer is left."""
    number, sets = json.loads(chunk)
    keys = {key for _, _, members, *_ in sets for *_, key in members}

    def answer(found: dict[int, Stored]) -> bytes:
        for _, _, members, *_ in sets:
            for member in members:
                member[-1] = found[member[-1]].body
        size = sum([len(stored.body) for stored in found.values()])
        return _answered(bench, seconds, sets, bounds, len(chunk) + size)

    return ticket.worked_off(number, keys, keys, answer).packed()


def _answered(bench: Bench, seconds: float, sets: Sequence[Any], bounds: Bounds | None, size: int) -> bytes:
    if bounds is not None and bench.functions:
        return _json(confined(bench, [_complete(*each) for each in sets], seconds, EVALUATION_SECONDS))
    with nullcontext() if bounds is None else bounds.deadline(size):
        return _json([(each[0], bench.outcome(_complete(*each))) for each in sets])


def _complete(order: int, plan: str, members: Any, keys: Any, now: int, failure: str | None) -> Complete:
    return Complete(order, plan, tuple([Member(*each) for each in members]), tuple(keys), now, failure)


def packed(chunk: Sequence[Complete]) -> bytes:
    return _json(chunk)


def packed_keys(chunk: Sequence[Complete], keys: Mapping[int, Sequence[int]], number: int) -> bytes:
    """A chunk whose messages are named, with its place among those of its job."""

    def named(each: Complete) -> tuple[object, ...]:
        members = [(*member[:-1], key) for member, key in zip(each.members, keys[each.order], strict=True)]
        return (each.order, each.plan, members, *each[3:])

    return _json((number, [named(each) for each in chunk]))


def _json(said: object) -> bytes:
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()


def unpacked(answer: bytes) -> dict[int, Outcome]:
    found: dict[int, Outcome] = {}
    for order, (written, made, where, code, why) in json.loads(answer):
        new = tuple([Made(*each) for each in made]) if made else ()
        for sketch, (body, fields) in written.items():
            written[sketch] = (body, tuple(fields))
        said = (written, new, tuple(where), code, why)
        found[order] = tuple.__new__(Outcome, said)  # the constructor's half cost counts here
    return found


def evaluate_here(bench: Bench, sets: Sequence[Complete]) -> dict[int, Outcome]:
    """The same in this process: for tests that need no Spark."""
    return unpacked(answered(bench, EVALUATION_SECONDS, packed(sets)))
