"""Who ends a job is found by taking it apart; whoever does not is not blamed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self, cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from postroom.engine.bounded_process import Ended
from postroom.engine.spark.isolation import isolated
from postroom.engine.spark.jobs import OnSpark
from postroom.engine.way import Way
from postroom.engine.worker_process import InWorker
from postroom.errors import SparkUnavailable, WorkerUnavailable

NO_SPARK = OnSpark(cast(SparkSession, None))
#: Both ways, each with what it raises when a worker has died.
WAYS: list[tuple[Way, Exception]] = [(NO_SPARK, PySparkException("a worker has died")), (InWorker(), Ended(True))]


class Piece(NamedTuple):
    number: int
    failure: str | None = None

    def failing(self, why: str) -> Self:
        return self._replace(failure=why)


class Jobs:
    """Evaluates pieces; a job with one of the bad ones ends."""

    def __init__(self, bad: set[int], times: int = 1_000, *, hopeless: bool = False, way: int = 0) -> None:
        self.ran: list[list[int]] = []
        self.way, self._end = WAYS[way]
        self._bad = bad
        self._times = times
        self._hopeless = hopeless

    def __call__(self, pieces: Sequence[Piece]) -> Iterator[Mapping[int, str]]:
        self.ran.append([piece.number for piece in pieces])
        guilty = [each for each in pieces if each.number in self._bad and (each.failure is None or self._hopeless)]
        if guilty and self._times:
            self._times -= 1
            raise self._end
        yield {piece.number: piece.failure or "done" for piece in pieces}


@pytest.fixture(autouse=True)
def _a_session_that_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom.engine.spark.internals.has_ended", lambda session: False)


def outcome(jobs: Jobs, count: int) -> dict[int, str]:
    groups = isolated(jobs.way, [Piece(number) for number in range(count)], jobs)
    return {number: said for group in groups for number, said in group.items()}


@pytest.mark.parametrize("way", [0, 1])
def test_each_guilty_piece_is_found_and_all_others_are_evaluated(way: int) -> None:
    jobs = Jobs({3, 41}, way=way)
    found = outcome(jobs, 100)
    assert {number for number, said in found.items() if said != "done"} == {3, 41}
    assert "killed its worker" in found[3]
    assert len(found) == 100
    assert len(jobs.ran) < 60


def test_whoever_ends_a_job_once_is_not_guilty() -> None:
    assert set(outcome(Jobs({0}, times=2), 1).values()) != {"done"}, "alone, and twice"
    assert set(outcome(Jobs({0}, times=1), 1).values()) == {"done"}


def test_nothing_is_no_job() -> None:
    jobs = Jobs(set())
    assert outcome(jobs, 0) == {}
    assert jobs.ran == []


def test_if_the_error_message_ends_its_job_too_it_is_not_the_message(spark: SparkSession) -> None:
    with pytest.raises(SparkUnavailable, match="check the settings"):
        list(isolated(OnSpark(spark), [Piece(0)], Jobs({0}, hopeless=True)))
    with pytest.raises(WorkerUnavailable, match="ends whatever it evaluates"):
        list(isolated(InWorker(), [Piece(0)], Jobs({0}, hopeless=True, way=1)))


def test_what_is_no_failure_of_a_job_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Any) -> Iterator[Mapping[int, str]]:
        raise KeyError("a test")

    with pytest.raises(KeyError):
        list(isolated(NO_SPARK, [Piece(0), Piece(1)], broken))
    with pytest.raises(KeyError):
        list(isolated(InWorker(), [Piece(0), Piece(1)], broken))
    monkeypatch.setattr("postroom.engine.spark.internals.has_ended", lambda session: True)
    with pytest.raises(SparkUnavailable, match="the session has ended"):
        NO_SPARK.reason(PySparkException("a test"))
