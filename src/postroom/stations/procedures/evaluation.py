"""Actions in workers: complete working sets go out in chunks, and what they lead to comes back.

The functions that procedures name are someone else's code. It runs in workers, of Spark or of the engine's own, within
bounds, and travels there by value: a cluster need not have the modules of whoever runs the room.
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
    """What working sets lead to, by their numbers; one that cannot be worked on has an error of its own.

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
    """Works sets out in a worker; a function may take so many seconds."""

    bench: Bench
    seconds: float

    @property
    def origin(self) -> object:
        """Functions may change, with all that they refer to."""
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
    """The same in this process: for tests that need no Spark."""
    return unpacked(answered(ProceduresTask(bench, EVALUATION_SECONDS), packed(sets)))
