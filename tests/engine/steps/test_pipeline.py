"""Claim, evaluate, commit: the order of steps, what is done beside what, and how it ends, for any kind of work."""

from __future__ import annotations

import gc
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from postroom.engine.steps.pipeline import Pipeline
from postroom.engine.steps.stage import Result
from postroom.store.kernel.batch import Stale


class Place:
    """A bay that tells whether it was given back."""

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


@dataclass
class Numbers:
    number: int
    bay: Any = None


@dataclass
class Counting:
    """Claims numbers, and doubles them."""

    left: list[int]
    said: list[str] = field(default_factory=list)
    bays: list[Place] = field(default_factory=list)
    most: int = 0  # that were under way at once
    gate: threading.Event | None = None  # evaluation waits for it
    short: int | None = None  # of this one less is committed than was claimed
    stale: int | None = None

    def claim(self, under_way: Sequence[Numbers]) -> Numbers | None:
        self.most = max(self.most, len(under_way))
        if not self.left:
            return None
        self.bays.append(Place())
        number = self.left.pop(0)
        self.said.append(f"claim {number}")
        return Numbers(number, self.bays[-1])

    def evaluate(self, claimed: Numbers) -> int:
        if self.gate is not None:
            assert self.gate.wait(20)
        if claimed.number < 0:
            raise ValueError(claimed.number)
        return claimed.number * 2

    def commit(self, claimed: Numbers, evaluated: int) -> Result:
        if claimed.number == self.stale:
            raise Stale
        self.said.append(f"commit {claimed.number} {evaluated}")
        return Result(messages=0 if claimed.number == self.short else 1, claimed=1)


def test_steps_are_committed_in_the_order_of_their_claims_and_others_are_claimed_meanwhile() -> None:
    work = Counting([1, 2, 3, 4])
    results = list(Pipeline(work, ahead=2).run())
    assert [result.messages for result in results] == [1, 1, 1, 1]
    assert all(set(result.seconds) == {"claim", "evaluate", "commit"} for result in results)
    assert [word for word in work.said if word.startswith("commit")] == [f"commit {n} {2 * n}" for n in (1, 2, 3, 4)]
    assert work.said[:4] == ["claim 1", "claim 2", "claim 3", "commit 1 2"]
    assert work.most == 2
    assert all(bay.closed for bay in work.bays)


def test_with_none_ahead_a_step_is_claimed_when_the_last_is_committed_and_needs_no_thread() -> None:
    work = Counting([1, 2])
    before = threading.active_count()
    for _ in Pipeline(work, ahead=0).run():
        assert threading.active_count() == before
    assert work.said == ["claim 1", "commit 1 2", "claim 2", "commit 2 4"]


def test_nothing_to_do_is_no_step() -> None:
    assert list(Pipeline(Counting([])).run()) == []


def test_a_step_that_takes_long_says_so_until_it_is_evaluated() -> None:
    work = Counting([1], gate=threading.Event())
    steps = Pipeline(work).run(0.01, lambda: Result(busy=frozenset({"q"})))
    assert [next(steps).busy, next(steps).busy] == [{"q"}, {"q"}]
    assert work.gate is not None
    work.gate.set()
    assert [result.messages for result in steps if not result.busy] == [1]


@pytest.mark.parametrize("patience", [None, 0.01, 60.0])
def test_the_time_of_evaluating_is_told_however_it_was_waited_for(patience: float | None) -> None:
    work = Counting([1], gate=threading.Event())
    assert work.gate is not None
    threading.Timer(0.3, work.gate.set).start()
    (result,) = [each for each in Pipeline(work).run(patience, lambda: Result(busy=frozenset({"q"}))) if not each.busy]
    assert result.seconds["evaluate"] > 0.2


def test_a_step_that_did_less_than_it_claimed_is_the_last() -> None:
    work = Counting([1, 2, 3], short=1)
    assert len(list(Pipeline(work).run())) == 1
    assert all(bay.closed for bay in work.bays), "those behind it are given up"


@pytest.mark.parametrize("ending", ["stale", "failing", "closed"])
def test_what_was_not_committed_has_not_happened_and_nothing_is_kept(ending: str) -> None:
    before = threading.active_count()
    work = Counting([1, -2 if ending == "failing" else 2, 3], stale=2 if ending == "stale" else None)
    steps = Pipeline(work).run()
    next(steps)
    if ending == "closed":
        steps.close()
    else:
        with pytest.raises(Stale if ending == "stale" else ValueError):
            next(steps)
    assert [word for word in work.said if word.startswith("commit")] == ["commit 1 2"]
    assert all(bay.closed for bay in work.bays)
    assert threading.active_count() == before


def test_whoever_gets_a_result_collects_garbage_as_usual() -> None:
    usual = gc.get_threshold()
    for _ in Pipeline(Counting([1, 2, 3])).run():
        pass
    steps = Pipeline(Counting([1]), ahead=0).run()
    next(steps)
    assert gc.get_threshold() == usual
    assert gc.isenabled()
    steps.close()
