"""Work for Spark: what goes to its workers, in which form and how many parts, and how answers come back.

There are two kinds of job. A job *of chunks* (rules, procedures) packs pieces of work into chunks, each one value of a
frame, and has a task answer them in workers. A *planned* job (arcs, queries) runs a frame that Spark has planned once;
all that is new in it travels as properties of the job.

There are two ways. By the driver, messages and answers go through Spark. By the store, only keys and receipts do: with
a *bay*, workers fetch messages in the store and leave their answers there (``exchange.py``).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import pyarrow

from postroom.engine.spark.arrow import packed_rows, packed_values, stream
from postroom.engine.spark.executor_store import Bay, Receipt, Ticket
from postroom.engine.spark.garbage_collection import rarely_collecting
from postroom.engine.spark.isolation import Piece, isolated, reason
from postroom.engine.spark.worker import Bounds
from postroom.model.message import Stored

if TYPE_CHECKING:
    from pyspark import TaskContext
    from pyspark.sql import DataFrame, SparkSession

#: What workers answer with, in one column: taken apart, each value would be converted four times on its way.
PACKED = "packed binary"
_CHUNKS = "number int, packed binary"
_CHUNK_MIN = 64  # fewer pieces are not worth a second task
_TOLD, _PART = "postroom.job", "postroom.job.{}"  # properties of a planned job

P = TypeVar("P", bound=Piece)
R = TypeVar("R")
W = TypeVar("W")


def parallelism(spark: SparkSession) -> int:
    """How many tasks run at a time; those of a cluster come and go."""
    return spark.sparkContext.defaultParallelism


class Task(Protocol[W]):
    """What a worker does with a chunk. It travels there as it is."""

    def begin(self) -> None:
        """Load what evaluation needs, before time counts."""

    def read(self, chunk: bytes) -> W:
        """The work in a chunk."""

    def keys(self, work: W) -> tuple[Collection[int], Collection[int]]:
        """Of work without bodies: the messages that it is about, and all that it needs."""

    def complete(self, work: W, messages: Mapping[int, Stored]) -> W:
        """The same with bodies."""

    def answer(self, work: W, bounds: Bounds | None, size: int) -> bytes:
        """What the work leads to, evaluated within bounds; it has so many bytes."""


def evenly(pieces: Sequence[P], count: int) -> Sequence[Sequence[P]]:
    """Pieces in so many chunks of about one size."""
    size = max(1, -(-len(pieces) // count))
    return [pieces[start : start + size] for start in range(0, len(pieces), size)]


@dataclass(frozen=True)
class Job(Generic[P, R]):
    """What is done with pieces of one kind, each of which has an outcome."""

    task: Task[Any]
    pack: Callable[[Sequence[P]], bytes]  # a chunk
    unpack: Callable[[bytes], Mapping[int, R]]  # the outcomes in an answer, by the numbers of their pieces
    bay: Bay | None = None
    split: Callable[[Sequence[P], int], Sequence[Sequence[P]]] = evenly

    def run(self, spark: SparkSession, pieces: Sequence[P]) -> Iterator[Mapping[int, R]]:
        """The outcomes, chunk by chunk. A piece that ends its worker has one, too, and costs no other."""

        def together(some: Sequence[P]) -> Iterator[Mapping[int, R]]:
            return self._run(spark, self.split(some, max(1, min(parallelism(spark), len(some) // _CHUNK_MIN))))

        return isolated(spark, pieces, together)

    def keep_warm(self, spark: SparkSession) -> None:
        """Have every worker work off nothing."""
        try:
            list(self._run(spark, [[]] * parallelism(spark)))
        except Exception as error:
            reason(spark, error)  # a worker that has died will be made anew; if Java has, that is told

    def _run(self, spark: SparkSession, chunks: Sequence[Sequence[P]]) -> Iterator[Mapping[int, R]]:
        packed = [self.pack(chunk) for chunk in chunks]
        if self.bay is None:
            answers = packed_values(self.frame(spark, packed).toArrow())
        else:
            answers = answers_left(self.bay, lambda ticket: self.frame(spark, packed, ticket).toArrow())
        return map(self.unpack, answers)

    def frame(self, spark: SparkSession, chunks: Sequence[bytes], ticket: Ticket | None = None) -> DataFrame:
        """Chunks in, answers out; with a ticket, receipts."""
        numbers = pyarrow.array(range(len(chunks)), pyarrow.int32())
        rows = pyarrow.table({"number": numbers, "packed": pyarrow.array(chunks, pyarrow.binary())})
        work = partial(_worked_off, self.task, ticket, Bounds.beside(str(spark.sparkContext.master)))
        return spark.createDataFrame(rows, _CHUNKS).mapInArrow(work, PACKED)


def _worked_off(
    task: Task[Any], ticket: Ticket | None, bounds: Bounds, batches: Iterator[pyarrow.RecordBatch]
) -> Iterator[pyarrow.RecordBatch]:
    """In a worker: the answers to every chunk of a partition, within bounds that the driver sets."""
    bounds.settle()
    task.begin()
    for batch in batches:
        numbers, chunks = (column.to_pylist() for column in batch.columns)
        with rarely_collecting():
            if ticket is None:
                answers = [answered(task, chunk, bounds) for chunk in chunks]
            else:
                pairs = zip(numbers, chunks, strict=True)
                answers = [receipt(task, ticket, number, chunk, bounds).packed() for number, chunk in pairs]
        yield packed_rows(answers)


def answered(task: Task[Any], chunk: bytes, bounds: Bounds | None = None) -> bytes:
    """The answer to a chunk that has all it needs."""
    return task.answer(task.read(chunk), bounds, len(chunk))


def receipt(task: Task[Any], ticket: Ticket, number: int, chunk: bytes, bounds: Bounds | None = None) -> Receipt:
    """The receipt for a chunk whose messages are fetched from the store, where the answer is left.

    Time counts for the evaluation alone: that a store is slow, or away, is no message's fault.
    """
    work = task.read(chunk)
    ours, needed = task.keys(work)

    def answer(messages: dict[int, Stored]) -> bytes:
        size = len(chunk) + sum([len(stored.body) for stored in messages.values()])
        return task.answer(task.complete(work, messages), bounds, size)

    return ticket.worked_off(number, needed, ours, answer)


def answers_left(bay: Bay, run: Callable[[Ticket], pyarrow.Table]) -> list[bytes]:
    """What executors left in the store for a job; the job itself brings receipts, which are checked."""
    ticket = bay.ticket()
    return bay.answers(ticket, map(Receipt.unpacked, packed_values(run(ticket))))


# --- planned jobs ---


def tasks(spark: SparkSession, count: int) -> DataFrame:
    """What a planned frame begins with: so many tasks, each with its number."""
    return spark.range(0, count, 1, count)


def run_planned(
    spark: SparkSession, frame: DataFrame, told: str, parts: Sequence[pyarrow.RecordBatch] = ()
) -> pyarrow.Table:
    """The outcome of a frame for what all its tasks are told, and what each of the first is given.

    Properties are for everyone to see: what holds a password is not told so.
    """
    given = {_TOLD: told} | {
        _PART.format(number): base64.b64encode(stream(part)).decode() for number, part in enumerate(parts)
    }
    try:
        for name, value in given.items():
            spark.sparkContext.setLocalProperty(name, value)
        return frame.toArrow()
    finally:
        forget(spark, given)  # the jobs of others need not carry them along


def forget(spark: SparkSession, properties: Iterable[str]) -> None:
    """Take properties away from the jobs that this thread starts from now on."""
    for name in properties:
        spark.sparkContext.setLocalProperty(name, None)  # type: ignore[arg-type]  # None takes it away


def told() -> str:
    """In a worker: what all tasks of this job are told."""
    return _context().getLocalProperty(_TOLD) or ""


def part(number: int) -> Iterator[pyarrow.RecordBatch]:
    """In a worker: what a task of this job is given, if it is."""
    packed = _context().getLocalProperty(_PART.format(number))
    if packed is not None:
        yield from pyarrow.ipc.open_stream(base64.b64decode(packed))


def task_number() -> int:
    """In a worker: which task this is."""
    return _context().partitionId()


def _context() -> TaskContext:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return context


def progress(spark: SparkSession, group: str) -> tuple[int, int]:
    """How many tasks of a group of jobs are done, and how many are known of."""
    tracker = spark.sparkContext.statusTracker()
    done = total = 0
    for number in tracker.getJobIdsForGroup(group):
        job = tracker.getJobInfo(number)
        for stage in job.stageIds if job else ():
            status = tracker.getStageInfo(stage)
            if status is not None:
                done, total = done + status.numCompletedTasks, total + status.numTasks
    return done, total
