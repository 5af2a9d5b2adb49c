"""Calls the compilers: builds the C library and precompiled programs, and runs a program in place of this process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from postroom.errors import CompileFailed, CompilerMissing
from postroom.limits import COMPILE_SECONDS


def build_library(source: Path, target: Path) -> None:
    """Build ``libpostroom`` as an object file for this machine."""
    _run("cc", ["-O2", "-fPIC", "-c", "-o", str(target), str(source)], "libpostroom", source)


def build_program(text: Path, library: Path, target: Path, file: Path, options: Sequence[str] = ()) -> None:
    """Build a program from the precompiler's output; ``file`` is the source file of its author."""
    words = ["-x", "-free", *options, "-o", str(target), str(text), str(library)]
    _run("cobc", words, "a COBOL program", file)


def _run(program: str, words: Sequence[str], what: str, file: Path) -> None:
    executable = shutil.which(program)
    if executable is None:
        raise CompilerMissing(program=program, what=what)
    try:
        done = subprocess.run(
            [executable, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=COMPILE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise CompileFailed(program=program, file=file, output=f"not done within {COMPILE_SECONDS:g} s") from None
    if done.returncode:
        output = (done.stderr + done.stdout).decode(errors="replace").strip()
        raise CompileFailed(program=program, file=file, output=output)


def become(program: Path, words: Sequence[str], room: str | None) -> NoReturn:
    """Replace this process by a program. Its session uses this Python and this room."""
    environment = {**os.environ, "POSTROOM_PYTHON": sys.executable}
    if room is not None:
        environment["POSTROOM_URL"] = room
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(program, [str(program), *words], environment)  # noqa: S606 (what the user asked for)
