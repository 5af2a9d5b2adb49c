"""Jobs for workers: what is sent to them, how it is divided, and how answers come back.

There are two kinds of job. A job *of chunks* (rules, procedures, few events of arcs) packs pieces of work into chunks,
and runs a task on them in workers: those of Spark, where each chunk is one value of a frame, or the engine's own
process. A *planned* job (arcs, queries) runs a frame that Spark has planned once; new input is sent as properties of
the job.

Messages reach workers of Spark in two ways. By the driver, messages and answers go through Spark. By the store, only
keys and receipts do: with a *bay*, workers fetch messages in the store and leave their answers there
(``executor_store.py``).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from postroom.engine.spark.executor_store import Bay, Receipt, Ticket
from postroom.engine.spark.garbage_collection import rarely_collecting
from postroom.engine.spark.isolation import GUILT, Piece, isolated
from postroom.engine.spark.worker import Bounds
from postroom.engine.way import SPARK, Task, Way, answered
from postroom.errors import SparkUnavailable
from postroom.model.message import Stored

if TYPE_CHECKING:  # the engine's own workers need none of them, and they take their time to import
    import pyarrow
    from pyspark import TaskContext
    from pyspark.sql import DataFrame, SparkSession

#: What workers answer with, in one column: taken apart, each value would be converted four times on its way.
PACKED = "packed binary"
_CHUNKS = "number int, packed binary"
_CHUNK_MIN = 64  # fewer pieces are not worth a second task
_TOLD, _PART = "postroom.job", "postroom.job.{}"  # properties of a planned job

P = TypeVar("P", bound=Piece)
R = TypeVar("R")


def parallelism(spark: SparkSession) -> int:
    """How many tasks run at a time now; it changes with the executors of a cluster."""
    return spark.sparkContext.defaultParallelism


def evenly(pieces: Sequence[P], count: int) -> Sequence[Sequence[P]]:
    """Divide pieces into ``count`` chunks of about equal size."""
    size = max(1, -(-len(pieces) // count))
    return [pieces[start : start + size] for start in range(0, len(pieces), size)]


@dataclass(frozen=True)
class Job(Generic[P, R]):
    """Work on pieces of one kind, each with an outcome."""

    task: Task[Any]
    pack: Callable[[Sequence[P]], bytes]  # a chunk
    unpack: Callable[[bytes], Mapping[int, R]]  # the outcomes in an answer, by the numbers of their pieces
    bay: Bay | None = None
    split: Callable[[Sequence[P], int], Sequence[Sequence[P]]] = evenly

    def run(self, way: Way, pieces: Sequence[P]) -> Iterator[Mapping[int, R]]:
        """The outcomes, chunk by chunk. A piece that kills its worker gets an outcome of its own and affects no
        other."""

        def together(some: Sequence[P]) -> Iterator[Mapping[int, R]]:
            return self._run(way, self.split(some, max(1, min(way.parallelism, len(some) // _CHUNK_MIN))))

        return isolated(way, pieces, together)

    def keep_warm(self, way: Way) -> None:
        """Send every worker an empty chunk."""
        try:
            list(self._run(way, [[]] * way.parallelism))
        except Exception as error:
            way.reason(error)  # a worker that has died will be made anew; if Java has, that is told

    def _run(self, way: Way, chunks: Sequence[Sequence[P]]) -> Iterator[Mapping[int, R]]:
        return map(self.unpack, way.answers(self.task, [self.pack(chunk) for chunk in chunks], self.bay))


class OnSpark:
    """Evaluation by Spark."""

    name = SPARK

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    @property
    def parallelism(self) -> int:
        return parallelism(self.session)

    def answers(self, task: Task[Any], chunks: Sequence[bytes], bay: Bay | None = None) -> list[bytes]:
        from postroom.engine.spark.arrow import packed_values

        if bay is None:
            return packed_values(frame(self.session, task, chunks).toArrow())
        return answers_left(bay, lambda ticket: frame(self.session, task, chunks, ticket).toArrow())

    def carry(self, functions: Iterable[Callable[..., Any]]) -> None:
        from postroom.engine.spark.internals import send_by_value

        send_by_value(functions)

    def reason(self, error: Exception) -> str:
        from pyspark.errors import PySparkException

        from postroom.engine.spark.internals import Py4JError, has_ended

        # A dying Java shows in many ways: refused connections, empty answers, ends of files.
        if has_ended(self.session):
            raise SparkUnavailable(
                master="the engine", why="the session has ended", advice="start the engine again"
            ) from error
        if not isinstance(error, (Py4JError, PySparkException)):
            raise error
        return GUILT

    def broken(self, error: Exception) -> SparkUnavailable:
        from postroom.engine.spark.launch import one_line

        master = self.session.sparkContext.master
        return SparkUnavailable(master=master, why=one_line(error), advice="check the settings for Spark")


def frame(spark: SparkSession, task: Task[Any], chunks: Sequence[bytes], ticket: Ticket | None = None) -> DataFrame:
    """A frame that turns chunks into answers; with a ticket, into receipts."""
    import pyarrow

    numbers = pyarrow.array(range(len(chunks)), pyarrow.int32())
    rows = pyarrow.table({"number": numbers, "packed": pyarrow.array(chunks, pyarrow.binary())})
    work = partial(_worked_off, task, ticket, Bounds.beside(str(spark.sparkContext.master)))
    return spark.createDataFrame(rows, _CHUNKS).mapInArrow(work, PACKED)


def _worked_off(
    task: Task[Any], ticket: Ticket | None, bounds: Bounds, batches: Iterator[pyarrow.RecordBatch]
) -> Iterator[pyarrow.RecordBatch]:
    """In a worker: answer every chunk of a partition, within limits that the driver sets."""
    from postroom.engine.spark.arrow import packed_rows

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


def receipt(task: Task[Any], ticket: Ticket, number: int, chunk: bytes, bounds: Bounds | None = None) -> Receipt:
    """Read the messages of a chunk from the store, write the answer there, and return the receipt.

    Only evaluation counts for the time limit: a slow store is no fault of a message.
    """
    work = task.read(chunk)
    ours, needed = task.keys(work)

    def answer(messages: dict[int, Stored]) -> bytes:
        size = len(chunk) + sum([len(stored.body) for stored in messages.values()])
        return task.answer(task.complete(work, messages), bounds, size)

    return ticket.worked_off(number, needed, ours, answer)


def answers_left(bay: Bay, run: Callable[[Ticket], pyarrow.Table]) -> list[bytes]:
    """The answers that executors wrote to the store for a job; checks the receipts that the job returns."""
    from postroom.engine.spark.arrow import packed_values

    ticket = bay.ticket()
    return bay.answers(ticket, map(Receipt.unpacked, packed_values(run(ticket))))


# --- planned jobs ---


def tasks(spark: SparkSession, count: int) -> DataFrame:
    """The start of a planned frame: ``count`` tasks, each with its number."""
    return spark.range(0, count, 1, count)


def start_workers(spark: SparkSession) -> None:
    """Start Spark's Python workers before the time limit counts."""
    tasks(spark, parallelism(spark)).mapInArrow(_nothing, PACKED).toArrow()


def _nothing(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    for _ in batches:
        yield from ()


def run_planned(
    spark: SparkSession, frame: DataFrame, told: str, parts: Sequence[pyarrow.RecordBatch] = ()
) -> pyarrow.Table:
    """Run a frame with input for all tasks (``told``) and for single tasks (``parts``), sent as job properties.

    These are public: nothing with a password may be sent so.
    """
    from postroom.engine.spark.arrow import stream

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
    """Remove properties from later jobs of this thread."""
    for name in properties:
        spark.sparkContext.setLocalProperty(name, None)  # type: ignore[arg-type]  # None takes it away


def told() -> str:
    """In a worker: the input for all tasks of this job."""
    return _context().getLocalProperty(_TOLD) or ""


def part(number: int) -> Iterator[pyarrow.RecordBatch]:
    """In a worker: the input for one task of this job, if any."""
    packed = _context().getLocalProperty(_PART.format(number))
    if packed is not None:
        import pyarrow

        yield from pyarrow.ipc.open_stream(base64.b64decode(packed))


def task_number() -> int:
    """In a worker: the number of this task."""
    return _context().partitionId()


def _context() -> TaskContext:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return context


def progress(spark: SparkSession, group: str) -> tuple[int, int]:
    """How many tasks of a job group are done, and how many there are so far."""
    tracker = spark.sparkContext.statusTracker()
    done = total = 0
    for number in tracker.getJobIdsForGroup(group):
        job = tracker.getJobInfo(number)
        for stage in job.stageIds if job else ():
            status = tracker.getStageInfo(stage)
            if status is not None:
                done, total = done + status.numCompletedTasks, total + status.numTasks
    return done, total
