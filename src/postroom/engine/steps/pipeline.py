"""Claim, evaluate, commit: steps one after another. While one is committed, the next are claimed and evaluated.

Each capability says what to claim and how to evaluate and commit; order, threads, timing and ending are shared.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Generic, Protocol, TypeVar

from postroom.engine.spark.executor_store import Bay
from postroom.engine.spark.garbage_collection import rarely_collecting
from postroom.engine.steps.stage import Result, timed
from postroom.limits import PIPELINE_STEPS


class Claimed(Protocol):
    """The messages that a step has claimed."""

    @property
    def bay(self) -> Bay | None:
        """Where executors write their answers, if they do; closed when the step has ended."""


C = TypeVar("C", bound=Claimed)
E = TypeVar("E")


class Work(Protocol[C, E]):
    """The three parts of a step. ``evaluate`` runs in a thread of its own, beside claims and commits."""

    def claim(self, under_way: Sequence[C]) -> C | None:
        """Claim the next step after those under way; None if there is nothing to do, or nothing may follow them."""

    def evaluate(self, claimed: C) -> E:
        """Evaluate a step. Changes nothing."""

    def commit(self, claimed: C, evaluated: E) -> Result:
        """Apply the effects in one commit. Raises ``Stale`` if the room has changed since the claim."""


@dataclass
class _Step(Generic[C, E]):
    claimed: C
    seconds: dict[str, float] = field(default_factory=dict)
    coming: Future[E] | None = None
    awaited: float | None = None  # since when it is the oldest, and nothing but its evaluation is missing


class Pipeline(Generic[C, E]):
    """The steps of one kind of work; up to ``ahead`` are evaluated while one is committed."""

    def __init__(self, work: Work[C, E], ahead: int = PIPELINE_STEPS) -> None:
        self._work = work
        self._ahead = ahead
        self._evaluate = rarely_collecting()(work.evaluate)
        self._threads: ThreadPoolExecutor | None = None  # without steps ahead none is needed
        self._under_way: deque[_Step[C, E]] = deque()

    def run(self, patience: float | None = None, busy: Callable[[], Result] = Result) -> Generator[Result]:
        """The result of each step, until there is nothing to do.

        If a step is evaluated for longer than ``patience``, yields ``busy()``, so that the caller may do other work
        meanwhile. A step that did less than it had claimed is the last: later ones must wait for the rest.
        """
        try:
            while self._fill():
                seconds = patience
                while seconds is not None and not self._is_evaluated(seconds):
                    yield busy()
                    seconds = 0.0
                result = self._finished()
                yield result
                if result.messages < result.claimed:
                    return
        finally:
            self._end()

    @rarely_collecting()
    def _fill(self) -> bool:
        """Claim and start as many steps as allowed; False if there are none."""
        while len(self._under_way) <= self._ahead:
            if self._under_way:
                self._begin(self._under_way[-1])
            seconds: dict[str, float] = {}
            with timed(seconds, "claim"):
                claimed = self._work.claim([step.claimed for step in self._under_way])
            if claimed is None:
                break
            self._under_way.append(_Step(claimed, seconds))
            if self._threads is not None:
                self._begin(self._under_way[-1])
        return bool(self._under_way)

    def _begin(self, step: _Step[C, E]) -> Future[E]:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(max(1, self._ahead), "postroom-evaluate")
        if step.coming is None:
            step.coming = self._threads.submit(self._evaluate, step.claimed)
        return step.coming

    def _is_evaluated(self, seconds: float) -> bool:
        """Whether the oldest step can be committed; waits up to so many seconds."""
        step = self._under_way[0]
        step.awaited = step.awaited or perf_counter()
        return bool(wait([self._begin(step)], timeout=seconds).done)

    def _finished(self) -> Result:
        """Wait for the oldest step and commit it."""
        step = self._under_way[0]
        with timed(step.seconds, "evaluate", step.awaited):
            evaluated = self._evaluate(step.claimed) if step.coming is None else step.coming.result()
        with timed(step.seconds, "commit"), rarely_collecting():
            result = self._work.commit(step.claimed, evaluated)
        _give_back(self._under_way.popleft())
        return replace(result, seconds=step.seconds)

    def _end(self) -> None:
        """Cancel running steps; nothing uncommitted has happened."""
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
        for step in self._under_way:
            _give_back(step)


def _give_back(step: _Step[C, E]) -> None:
    if step.claimed.bay is not None:
        step.claimed.bay.close()
