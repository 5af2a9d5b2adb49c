"""The benchmark runs; its figures are for machines that are at rest, never for a test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_benchmark_runs_and_writes_its_figures(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    ran = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "queues.py"), "--quick", "--json", str(figures)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=240,
    )
    assert ran.returncode == 0, ran.stderr
    assert "plain sqlite3" in ran.stdout
    assert "synchronous 2 (FULL)" in ran.stdout
    assert json.loads(figures.read_text())


@pytest.mark.slow
def test_the_benchmark_of_flows_runs_and_writes_its_figures(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    ran = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "flows.py"), "--quick", "--master", "local[2]", "--json", str(figures)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    assert "PySpark by hand" in ran.stdout
    assert len(json.loads(figures.read_text())["lines"]) == 2


@pytest.mark.slow
def test_the_benchmark_of_spheres_runs_and_writes_its_figures(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    ran = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "spheres.py"), "--quick", "--json", str(figures)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    assert "dbos: synchronous 2 (FULL), journal_mode delete" in ran.stdout
    assert len(json.loads(figures.read_text())["lines"]) == 8


@pytest.mark.slow
def test_the_benchmark_of_the_cluster_runs_and_writes_its_figures(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    ran = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "cluster.py"), "--quick", "--no-cluster", "--json", str(figures)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    assert list(json.loads(figures.read_text())["figures"]) == ["100 bytes on local[2]", "20 kB on local[2]"]
