"""The laboratory: the doctor gets what is out of range, and a request without a result waits."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

LAB = Path(__file__).parents[2] / "examples" / "lab"


def test_a_day_in_the_laboratory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(LAB / "lab.py"))["main"](tmp_path)
    screen = capsys.readouterr().out
    assert "| State: too high" in screen
    assert screen.count("| Patient: ") == 2
