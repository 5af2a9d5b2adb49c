"""Actions in workers: evaluates complete working sets in chunks.

Functions of procedures are users' code. They run in workers, of Spark or the engine's own, within limits, and are
pickled by value: a cluster does not need the users' modules.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from postroom.engine.spark.executor_store import Bay
from postroom.engine.spark.jobs import Job, OnSpark
from postroom.engine.spark.worker import Bounds
from postroom.engine.way import Way, answered
from postroom.limits import EVALUATION_SECONDS, SLOW_SECONDS
from postroom.model.body import json_text
from postroom.model.message import Stored
from postroom.stations.forms import functions
from postroom.stations.procedures.actions import Bench, Complete, Member, Outcome, read
from postroom.stations.procedures.function_process import confined

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def evaluate(
    way: Way,
    bench: Bench,
    sets: Sequence[Complete],
    bay: Bay | None = None,
    seconds: float = SLOW_SECONDS,
) -> dict[int, Outcome]:
    """The outcomes of working sets by number; one that cannot be evaluated gets an error.

    One whose functions take longer than ``seconds`` is slow, and has no outcome yet. With a bay, sets have keys.
    """
    way.carry(bench.functions.values())
    outcomes: dict[int, Outcome] = {}
    for some in _job(bench, seconds, bay).run(way, sets):
        outcomes.update(some)
    return outcomes


def keep_warm(spark: SparkSession) -> None:
    _job(Bench({}, {}, {}, {}), SLOW_SECONDS).keep_warm(OnSpark(spark))


def _job(bench: Bench, seconds: float, bay: Bay | None = None) -> Job[Complete, Outcome]:
    return Job(ProceduresTask(bench, seconds), packed, unpacked, bay)


@dataclass(frozen=True)
class ProceduresTask:
    """Evaluates sets in a worker, with a time limit for functions."""

    bench: Bench
    seconds: float

    @property
    def origin(self) -> object:
        """None, because functions and what they refer to may change."""
        return None

    def begin(self) -> None:
        functions.provide(self.bench.functions)

    def read(self, chunk: bytes) -> list[Any]:
        rows: list[Any] = json.loads(chunk)
        return rows

    def keys(self, work: list[Any]) -> tuple[set[int], set[int]]:
        keys = {int(member[-1]) for _, _, members, *_ in work for member in members}
        return keys, keys

    def complete(self, work: list[Any], messages: Mapping[int, Stored]) -> list[Any]:
        for _, _, members, *_ in work:
            for member in members:
                member[-1] = messages[int(member[-1])].body
        return work

    def answer(self, work: list[Any], bounds: Bounds | None, size: int) -> bytes:
        if bounds is not None and self.bench.functions:
            return packed(confined(self.bench, [_complete(*row) for row in work], self.seconds, EVALUATION_SECONDS))
        with nullcontext() if bounds is None else bounds.deadline(size):
            return packed([(row[0], self.bench.outcome(_complete(*row))) for row in work])


def _complete(order: int, plan: str, members: Any, keys: Any, now: int, failure: str | None) -> Complete:
    return Complete(order, plan, tuple([Member(*member) for member in members]), tuple(keys), now, failure)


def packed(work: object) -> bytes:
    return json_text(work).encode()


def unpacked(answer: bytes) -> dict[int, Outcome]:
    return dict(map(read, json.loads(answer)))


def evaluate_here(bench: Bench, sets: Sequence[Complete]) -> dict[int, Outcome]:
    """Evaluate in this process: for tests without Spark."""
    return unpacked(answered(ProceduresTask(bench, EVALUATION_SECONDS), packed(sets)))
