"""The plugin gives the tests of a user their fixtures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TEST = """
pytest_plugins = ["postroom.testing.plugin"]

def test_a_worker(room, clock):
    room.queues.create("orders")
    seen = []
    room.worker("orders")(lambda message: seen.append(message.body))
    room.send("orders", "now")
    room.send("orders", "later", delay=60)
    assert room.drain().done == 1
    clock.turn(61)
    assert room.drain().done == 1
    assert seen == ["now", "later"]
"""


def test_a_users_test_runs(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["postroom.testing.plugin"]')
    (tmp_path / "test_it.py").write_text(TEST)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert "1 passed" in ran.stdout, ran.stdout + ran.stderr
