"""Runs the tests in two processes at once, because one alone leaves a core idle.

``python tests/side_by_side.py -m "not slow"``: the words are for pytest. Each half has a Spark session, a PostgreSQL
server and folders of its own. ``--coverage`` measures which branches are taken, and makes Python half as fast.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[1]
#: One half: tests that mostly wait for programs they start. The other half is whatever is not named here.
FIRST = ("tests/docs", "tests/faults")
HALVES = (FIRST, tuple(f"--ignore={folder}" for folder in FIRST))


COVERAGE = "--coverage"


def started(half: tuple[str, ...], words: list[str], output: IO[bytes] | None) -> subprocess.Popen[bytes]:
    # Hundreds of short programs are started: none shall compile what another has compiled.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    measured = ["-m", "coverage", "run"] if COVERAGE in words else []
    command = [sys.executable, *measured, "-m", "pytest", *half, *(word for word in words if word != COVERAGE)]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)


def main(words: list[str]) -> int:
    """Run both to their end. What the second half says is seen at once, what the first says follows whole."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that neither goes on without us
    with tempfile.TemporaryFile() as said:
        runs = [started(half, words, output) for half, output in zip(HALVES, (said, None), strict=True)]
        try:
            codes = [run.wait() for run in reversed(runs)]
        finally:
            for run in runs:
                run.terminate()  # does nothing to one that has ended
            said.seek(0)
            sys.stdout.buffer.write(said.read())
            sys.stdout.flush()
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
