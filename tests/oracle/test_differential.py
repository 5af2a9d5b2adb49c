"""Set at a time must end as one at a time does: generated programs, run by the engine and by the oracle."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from .differential import differ
from .programs import Case, cases

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = settings(deadline=None, suppress_health_check=list(HealthCheck))


def check(case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        differ(case, Path(folder))


@settings(_SETTINGS, max_examples=150)
@given(cases())
def test_a_generated_program_ends_as_the_oracle_says(case: Case) -> None:
    check(case)


@pytest.mark.slow
@settings(_SETTINGS, max_examples=5_000)
@given(cases())
def test_thousands_of_generated_programs_end_as_the_oracle_says(case: Case) -> None:
    check(case)


@settings(_SETTINGS, max_examples=24, phases=[Phase.explicit, Phase.reuse, Phase.generate])  # shrink without Spark
@given(case=cases())
def test_a_generated_program_ends_on_spark_as_the_oracle_says(spark: SparkSession, case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        differ(case, Path(folder), spark=lambda: spark)
