"""The tour, as ``make demo`` runs it; the commands of most chapters are forks (``preloaded.py``)."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.preloaded import preloaded

ROOT = Path(__file__).parents[2]
TOUR = str(ROOT / "examples" / "tour.py")
UNMEASURED = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
#: A first chapter, and programs in COBOL, which hand over other open files than a shell does.
AS_INSTALLED = ("queues", "cobol")
#: Runs the tour with another program called ``postroom``: it looks for that beside Python.
ELSEWHERE = """
import runpy, sys
sys.executable, *sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(scope="module")
def quick_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A Python beside which there is the program without its imports."""
    with preloaded(tmp_path_factory.mktemp("program")) as folder:
        python = folder / "python"
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
        yield python


def toured(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], env=UNMEASURED, capture_output=True, text=True, timeout=900)


def test_the_chapters_of_the_tour_run_to_their_ends(quick_python: Path) -> None:
    chapters = [name for name in runpy.run_path(TOUR)["CHAPTERS"] if name not in AS_INSTALLED]
    assert len(chapters) > 6
    ran = toured("-c", ELSEWHERE, str(quick_python), TOUR, *chapters)
    assert ran.returncode == 0, ran.stdout[-1000:] + ran.stderr
    assert "The tour is over" in ran.stdout


def test_a_chapter_runs_with_the_program_as_it_is_installed() -> None:
    ran = toured(TOUR, *AS_INSTALLED)
    assert ran.returncode == 0, ran.stdout[-1000:] + ran.stderr
    assert "The tour is over" in ran.stdout
    assert toured(TOUR, "nowhere").returncode == 1


@pytest.mark.slow
def test_the_tour_runs_to_its_end_with_the_program_as_it_is_installed() -> None:
    ran = toured(TOUR)
    assert ran.returncode == 0, ran.stdout[-1000:] + ran.stderr
    assert "The tour is over" in ran.stdout


@pytest.mark.parametrize("name", ["orders", "claims", "trading", "cobol", "lab"])
def test_an_example_that_people_look_for_has_a_picture_and_names_its_files(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import diagrams  # type: ignore[import-not-found]  # a file of the docs

    page = (ROOT / "examples" / name / "README.md").read_text()
    (picture,) = re.findall(r"^```mermaid\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert "<svg" in diagrams.drawn(picture), "the site can draw it"
    named = set(re.findall(r"`([\w-]+\.\w+)`", page.partition("|---|---|")[2].partition("\n\n")[0]))
    there = {file.name for file in (ROOT / "examples" / name).iterdir() if file.is_file() and file.name != "README.md"}
    assert named == there
    assert f"({name}/README.md)" in (ROOT / "examples" / "README.md").read_text()
