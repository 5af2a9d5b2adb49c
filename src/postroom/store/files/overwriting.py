"""What a file that someone names may overwrite: never a database that is open, nor the files beside one.

A file that replaces the one of an open room takes the room from everyone who has it open, and what is in its log is
then copied into the new file.
"""

from __future__ import annotations

from pathlib import Path

from postroom.store.files.rights import BESIDE

_LOGS = ("-wal", "-journal")
_DATABASE = b"SQLite format 3\0"


def obstacle(file: Path) -> str:
    """Why a file cannot be replaced without damage to a room; empty if it can."""
    place = file.resolve()
    for suffix in BESIDE:
        room = place.with_name(place.name.removesuffix(suffix))
        if room != place and room.exists():
            return f"it belongs to the room {room.name}"
    for suffix in _LOGS:
        log = place.with_name(place.name + suffix)
        if log.exists():
            return f"a room is open there, or was and did not end: {log.name} is beside it"
    return ""


def is_database(file: Path) -> bool:
    """Whether a file is a SQLite database. Not for an open one: closing it would release locks of this process."""
    with file.open("rb") as opened:
        return opened.read(len(_DATABASE)) == _DATABASE
