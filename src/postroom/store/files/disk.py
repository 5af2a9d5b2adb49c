"""Files and folders that must be on disk before something else is said or done."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def sync(place: Path) -> None:
    """Return when what a file says, or which files a folder has, is on disk."""
    handle = os.open(place, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_way(folder: Path) -> None:
    """Return when a folder is on disk with all folders that lead to it: whoever made them may not have waited for it.

    A folder that we may not read is one that we have not made.
    """
    sync(folder)
    for parent in folder.resolve().parents:
        with contextlib.suppress(PermissionError):
            sync(parent)


def write_whole(file: Path, text: str) -> None:
    """Return when a file says a text, on disk with its name; a crash before leaves it as it was."""
    part = file.with_name(f".{file.name}.part")
    part.touch(0o600)
    part.write_text(text, encoding="utf-8")
    sync(part)
    part.replace(file)
    sync_way(file.parent)
