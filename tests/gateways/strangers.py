"""Programs that others wrote: from the system, installed where that may be done, else skipped by their names."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest


def installed(program: str, *packages: str) -> str:
    """Where a program is; what was asked for is skipped if it cannot be had."""
    found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        _install(packages)
        found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        pytest.skip(f"{program} is not installed: apt-get install {' '.join(packages)}")
    return found


def package(file: Path, *packages: str) -> None:
    """The same for a library, which is there if its file is."""
    if not file.exists():
        _install(packages)
    if not file.exists():
        pytest.skip(f"{file.name} is not installed: apt-get install {' '.join(packages)}")


def _install(packages: Sequence[str]) -> None:
    if os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        command = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages]
        subprocess.run(command, env=environment, capture_output=True, check=False)
