"""The benchmark of STOMP runs, beside RabbitMQ where that is installed; its figures are for a machine at rest."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rabbit import rabbit

ROOT = Path(__file__).parents[2]
OURS = [
    "sends over STOMP with receipts",
    "processor time of the server",
    "bare server",
    "99th percentile",
]


def told(folder: Path, path: str) -> list[str]:
    command = [sys.executable, str(ROOT / "bench" / "stomping.py"), "--quick", str(folder)]
    environment = {**os.environ, "PATH": path}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=280, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_a_quick_run_says_its_figures_and_that_rabbitmq_is_not_there(tmp_path: Path) -> None:
    lines = told(tmp_path, str(tmp_path))
    assert [line.split(":")[0].split(",")[0] for line in lines[:-1]] == OURS
    assert lines[-1] == "RabbitMQ: skipped, it is not installed (apt-get install rabbitmq-server)"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_rabbitmq_is_measured_in_the_same_run(tmp_path: Path) -> None:
    if shutil.which("rabbitmq-server") is None:
        pytest.skip("RabbitMQ is not installed: apt-get install rabbitmq-server")
    lines = told(tmp_path, os.environ["PATH"])
    assert [line.split(":")[0].split(",")[0] for line in lines] == [*OURS, "RabbitMQ", "RabbitMQ"]
    assert "/s; ratio " in lines[-2]
    assert list(tmp_path.iterdir()) == []


def test_a_broker_that_does_not_start_is_told_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / "rabbitmq-server"
    odd.write_text("#!/bin/sh\necho no port is free\nexit 1\n")
    odd.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("rabbit._DEBIAN", tmp_path / "nowhere")
    with rabbit(tmp_path / "files") as broker:
        assert (bool(broker), broker.why) == (False, "does not start: no port is free")
