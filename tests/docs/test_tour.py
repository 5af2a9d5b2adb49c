"""The tour, as ``make demo`` runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNMEASURED = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}


def test_the_tour_runs_to_its_end() -> None:
    command = [sys.executable, str(ROOT / "examples" / "tour.py")]
    ran = subprocess.run(command, env=UNMEASURED, capture_output=True, text=True, timeout=900)
    assert ran.returncode == 0, ran.stdout[-1000:] + ran.stderr
    assert "The tour is over" in ran.stdout
    refused = subprocess.run([sys.executable, str(ROOT / "examples" / "tour.py"), "nowhere"], capture_output=True)
    assert refused.returncode == 1


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
