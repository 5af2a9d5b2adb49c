"""The page about many machines: what it tells to type can be typed, and what it says of limits is so."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from zipfile import ZipFile

import pyspark
from typer.testing import CliRunner

from postroom import limits
from postroom.engine.spark.executor_store import SETTING
from postroom.interfaces.cli.main import program

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide" / "scaling.md").read_text()
SCRIPTS = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_what_is_to_be_typed_is_a_script_with_commands_that_exist() -> None:
    assert SCRIPTS
    for script in SCRIPTS:
        checked = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
        assert checked.returncode == 0, checked.stderr
    lines = [line for script in SCRIPTS for line in script.replace("\\\n", "").splitlines()]
    words = [shlex.split(line, comments=True) for line in lines]
    engines = [line for line in words if line[:2] == ["postroom", "run"]]
    assert engines
    shown = CliRunner().invoke(program(), ["run", "--help"], env={"COLUMNS": "200"}).output
    for line in engines:
        assert all(word in shown for word in line if word.startswith("--")), line


def test_the_classes_that_are_started_are_in_the_package() -> None:
    names = set(re.findall(r"org\.apache\.spark\.deploy\.\w+\.\w+", "".join(SCRIPTS)))
    assert len(names) == 2
    (core,) = (Path(pyspark.__path__[0]) / "jars").glob("spark-core_*.jar")
    with ZipFile(core) as classes:
        assert {f"{name.replace('.', '/')}.class" for name in names} <= set(classes.namelist())


def test_figures_and_settings_on_the_page_are_those_of_the_code() -> None:
    assert set(re.findall(r"spark\.postroom\.\w+", PAGE)) == {SETTING}
    assert f"{limits.ENGINE_LEASE_SECONDS:.0f} seconds after the first one died" in PAGE
    assert limits.PIPELINE_STEPS == 2, "up to three steps at once"
    assert f"{limits.STEP_MESSAGES_MAX:,} messages or {limits.STEP_BYTES_MAX // 2**20} MiB" in PAGE
    assert f"one body has at most {limits.BODY_BYTES_MAX // 2**20} MiB" in PAGE
    assert f"at most {limits.MESSAGE_OUTPUT_BYTES_MAX // 2**20} MiB; an executor" in PAGE
    assert f"({limits.WORKER_BYTES_MAX // 2**30} GiB for a Python worker)" in PAGE
