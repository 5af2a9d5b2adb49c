"""A function of a form, in a module that the process apart imports: it does what the letter's recipient asks for."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import postroom


def sign(process: int) -> Path:
    """There as soon as the function misbehaves for a process, in it or apart from it."""
    return Path(tempfile.gettempdir()) / f"postroom-seal-{process}"


@postroom.function
def seal(others: dict[str, object]) -> str:
    how = others["To"]
    if how in ("sleeps", "dies", "eats"):
        for process in (os.getpid(), os.getppid()):
            sign(process).touch()
    if how == "sleeps":
        time.sleep(1_000)
    if how == "dies":
        os._exit(3)
    return "x" * (1 << 40) if how == "eats" else "sealed"
