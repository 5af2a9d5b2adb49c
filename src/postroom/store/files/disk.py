"""Writing files and folders durably."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def sync(place: Path) -> None:
    """Return when the content of a file, or the entries of a folder, are on disk."""
    handle = os.open(place, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_way(folder: Path) -> None:
    """Return when a folder and its parents are on disk. Parents that we cannot read were not made by us."""
    sync(folder)
    for parent in folder.resolve().parents:
        with contextlib.suppress(PermissionError):
            sync(parent)


def write_whole(file: Path, text: str) -> None:
    """Replace a file's content atomically and durably."""
    part = file.with_name(f".{file.name}.part")
    part.touch(0o600)
    part.write_text(text, encoding="utf-8")
    sync(part)
    part.replace(file)
    sync_way(file.parent)
