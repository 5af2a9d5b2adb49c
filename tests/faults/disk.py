"""A disk under test: it records what SQLite writes to it and when it is told to make that last, or fails when asked to.

What was recorded makes *crash images*: files as they may be found after the power failed. All that was synced is there;
of the rest any part may be, in any order, torn at every sector.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from postroom.store.sqlite.open_files import OpenFiles

SECTOR = 512
FRAME_HEAD = 24  # of a page in the log; bytes 4 to 8 are not 0 if it ends a commit


@dataclass(frozen=True)
class Event:
    kind: str  # write, sync, truncate, delete, or acknowledged: the store has told its caller that the commit lasts
    file: str
    offset: int = 0
    data: bytes = b""


class Recorder:
    """What came to the disk, in its order, for all files below a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = os.fspath(folder)
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        if event.file.startswith(self.folder):
            self.events.append(event)


class Failing:
    """Lets the nth write or sync fail, and all after it if the disk is to stay broken."""

    def __init__(self, folder: Path, nth: int, error: Callable[[], Exception], lasting: bool) -> None:
        self.folder = os.fspath(folder)
        self.left = nth
        self.error = error
        self.lasting = lasting
        self.failed = ""

    def __call__(self, event: Event) -> None:
        if event.kind not in ("write", "sync", "truncate") or not event.file.startswith(self.folder):
            return
        if self.error is no_space and not (event.kind == "write" and event.file.endswith("-wal")):
            # A sync tells of no lack of space. And if the room's file cannot grow when the log is copied into it,
            # SQLite tells nobody, and tries again; only an exception from here would be seen by whoever commits.
            return
        self.left -= 1
        if self.left == 0 or (self.left < 0 and self.lasting):
            self.failed = self.failed or f"{event.kind} of {os.path.basename(event.file)}"
            raise self.error()


def io_error() -> Exception:
    return _with_code(apsw.IOError("input/output error"), apsw.SQLITE_IOERR_FSYNC)


def no_space() -> Exception:
    return _with_code(apsw.FullError("no space left"), apsw.SQLITE_FULL)


def _with_code(error: Any, code: int) -> Exception:
    error.extendedresult = code
    assert isinstance(error, Exception)
    return error


class _File(apsw.VFSFile):
    def __init__(self, tell: Callable[[Event], None], name: Any, flags: list[int]) -> None:
        self._name = "" if name is None else name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        self._tell = tell
        super().__init__("unix", name, flags)

    def xWrite(self, data: Any, offset: int) -> None:
        self._tell(Event("write", self._name, offset, bytes(data)))
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self._tell(Event("sync", self._name))

    def xTruncate(self, size: int) -> None:
        self._tell(Event("truncate", self._name, size))
        super().xTruncate(size)


class _Disk(apsw.VFS):
    def __init__(self, tell: Callable[[Event], None]) -> None:
        self._tell = tell
        super().__init__("under test", "unix")

    def xOpen(self, name: Any, flags: list[int]) -> _File:
        return _File(self._tell, name, flags)

    def xDelete(self, name: str, sync: bool) -> None:
        super().xDelete(name, False)
        self._tell(Event("delete", name))


@contextlib.contextmanager
def told(tell: Callable[[Event], None]) -> Iterator[None]:
    """Rooms that are opened inside are on a disk that tells of all it is asked for. It syncs nothing: that is quick."""
    check = OpenFiles.check
    usual: dict[str, int] = {}  # how much each room syncs; a lease of this process waits for no disk

    def checked(self: OpenFiles) -> None:
        check(self)
        level = self.connection.pragma("synchronous")
        if level >= usual.setdefault(self.connection.filename, level):
            tell(Event("acknowledged", self.connection.filename))

    disk = _Disk(tell)
    apsw.set_default_vfs("under test")
    OpenFiles.check = checked  # type: ignore[method-assign]
    try:
        yield
    finally:
        OpenFiles.check = check  # type: ignore[method-assign]
        apsw.set_default_vfs("unix")
        disk.unregister()


@dataclass
class _Content:
    """One file: what is certain to be on the disk, and what was written since."""

    there: bool = True
    lasting: bytearray = field(default_factory=bytearray)
    pending: list[Event] = field(default_factory=list)

    def apply(self, event: Event) -> None:
        if event.kind == "sync":
            self.lasting, self.pending = self.after(self.pending), []
        elif event.kind == "delete":
            self.there, self.lasting, self.pending = False, bytearray(), []
        else:
            self.there = True
            self.pending.append(event)

    def after(self, events: list[Event]) -> bytearray:
        found = bytearray(self.lasting)
        for event in events:
            _change(found, event)
        return found


def _change(content: bytearray, event: Event) -> None:
    if event.kind == "truncate":
        del content[event.offset :]
        content.extend(bytes(event.offset - len(content)))
    else:
        content.extend(bytes(max(0, event.offset - len(content))))
        content[event.offset : event.offset + len(event.data)] = event.data


def _torn(event: Event, chance: random.Random) -> Iterator[Event]:
    """Some sectors of a write."""
    if event.kind != "write":
        yield event
        return
    begin = event.offset
    end = begin + len(event.data)
    while begin < end:
        stop = min(end, (begin // SECTOR + 1) * SECTOR)
        if chance.random() < 0.5:
            yield Event("write", event.file, begin, event.data[begin - event.offset : stop - event.offset])
        begin = stop


def _survivors(pending: list[Event], chance: random.Random) -> list[Event]:
    """What of the unsynced writes reached the disk before the power failed."""
    way = chance.randrange(5)
    if way == 0:
        return []
    if way == 1:
        return pending
    if way == 2:  # in order, and the last one torn
        count = chance.randrange(len(pending) + 1)
        last = list(_torn(pending[count], chance)) if count < len(pending) else []
        return pending[:count] + last
    if way == 3:
        return [event for event in pending if chance.random() < 0.5]
    return [part for event in pending for part in _torn(event, chance)]


Files = dict[str, bytes]


@dataclass(frozen=True)
class Image:
    """Files after a crash, and how many commits of each room must be and may be among what they hold."""

    files: Files
    least: dict[str, int]
    most: dict[str, int]


class Images:
    """All that may be found after a crash at each moment of what was recorded."""

    def __init__(self, before: Files, events: list[Event]) -> None:
        self._before = before
        self._events = events

    def rooms(self) -> list[str]:
        return sorted(name for name in self._before if not name.endswith("-wal"))

    def states(self, room: str) -> Iterator[Files]:
        """The room before the first commit and after each: nothing is lost."""
        yield self._of(self._contents(), room, lambda content: content.pending)
        for _, contents, committed in self._moments():
            if committed == room:
                yield self._of(contents, room, lambda content: content.pending)

    def drawn(self, chance: random.Random, share: float) -> Iterator[Image]:
        """Images at random moments: ``share`` of them for each event."""
        least, most = dict.fromkeys(self.rooms(), 0), dict.fromkeys(self.rooms(), 0)
        for event, contents, committed in self._moments():
            if committed:
                most[committed] += 1
            if event.kind == "acknowledged":
                least[event.file] = most[event.file]
            count = int(share) + (chance.random() < share % 1)
            for _ in range(count):
                files: Files = {}
                for room in self.rooms():
                    files |= self._of(contents, room, lambda content: _survivors(content.pending, chance))
                yield Image(files, dict(least), dict(most))

    def _contents(self) -> dict[str, _Content]:
        return {name: _Content(lasting=bytearray(data)) for name, data in self._before.items()}

    def _moments(self) -> Iterator[tuple[Event, dict[str, _Content], str]]:
        """After each event: what the files hold, and the room if its log has got the last page of a commit."""
        contents, ends = self._contents(), False
        for event in self._events:
            committed = ""
            if event.kind != "acknowledged":
                contents.setdefault(event.file, _Content()).apply(event)
            if event.kind == "write" and event.file.endswith("-wal"):
                if ends and len(event.data) > 32:
                    committed = event.file.removesuffix("-wal")
                ends = len(event.data) == FRAME_HEAD and event.data[4:8] != bytes(4)
            yield event, contents, committed

    @staticmethod
    def _of(contents: dict[str, _Content], room: str, chosen: Callable[[_Content], list[Event]]) -> Files:
        names = (room, f"{room}-wal", f"{room}-journal")
        return {
            name: bytes(contents[name].after(chosen(contents[name])))
            for name in names
            if name in contents and contents[name].there
        }


def stored(folder: Path) -> Files:
    """The rooms of a folder as they lie there, closed."""
    return {os.fspath(file): file.read_bytes() for file in folder.glob("*.db")}


class Kept:
    """What a power failure leaves of plain files below a folder at the least: what was synced, as it was then."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._synced: dict[int, bytes | dict[str, int]] = {}  # a file's content, a folder's entries
        self._sync = os.fsync
        self.fsync(os.open(root, os.O_RDONLY))

    def fsync(self, handle: int) -> None:
        """Takes the place of ``os.fsync``."""
        place = Path(os.readlink(f"/proc/self/fd/{handle}"))
        if place.is_dir():
            self._synced[os.fstat(handle).st_ino] = {entry.name: entry.inode() for entry in os.scandir(place)}
        else:
            self._synced[os.fstat(handle).st_ino] = place.read_bytes()
        self._sync(handle)

    def files(self) -> Files:
        return dict(self._below("", self.root.stat().st_ino))

    def _below(self, name: str, inode: int) -> Iterator[tuple[str, bytes]]:
        synced = self._synced.get(inode, b"")
        if isinstance(synced, bytes):
            yield name, synced
        else:
            for entry, number in synced.items():
                yield from self._below(f"{name}/{entry}", number)


def plain_files(root: Path) -> Files:
    """What is there as long as the power lasts."""
    return {f"/{file.relative_to(root)}": file.read_bytes() for file in root.rglob("*") if file.is_file()}
