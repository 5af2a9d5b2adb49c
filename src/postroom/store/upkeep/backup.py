"""Backups: a whole room in one SQLite file, whatever store it is in, and back into either.

A backup is written under a temporary name, verified, and then renamed. It replaces no room but an earlier backup of the
same one, and none that is open. A restored room is prepared in a copy of the
backup first, so that the room itself changes in one commit.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from postroom import faults
from postroom.errors import (
    BackupExists,
    BackupInvalid,
    BackupRefused,
    PostroomError,
    RoomInUse,
    StoreNewer,
    StoreUnavailable,
)
from postroom.model.moment import to_datetime, to_iso, to_microseconds
from postroom.model.progress import OnProgress, silent
from postroom.store.files.disk import sync
from postroom.store.files.overwriting import is_database, obstacle
from postroom.store.files.rights import remove_files
from postroom.store.kernel.base import Store
from postroom.store.kernel.journal import archived_events
from postroom.store.kernel.owner import described, is_alive, process_token
from postroom.store.kernel.transaction import Transaction
from postroom.store.proof.verification import Verified, verified
from postroom.store.sqlite.connection import copy_file, entry
from postroom.store.sqlite.store import SqliteStore

_LINES = "SELECT 1 FROM journal LIMIT 1"
_NEWEST = "SELECT coalesce(max(at), 0) FROM journal"
_FREE_LEASES = "UPDATE leases SET expires = 0"
_NO_QUERIES = "DELETE FROM queries"
_SPEND_BLOCK = """
UPDATE counters SET value = (SELECT u.value FROM counters u WHERE u.name = 'keys until') WHERE name = 'keys'
"""

_ACTOR = "restore"


@dataclass(frozen=True, slots=True)
class BackedUp:
    """A backup, and its size."""

    file: str
    size: int
    lines: int
    messages: int
    at: str  # the time of the newest line

    def as_dict(self) -> dict[str, Any]:
        shape = {name: getattr(self, name) for name in self.__slots__}
        shape["message_count"] = shape.pop("messages")
        return shape


def backup(
    store: Store, file: Path, *, replace: bool = False, check: bool = True, progress: OnProgress | None = None
) -> BackedUp:
    """Write a consistent snapshot of a room into a file while others use it."""
    times = partial(_time_here, store)
    return kept(file, lambda making: store.copy_to(making, progress or silent), times, replace=replace, check=check)


def kept(
    file: Path,
    copy: Callable[[Path], None],
    time_of: Callable[[int], int | None] | None = None,
    *,
    replace: bool = False,
    check: bool = True,
) -> BackedUp:
    """Verify a copy, which ``copy`` makes, and rename it.

    ``time_of`` tells the times of entries of the room's journal; otherwise those that are in the copy are known.
    """
    _refuse_existing(file, replace)
    _refuse_room(file)
    with _beside(file) as making:
        copy(making)
        faults.reach("backup.copied")
        outcome, at = _checked(making, check)
        size = making.stat().st_size
        sync(making)
        _refuse_room(file)  # someone may have opened one meanwhile
        _refuse_other(file, time_of or partial(_time_in, making))
        _named(making, file, replace)
    return BackedUp(str(file), size, outcome.lines, outcome.messages, to_iso(to_datetime(at)))


@dataclass(frozen=True, slots=True)
class Restorable:
    """A checked copy of a backup that a room can be filled from."""

    file: Path
    outcome: Verified


def restore(store: Store, file: Path, *, replace: bool = False, progress: OnProgress | None = None) -> Verified:
    """Fill an empty room from a backup; the store must be reopened. With ``replace`` it need not be empty."""
    store.read(lambda tx: _refuse_used(tx, replace))
    place = Path(store.session.place) if store.address is None else None
    with restorable(file, place, progress=progress) as copy:
        return fill(store, copy, replace=replace, progress=progress)


@contextmanager
def restorable(file: Path, place: Path | None, *, progress: OnProgress | None = None) -> Iterator[Restorable]:
    """A backup checked and prepared beside the file of the room, or for a database in the temporary folder."""
    if not file.exists():
        raise StoreUnavailable(why=f"the backup {file} does not exist")
    folder = Path(tempfile.gettempdir()) if place is None else place.parent
    if not folder.is_dir():
        raise StoreUnavailable(why=f"the directory {folder} does not exist")
    with _beside(folder / "restore") as making:
        try:
            copy_file(file, making, progress or silent)
            outcome, _ = _checked(making, True, prepare=True)
        except StoreNewer:
            raise
        except PostroomError as error:
            raise BackupInvalid(file=str(file), why=str(error)) from error
        faults.reach("backup.copied")
        yield Restorable(making, outcome)


def fill(store: Store, copy: Restorable, *, replace: bool = False, progress: OnProgress | None = None) -> Verified:
    """Replace the content of a room by a checked copy, in one commit."""
    store.read(lambda tx: _refuse_used(tx, replace))
    store.copy_from(copy.file, progress or silent)
    return copy.outcome


def _refuse_existing(file: Path, replace: bool) -> None:
    if file.exists() and not replace:
        raise BackupExists(file=str(file))
    if not file.parent.is_dir():
        raise StoreUnavailable(why=f"the directory {file.parent} does not exist")


def _refuse_room(file: Path) -> None:
    why = obstacle(file)
    if why:
        raise BackupRefused(file=str(file), why=why)


def _refuse_other(file: Path, time_of: Callable[[int], int | None]) -> None:
    """Raise if a file is a database, and no earlier backup of the room whose journal has these times."""
    if not file.exists() or not is_database(file):
        return
    try:
        last = entry(file)
    except PostroomError:
        raise BackupRefused(file=str(file), why="it is a database, and no room") from None
    if last is not None and time_of(last[0]) != last[1]:
        why = "it is another room, or has been used since: its journal has what this room's has not"
        raise BackupRefused(file=str(file), why=why)


def _time_here(store: Store, number: int) -> int | None:
    """The time of an entry of a room's journal, also of one that is archived."""

    def work(tx: Transaction) -> int | None:
        archives, names, next_events = tx.journal.next_page(number - 1, 1)
        every = chain.from_iterable(chain([next_events], archived_events(archives[:1], names)))
        return next((to_microseconds(event.time) for event in every if event.seq == number), None)

    return store.read(work)


def _time_in(making: Path, number: int) -> int | None:
    found = entry(making, number)
    return None if found is None else found[1]


def _refuse_used(tx: Transaction, replace: bool) -> None:
    room = tx.session.place
    if not replace and tx.session.row(_LINES) is not None:
        raise RoomInUse(room=room, why="it is not empty; choose another place, or give --replace")
    for lease in tx.leases.all():
        if lease.is_held(tx.now):
            raise RoomInUse(room=room, why=f"{lease.name} runs in {described(lease.owner)}; stop it first")


def _checked(file: Path, check: bool, *, prepare: bool = False) -> tuple[Verified, int]:
    """Open a copy as a room, which migrates it, and verify it."""
    with closing(SqliteStore(file, actor=_ACTOR, create=False)) as copy:
        damage = copy.read(lambda tx: tx.session.damage())
        if damage:
            raise BackupInvalid(file=str(file), why=damage[0])
        at = copy.read(lambda tx: tx.session.number(_NEWEST))
        if prepare:
            copy.transact("restore", _prepared)
        outcome = copy.read(verified)
        if outcome.differences and check:
            raise BackupInvalid(
                file=str(file), why=f"{len(outcome.differences)} difference(s) between it and its journal"
            )
    return outcome, at


def _prepared(tx: Transaction) -> None:
    """Adjust a restored copy: end what belongs to processes of the original, and skip keys that it may have used
    since."""
    newest = tx.session.number(_NEWEST)
    tx.session.run(_FREE_LEASES)
    tx.session.run(_NO_QUERIES)
    if tx.keys.lent:
        tx.session.run(_SPEND_BLOCK)  # the control node gives a new one
    else:
        tx.keys.give_block()
    tx.journal.add("restore", detail={"until": to_iso(to_datetime(newest))})


@contextmanager
def _beside(file: Path) -> Iterator[Path]:
    """A temporary private file, removed at the end unless renamed."""
    _clear(file)
    making = file.with_name(f".{file.name}.{process_token().replace('/', '_')}.part")
    try:
        os.close(os.open(making, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield making
    except OSError as error:
        raise StoreUnavailable(why=f"{file}: {error.strerror or error}") from error
    finally:
        remove_files(making)


def _clear(file: Path) -> None:
    """Remove temporary files of killed processes."""
    for left in file.parent.glob(f".{file.name}.*.part*"):
        token = left.name.removeprefix(f".{file.name}.").rpartition(".part")[0].replace("_", "/")
        if is_alive(token) is False and left.is_file():
            left.unlink(missing_ok=True)


def _named(making: Path, file: Path, replace: bool) -> None:
    if replace:
        making.replace(file)
    else:
        try:
            os.link(making, file)  # unlike a rename it takes nobody's place
        except FileExistsError:
            raise BackupExists(file=str(file)) from None
    faults.reach("backup.renamed")
    sync(file.parent)
