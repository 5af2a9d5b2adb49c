"""The benchmark of the server runs; its figures are for a machine at rest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_quick_run_says_all_its_figures() -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "serving.py"), "--quick"], capture_output=True, text=True, timeout=200
    )
    assert ran.returncode == 0, ran.stderr
    assert [line.split(":")[0].split(",")[0] for line in ran.stdout.splitlines()] == [
        "sends over HTTP",
        "bare application",
        "99th percentile at full load",
        "99th percentile at half that load",
        "from the answer of a send to its event",
        "plain durable inserts",
        "sends of 32 threads",
    ]
