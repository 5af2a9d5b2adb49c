"""Programs that others wrote: from the system, installed where that may be done, else skipped by their names.

Parts of the tests run side by side, and Debian's installer serves one at a time: whoever comes second waits, and finds
what the first one has installed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

_APT = ("apt-get", "-qq", "-o", "DPkg::Lock::Timeout=600")
_SECONDS_MAX = 600


def installed(program: str, *packages: str, required: bool = False) -> str:
    """Where a program is. If it cannot be had, the test is skipped; with CI=true it fails if it is required."""
    _install(lambda: _found(program) is not None, packages)
    found = _found(program)
    if found is None:
        _missing(program, packages, required=required)
    return str(found)


def package(file: Path, *packages: str) -> None:
    """The same for a library, which is there if its file is."""
    _install(file.exists, packages)
    if not file.exists():
        _missing(file.name, packages)


def _found(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin")


def _install(there: Callable[[], bool], packages: Sequence[str]) -> None:
    if there() or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with (Path(tempfile.gettempdir()) / "postroom-tests-install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for words in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
            if not there():
                run = [*_APT, *words]
                subprocess.run(run, env=environment, check=False, capture_output=True, timeout=_SECONDS_MAX)


def _missing(what: str, packages: Sequence[str], *, required: bool = False) -> None:
    how = f"{what} is not installed, so nothing was tested with it: apt-get install {' '.join(packages)}"
    if required and os.environ.get("CI") == "true":
        pytest.fail(how)
    pytest.skip(how)
