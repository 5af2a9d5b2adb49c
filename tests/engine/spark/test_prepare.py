"""The file of Spark's classes is made once, for sessions that come later."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from postroom.engine.spark.classes import OPTIONS, place
from postroom.engine.spark.prepare import prepare
from postroom.errors import ArgumentInvalid, SparkUnavailable

#: Starts a session, and prints the files of classes that its Java has opened.
MAPPED = """
import psutil
from postroom.engine.spark import internals
from postroom.engine.spark.session import session
session("local[2]")
maps = psutil.Process(internals.java().pid).memory_maps()
print(*{each.path for each in maps if each.path.endswith(".jsa")}, sep="\\n")
"""


def test_one_that_is_there_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    place().parent.mkdir()
    place().write_text("made before")
    assert prepare() == (place(), False)
    assert place().read_text() == "made before"


@pytest.mark.parametrize("file", ["/proc/none/x.jsa", "/proc/self/x.jsa", "/dev"])
def test_a_file_that_cannot_be_written_is_refused_at_once(file: str) -> None:
    with pytest.raises(ArgumentInvalid):
        prepare(Path(file), again=True)


def test_a_process_with_a_session_cannot_make_it(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SparkUnavailable, match="already has a session"):
        prepare(tmp_path / "x.jsa")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_file_that_was_made_is_opened_by_java(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != OPTIONS}
    environment["XDG_CACHE_HOME"] = str(tmp_path)

    def mapped() -> list[str]:
        ran = subprocess.run(
            [sys.executable, "-c", MAPPED], env=environment, capture_output=True, text=True, check=True
        )
        return [line for line in ran.stdout.splitlines() if str(tmp_path) in line]

    assert not mapped()
    ran = subprocess.run(
        [sys.executable, "-m", "postroom.interfaces.cli.main", "--json", "prepare"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert '"size": ' in ran.stdout, ran.stderr
    (file,) = (tmp_path / "postroom").glob("spark-????????????????.jsa")
    assert file.stat().st_mode & 0o777 == 0o600
    assert str(file) in mapped()
