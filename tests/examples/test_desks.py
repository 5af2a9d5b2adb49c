"""Procedures as acceptance: holiday, purchase desk, conference desk, on both stores, on Spark and on a cluster."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from tests.examples import desks
from tests.examples.desks import DESKS, EXAMPLES, Office

from postroom.errors import FunctionUnknown
from postroom.stations.forms import functions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def _functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTROOM_FUNCTIONS", "deciding")
    monkeypatch.syspath_prepend(EXAMPLES / "conference")


@pytest.mark.parametrize("desk", DESKS, ids=lambda desk: desk.__name__)
def test_a_desk_does_its_work(url: str, desk: Callable[[Office], None]) -> None:
    office = Office(url)
    with office.room:
        desk(office)


def test_the_desks_do_their_work_on_spark(url: str, spark: SparkSession) -> None:
    office = Office(url, "local[2]")
    with office.room:
        for desk in DESKS:
            desk(office)


@pytest.mark.slow
def test_the_desks_do_their_work_on_a_cluster(sqlite_url: str) -> None:
    """Its workers know nothing of the folder that the function is in."""
    ran = subprocess.run(
        [sys.executable, desks.__file__, sqlite_url, "local-cluster[2,1,1024]"],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["holiday", "purchase", "conference"]


def test_a_desk_is_not_loaded_without_its_function(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POSTROOM_FUNCTIONS")
    monkeypatch.setattr(functions, "_registered", {})
    with pytest.raises(FunctionUnknown, match=r"conference\.form:\d+:\d+: no function is registered as decision"):
        Office(sqlite_url)


def test_the_holiday_procedure_is_that_of_the_text() -> None:
    text = (EXAMPLES / "office" / "holiday.form").read_text()
    assert text.partition("\n")[2] == (
        "procedure holiday at John\n"
        "  precondition pre_holiday : MEETING ANNOUNCEMENT\n"
        "    To: John\n"
        "  action act_holiday on pre_holiday\n"
        '    Response: "Sorry, on holiday till Aug. 30, see Oscar"\n'
        "  destination cp0_holiday on pre_holiday copy 0 ship ?pre_holiday.From\n"
        "  destination cp1_holiday on pre_holiday copy 1 dossier missed\n"
    )
