"""Spark's folder is there while its process lives and gone when it ends, also if it is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from postroom.engine.spark import scratch
from postroom.engine.spark.scratch import scratch_folder

MAKE = "from postroom.engine.spark.scratch import scratch_folder as s; import os, sys; print(s(), flush=True); "


def folders(tmp_path: Path) -> list[Path]:
    return [path for path in tmp_path.iterdir() if path.is_dir()]


def age(folder: Path) -> None:
    long_ago = time.time() - scratch._FRESH_SECONDS - 10
    os.utime(folder, (long_ago, long_ago))


def test_it_goes_with_its_process_and_not_with_a_forked_child(tmp_path: Path) -> None:
    code = (
        MAKE + "p = os.fork(); p and os.waitpid(p, 0); p and print(os.path.isdir(sys.argv[1]) or len(os.listdir('.')))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, "x"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.splitlines()[-1] == "1", "the child's end left the folder alone"
    assert folders(tmp_path) == []


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", MAKE + "os.kill(os.getpid(), 9)"], env=environment, capture_output=True)
    (left,) = folders(tmp_path)
    mine = scratch_folder()
    assert set(folders(tmp_path)) == {left, mine}, "it could be one that is being made"
    for folder in (left, mine):
        age(folder)
    other = tmp_path / "postroom-spark-no-lock-file"
    other.mkdir()
    age(other)
    assert set(folders(tmp_path)) >= {mine, other}
    newest = scratch_folder()
    assert set(folders(tmp_path)) == {mine, other, newest}, "the living keep theirs"
