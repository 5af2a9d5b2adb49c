"""A connection to a room's file: settings, schema, and copying."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import apsw

from postroom import faults
from postroom.errors import RoomMissing, StoreNewer, StoreUnavailable, UrlInvalid
from postroom.limits import BACKUP_PAGES, BUSY_SECONDS
from postroom.model.progress import OnProgress
from postroom.store.files import rights
from postroom.store.migrations import MIGRATIONS, for_sqlite
from postroom.store.sqlite.errors import translated

LAST_NUMBER = "SELECT coalesce(max(seq), 0) FROM journal"
_ENTRY = "SELECT seq, at FROM journal WHERE seq = ?"
_LAST_ENTRY = "SELECT seq, at FROM journal ORDER BY seq DESC LIMIT 1"
_ANYTHING = "SELECT count(*) FROM sqlite_master"
SETTINGS = (
    # Small pages: a durable send changes three, and their bytes are what the disk waits for.
    "PRAGMA page_size = 1024",
    "PRAGMA journal_mode = WAL",
    "PRAGMA wal_autocheckpoint = 4000",
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",  # macOS alone has a weaker sync, and this turns it off
    "PRAGMA cache_size = -32768",
)
# Who reads much reads from memory that is the file: with small pages, every third of its time was calls of the system.
MAPPED = "PRAGMA mmap_size = 1099511627776"
_APPLICATION = 0x506F7374  # "Post", written into the header of the file
#: PRAGMA takes no parameters, and statements are constants here.
APPLICATION_STATEMENT = "PRAGMA application_id = " + str(_APPLICATION)
VERSION_STATEMENTS = {n: "PRAGMA user_version = " + str(n) for n in range(1, len(MIGRATIONS) + 1)}


def make_sure(file: Path, create: bool) -> None:
    """Raise unless there is a file, or one may be created."""
    if not create and not file.exists():
        raise RoomMissing(url=str(file))
    if not file.parent.is_dir():
        raise StoreUnavailable(why=f"the directory {file.parent} does not exist")
    if not file.exists():
        rights.make_private(file)


def connect(file: Path) -> apsw.Connection:
    connection = apsw.Connection(os.fspath(file))
    try:
        connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
        _check_ours(connection, file)
        # One plan per statement, whatever its values; else SQLite plans anew at every execution, 5 times slower.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        for setting in SETTINGS:
            connection.execute(setting).fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def _check_ours(connection: apsw.Connection, file: Path) -> None:
    """Raise for a database of another program, without changing it."""
    objects = connection.execute("SELECT count(*) FROM sqlite_master").get
    if objects and connection.execute("PRAGMA application_id").get != _APPLICATION:
        raise UrlInvalid(url=str(file), why="the file is a SQLite database of another program")


def migrate(connection: apsw.Connection, name: str, create: bool) -> bool:
    """Bring the schema up to date; whether that made the room."""
    made, present = False, version(connection)
    if present > len(MIGRATIONS):
        raise StoreNewer(found=present, known=len(MIGRATIONS))
    if present == 0 and not create:
        raise RoomMissing(url=name)
    while present < len(MIGRATIONS):
        connection.execute("BEGIN IMMEDIATE")
        try:
            present = version(connection)  # another process may have been first
            made = made or present == 0
            if present < len(MIGRATIONS):
                for statement in map(for_sqlite, MIGRATIONS[present]):
                    faults.reach("migrate.statement")
                    connection.execute(statement)
                present += 1
                connection.execute(VERSION_STATEMENTS[present])
                connection.execute(APPLICATION_STATEMENT)
                faults.reach("migrate.statement")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
    return made


def schema_of(file: Path) -> int:
    """The number of a room's last migration; migrates nothing; 0 for an empty file."""
    try:
        make_sure(file, create=False)
        with contextlib.closing(connect(file)) as connection:
            return version(connection)
    except (apsw.Error, OSError) as error:
        raise translated(error, file) from error


def version(connection: apsw.Connection) -> int:
    version = connection.execute("PRAGMA user_version").get
    assert isinstance(version, int)
    return version


def entry(file: Path, number: int | None = None) -> tuple[int, int] | None:
    """Number and time of an entry of the journal of a room that is not open anywhere, by default of the last one."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    try:
        with contextlib.closing(apsw.Connection(f"{file.absolute().as_uri()}?immutable=1", flags)) as connection:
            asked = (_LAST_ENTRY, ()) if number is None else (_ENTRY, (number,))
            found: list[Any] = connection.execute(*asked).fetchall()
    except apsw.Error as error:
        raise translated(error, file) from error
    return found[0] if found else None


def copy_file(source: Path, target: Path, progress: OnProgress) -> None:
    """Copy a room's file as a consistent snapshot; the target must be empty."""
    try:
        make_sure(source, create=False)
        connection = connect(source)
    except (apsw.Error, OSError) as error:
        raise translated(error, source) from error
    try:
        into = apsw.Connection(os.fspath(target))
        try:
            # One picture for all pages: else every commit of others would begin the copy anew.
            connection.execute("BEGIN")
            connection.execute(LAST_NUMBER if version(connection) else _ANYTHING).fetchall()
            copy(connection, into, progress)
        finally:
            into.close()
    except BaseException as error:
        raise translated(error, source) from error
    finally:
        connection.close()


def copy(source: apsw.Connection, target: apsw.Connection, progress: OnProgress) -> None:
    with target.backup("main", source, "main") as copying:
        while not copying.done:
            copying.step(BACKUP_PAGES)
            progress(copying.page_count - copying.remaining, copying.page_count)
