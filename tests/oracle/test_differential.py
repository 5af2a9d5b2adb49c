"""Set at a time must end as one at a time does: generated programs, run by the engine and by the oracle."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import integers

from postroom.engine.evaluators import Evaluators
from postroom.engine.way import Way

from .differential import differ
from .programs import Case, cases

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = settings(deadline=None, suppress_health_check=list(HealthCheck))


def check(case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        differ(case, Path(folder))


@settings(_SETTINGS, max_examples=20)
@given(cases())
def test_a_generated_program_ends_as_the_oracle_says(case: Case) -> None:
    check(case)


@pytest.mark.slow
@settings(_SETTINGS, max_examples=5_000)
@given(cases())
def test_thousands_of_generated_programs_end_as_the_oracle_says(case: Case) -> None:
    check(case)


class Mixed(Evaluators):
    """Goes one way or the other at random, whatever a step weighs."""

    def __init__(self, spark: SparkSession, random: Random) -> None:
        super().__init__(lambda: spark)
        self._random = random

    def way(self, weight: int) -> Way:
        return super().way(0) if self._random.random() < 0.5 else self.on_spark()


def check_on(case: Case, evaluators: Evaluators) -> None:
    with tempfile.TemporaryDirectory() as folder:
        differ(case, Path(folder), evaluators=evaluators)


#: Programs shrink where neither Spark nor a process is needed.
_WAYS = settings(_SETTINGS, max_examples=6, phases=[Phase.explicit, Phase.reuse, Phase.generate])


@_WAYS
@given(case=cases())
def test_a_generated_program_ends_on_spark_as_the_oracle_says(spark: SparkSession, case: Case) -> None:
    check_on(case, Evaluators(lambda: spark, always=True))


def no_spark() -> SparkSession:
    raise AssertionError("few messages need none")


@settings(_WAYS, max_examples=12)
@given(case=cases())
def test_a_generated_program_ends_in_a_worker_as_the_oracle_says(case: Case) -> None:
    check_on(case, Evaluators(no_spark))


@_WAYS
@given(case=cases(), seed=integers(0, 1_000))
def test_a_generated_program_ends_on_both_ways_mixed_as_the_oracle_says(
    spark: SparkSession, case: Case, seed: int
) -> None:
    check_on(case, Mixed(spark, Random(seed)))


@pytest.mark.slow
@settings(_WAYS, max_examples=1_000)
@given(case=cases(), seed=integers(0, 1_000))
def test_many_generated_programs_end_on_both_ways_mixed_as_the_oracle_says(
    spark: SparkSession, case: Case, seed: int
) -> None:
    check_on(case, Mixed(spark, Random(seed)))
