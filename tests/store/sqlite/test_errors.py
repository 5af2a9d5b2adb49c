"""SQLite's errors as ours, by their kind."""

from __future__ import annotations

import errno
from pathlib import Path

import apsw
import pytest

from postroom.errors import PostroomError, StoreBusy, StoreCorrupt, StoreFull, StoreUnavailable, UrlInvalid
from postroom.store.sqlite.errors import translated


@pytest.mark.parametrize(
    ("error", "file", "ours"),
    [
        (apsw.BusyError("x"), None, StoreBusy),
        (apsw.LockedError("x"), None, StoreBusy),
        (apsw.FullError("x"), None, StoreFull),
        (apsw.NotADBError("x"), Path("a"), UrlInvalid),
        (apsw.NotADBError("x"), None, StoreCorrupt),
        (apsw.CorruptError("x"), None, StoreCorrupt),
        (apsw.SQLError("x"), None, StoreCorrupt),
        (apsw.IOError("x"), None, StoreUnavailable),
        (OSError(errno.EACCES, "denied"), Path("a"), StoreUnavailable),
    ],
)
def test_each_kind_has_its_error(error: Exception, file: Path | None, ours: type[PostroomError]) -> None:
    assert type(translated(error, file)) is ours


def test_any_other_comes_back_as_it_is() -> None:
    error = KeyError("mine")
    assert translated(error) is error
