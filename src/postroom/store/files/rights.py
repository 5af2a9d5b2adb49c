"""Permissions of the files of a room on SQLite: private to their owner, in a safe folder."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from postroom.errors import FolderUnsafe

PRIVATE = 0o600
#: What is made beside a room's file; the folder ``-wake`` besides.
BESIDE = ("-wal", "-shm", "-journal", "-reserve", "-doubt")


def make_private(file: Path) -> None:
    """Create an empty file for a new room that only its owner can read; SQLite gives its log the same permissions."""
    for folder in (file.parent, *file.parent.parents):
        why = unsafe(folder)
        if why:
            raise FolderUnsafe(folder=str(folder), why=why)
    with contextlib.suppress(FileExistsError):  # another process was first
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE))


def remove_files(file: Path) -> None:
    """Remove the files of a room that no process has open."""
    for suffix in (*BESIDE, ""):
        file.with_name(file.name + suffix).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # someone waits there, or nobody ever has
        file.with_name(file.name + "-wake").rmdir()


def unsafe(folder: Path) -> str:
    """Why others could replace files in a folder; empty if they cannot."""
    status = folder.stat()
    if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        return "everybody may replace files there"
    if os.geteuid() != 0 and status.st_uid not in (0, os.geteuid()):
        return f"it belongs to another user ({status.st_uid}), who may replace files there"
    return ""


def exposed(file: Path) -> Iterator[str]:
    """Problems with the permissions of an existing room, in words."""
    for name in (file, *(file.with_name(file.name + suffix) for suffix in BESIDE)):
        if name.exists():
            mode = stat.S_IMODE(name.stat().st_mode)
            if mode & 0o077:
                yield f"{name.name} has the rights {mode:04o}: others than its owner may open it"
    for folder in (file.parent, *file.parent.parents):
        why = unsafe(folder)
        if why:
            yield f"{folder}: {why}"
