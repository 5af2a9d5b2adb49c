"""Rules in a worker of Spark: the chunks of a job are evaluated within bounds."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from postroom.engine.spark.worker import Bounds
from postroom.model.message import Stored
from postroom.rules.compilation.plan import Plan
from postroom.rules.evaluation.chunks import Chunk, answer_of, chunk_of
from postroom.rules.evaluation.evaluate import evaluate_chunk
from postroom.rules.evaluation.xquery import saxon


@dataclass(frozen=True)
class RulesTask:
    """Evaluates chunks by the rules of a plan."""

    plan: Plan

    def begin(self) -> None:
        saxon()

    def read(self, chunk: bytes) -> Chunk:
        return chunk_of(chunk)

    def keys(self, work: Chunk) -> tuple[list[int], set[int]]:
        ours = [arrival.key for arrival in work.arrivals]
        return ours, {*ours, *_members(work)}

    def complete(self, work: Chunk, messages: Mapping[int, Stored]) -> Chunk:
        """A damaged member of a set is not there; a damaged arrival was found before."""
        arrivals = [arrival._replace(body=messages[arrival.key].body) for arrival in work.arrivals]
        sound = {key for key in _members(work) if messages[key].sound}
        sets = {
            granule: [member._replace(body=messages[member.key].body) for member in members if member.key in sound]
            for granule, members in work.base.items()
        }
        return Chunk(arrivals, sets, work.given)

    def answer(self, work: Chunk, bounds: Bounds | None, size: int) -> bytes:
        with nullcontext() if bounds is None else _bounded(bounds, size):
            effects, unsettled = evaluate_chunk(self.plan, *work)
            return answer_of([arrival.order for arrival in work.arrivals], effects, unsettled)


def _members(work: Chunk) -> set[int]:
    return {member.key for members in work.base.values() for member in members}


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
