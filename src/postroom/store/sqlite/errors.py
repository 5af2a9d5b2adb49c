"""SQLite's errors as ours."""

from __future__ import annotations

from pathlib import Path

import apsw

from postroom.errors import StoreBusy, StoreCorrupt, StoreFull, StoreUnavailable, UrlInvalid
from postroom.limits import BUSY_SECONDS


def translated(error: BaseException, file: Path | None = None) -> BaseException:
    """SQLite's error as ours, by its kind, never by its text."""
    if isinstance(error, OSError):
        return StoreUnavailable(why=f"{file}: {error.strerror or error}")
    if not isinstance(error, apsw.Error):
        return error
    why = str(error)
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        return StoreBusy(seconds=BUSY_SECONDS, why=why)
    if isinstance(error, apsw.FullError):
        return StoreFull(why=why)
    if isinstance(error, apsw.NotADBError) and file is not None:
        return UrlInvalid(url=str(file), why="the file is not a SQLite database, or its head is damaged")
    # Statements are constants: if one is refused, it is the schema that is not what it was.
    if isinstance(error, (apsw.NotADBError, apsw.CorruptError, apsw.SQLError)):
        return StoreCorrupt(why=why)
    return StoreUnavailable(why=f"{why} ({type(error).__name__})")
