"""Actions on Spark: complete working sets go out in chunks, what they lead to comes back, by one ``mapInArrow``.

The functions that procedures name are someone else's code. It runs in Spark's workers, within bounds, and travels there
by value: a cluster need not have the modules of whoever runs the room.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from postroom.engine.isolation import isolated, reason
from postroom.engine.worker import Bounds
from postroom.stations import functions
from postroom.stations.procedures.actions import Bench, Complete, Made, Member, Outcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKED = "packed binary"
_CHUNK_MIN = 64  # fewer working sets are not worth a second task


def evaluate(spark: SparkSession, bench: Bench, sets: Sequence[Complete]) -> dict[int, Outcome]:
    """What working sets lead to, by their numbers; one that cannot be worked on has an error of its own."""
    found: dict[int, Outcome] = {}
    for some in isolated(spark, sets, partial(_together, spark, bench)):
        found.update(some)
    return found


def keep_warm(spark: SparkSession) -> None:
    try:
        list(_evaluated(spark, Bench({}, {}, {}, {}), [[]] * spark.sparkContext.defaultParallelism))
    except Exception as error:
        reason(spark, error)  # a worker that has died will be made anew; if Java has, that is told


def _together(spark: SparkSession, bench: Bench, sets: Sequence[Complete]) -> Iterator[Mapping[int, Outcome]]:
    count = max(1, min(spark.sparkContext.defaultParallelism, len(sets) // _CHUNK_MIN))
    size = -(-len(sets) // count)
    return _evaluated(spark, bench, [sets[start : start + size] for start in range(0, len(sets), size)])


def _evaluated(
    spark: SparkSession, bench: Bench, chunks: Sequence[Sequence[Complete]]
) -> Iterator[Mapping[int, Outcome]]:
    table = pa.table({"packed": pa.array([packed(chunk) for chunk in chunks], pa.binary())})
    bounds = Bounds.beside(str(spark.sparkContext.master))
    _travel(bench.functions.values())
    frame = spark.createDataFrame(table, _PACKED).mapInArrow(partial(work, bench, bounds), _PACKED)
    for answer in frame.toArrow().column(0).to_pylist():
        yield unpacked(answer)


def _travel(some: Any) -> None:
    """Have functions go to the workers as they are, and not as the name of a module that is only here."""
    from pyspark import cloudpickle

    for each in some:
        module = sys.modules.get(getattr(each, "__module__", None) or "")
        if module is not None and not module.__name__.startswith("postroom") and module.__name__ != "__main__":
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # Spark's own copy


def work(bench: Bench, bounds: Bounds, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker: the answers to every chunk of a partition."""
    bounds.settle()
    functions.provide(bench.functions)
    for batch in batches:
        answers = []
        for chunk in batch.column(0).to_pylist():
            with bounds.deadline(len(chunk)):
                answers.append(answered(bench, chunk))
        yield pa.RecordBatch.from_arrays([pa.array(answers, pa.binary())], names=["packed"])


def answered(bench: Bench, chunk: bytes) -> bytes:
    """The answer to one chunk."""
    found = []
    for order, plan, members, keys, now, failure in json.loads(chunk):
        complete = Complete(order, plan, tuple([Member(*each) for each in members]), tuple(keys), now, failure)
        found.append((order, bench.outcome(complete)))
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()


def packed(chunk: Sequence[Complete]) -> bytes:
    return json.dumps(chunk, ensure_ascii=False, separators=(",", ":")).encode()


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
    return unpacked(answered(bench, packed(sets)))
