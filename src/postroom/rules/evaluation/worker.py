"""Rules in a worker: evaluates the chunks of a job within limits."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from postroom.engine.spark.worker import Bounds
from postroom.model.message import Stored
from postroom.rules.compilation.plan import Plan
from postroom.rules.evaluation import small_chunks
from postroom.rules.evaluation.evaluate import evaluate_chunk
from postroom.rules.evaluation.grouping import Chunk
from postroom.rules.evaluation.xquery import saxon


@dataclass(frozen=True)
class RulesTask:
    """Evaluates chunks by the rules of a plan. ``small`` ones are answered in their own form."""

    plan: Plan
    small: bool = False

    @property
    def origin(self) -> object:
        return self.plan

    def begin(self) -> None:
        saxon()

    def read(self, chunk: bytes) -> Chunk:
        if self.small:
            return small_chunks.chunk_of(chunk)
        from postroom.rules.evaluation.chunks import chunk_of  # pyarrow takes half a second: only when it is needed

        return chunk_of(chunk)

    def keys(self, work: Chunk) -> tuple[list[int], set[int]]:
        ours = [arrival.key for arrival in work.arrivals]
        return ours, {*ours, *_members(work)}

    def complete(self, work: Chunk, messages: Mapping[int, Stored]) -> Chunk:
        """The chunk with bodies. Damaged members of sets are left out; damaged arrivals were found before."""
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
            orders = [arrival.order for arrival in work.arrivals]
            if self.small:
                return small_chunks.answer_of(orders, effects, unsettled)
            from postroom.rules.evaluation.chunks import answer_of

            return answer_of(orders, effects, unsettled)


def warm_up() -> None:
    """Load Saxon, which takes longer than the first message."""
    saxon()


def _members(work: Chunk) -> set[int]:
    return {member.key for members in work.base.values() for member in members}


@contextmanager
def _bounded(bounds: Bounds, size: int) -> Iterator[None]:
    with _hushed(), bounds.deadline(size):
        yield


@contextmanager
def _hushed() -> Iterator[None]:
    """Suppress Saxon's stack traces at a stack or heap overflow; the error message has what matters."""
    before, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(nowhere)
