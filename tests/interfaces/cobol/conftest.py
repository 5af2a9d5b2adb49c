"""A real compiler, and rooms that real COBOL programs work on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.programs import installed

from postroom.interfaces.cobol import building
from postroom.interfaces.cobol.precompiler import Options

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "cobol"
#: A running program, which is given lines.
Started = subprocess.Popen[str]


@pytest.fixture(scope="session")
def cobc() -> str:
    """The compiler; where it may be, it is installed, and with CI=true nothing is skipped."""
    return installed("cobc", "gnucobol", required=True)


@pytest.fixture(scope="session")
def program(cobc: str) -> Callable[[Path], Path]:
    """Compile a program, once for all tests."""
    made: dict[Path, Path] = {}

    def program(file: Path, options: Options = Options()) -> Path:  # noqa: B008
        if file not in made:
            made[file] = building.built(file, options)
        return made[file]

    return program


def start(program: Path, url: str, folder: Path, *words: str) -> Started:
    """Start a program on a room, with pipes."""
    environment = {**os.environ, "POSTROOM_PYTHON": sys.executable, "POSTROOM_URL": url}
    started = subprocess.Popen(
        [str(program), *words],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    _running.append(started)
    return started


_running: list[Started] = []


@pytest.fixture(autouse=True)
def _ended() -> Iterator[None]:
    """No program and no pipe is left over."""
    yield
    for started in _running:
        with started:
            started.kill()
    _running.clear()


def say(started: Started, line: str) -> None:
    assert started.stdin is not None
    started.stdin.write(f"{line}\n")
    started.stdin.flush()


def hear(started: Started) -> str:
    assert started.stdout is not None
    return started.stdout.readline().rstrip()
