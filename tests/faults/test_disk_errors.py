"""The disk refuses a write or a sync, each in turn: what was said is what is found, in this process and in others."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.faults.disk import Failing, Recorder, io_error, no_space, told

import postroom
from postroom.errors import CommitUnknown, PostroomError, StoreError
from postroom.room import Postroom
from postroom.store.sqlite.store import SqliteStore


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr("postroom.store.files.reserve.RESERVE_BYTES", 4096)
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    yield folder
    shutil.rmtree(folder)


class History:
    """What a caller was told of each act."""

    def __init__(self) -> None:
        self.there: set[str] = set()  # bodies that were acknowledged
        self.taken: set[str] = set()
        self.absent: set[str] = set()
        self.unknown: set[str] = set()  # sent, and nobody knows
        self.perhaps_taken = 0

    def work(self, room: Postroom) -> None:
        """Until the room takes no more."""
        for number in range(8):
            self._send(room, f"{number} " + "x" * 300)
            self._send(room, f"{number} once", idempotency_key=f"k{number}")
            if number % 2:
                self._take(room)
            if number % 4 == 3:
                self._many(room, [f"{number} many {each} " + "y" * 700 for each in range(6)])

    def _send(self, room: Postroom, body: str, **options: Any) -> None:
        self._told([body], lambda: room.send("q", body, **options))

    def _many(self, room: Postroom, bodies: list[str]) -> None:
        self._told(bodies, lambda: room.send_many("q", bodies))

    def _told(self, bodies: list[str], act: Callable[[], object]) -> None:
        try:
            act()
        except StoreError as error:
            {"no": self.absent, "unknown": self.unknown}[error.happened].update(bodies)
        else:
            self.there.update(bodies)

    def _take(self, room: Postroom) -> None:
        try:
            received = room.receive("q")
        except StoreError as error:
            self.perhaps_taken += error.happened == "unknown"
        else:
            if received.message is not None:
                self.taken.add(received.message.body)

    def compare(self, seen: Seen) -> None:
        every = seen.waiting + seen.done
        assert len(set(every)) == len(every), "a message is there twice"
        assert self.there <= set(every), "an acknowledged message is lost"
        assert not self.absent & set(every), "a refused message is there"
        assert set(every) <= self.there | self.unknown, "a message was invented"
        assert self.taken <= set(seen.done), "a message that was received is back"
        assert len(seen.done) <= len(self.taken) + self.perhaps_taken
        assert self.unknown <= set(every) or not self.unknown & set(every), "half of a commit is there"


class Seen:
    def __init__(self, room: Postroom) -> None:
        self.waiting = [message.body for message in room.queues.info("q")]
        self.done = [message.body for message in room.queues.history("q")]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Seen) and (self.waiting, self.done) == (other.waiting, other.done)


def opened(file: Path) -> Postroom:
    room = postroom.open(file)
    assert isinstance(room.store, SqliteStore)
    room.store.session.connection.execute("PRAGMA wal_autocheckpoint = 25").fetchall()
    return room


def prepared(memory: Path) -> Path:
    with postroom.open(memory / "empty.db") as room:
        room.queues.create("q")
    return memory / "empty.db"


def calls(memory: Path) -> int:
    """How many writes and syncs there are in the work."""
    folder = memory / "counted"
    folder.mkdir()
    shutil.copy(prepared(memory), folder / "room.db")
    recorder = Recorder(folder)
    with told(recorder):
        room = opened(folder / "room.db")
        recorder.events.clear()
        History().work(room)
    return sum(event.kind in ("write", "sync", "truncate") for event in recorder.events)


def one(memory: Path, nth: int, error: Callable[[], Exception], lasting: bool) -> History:
    folder = memory / f"{nth}"
    folder.mkdir()
    file = folder / "room.db"
    shutil.copy(memory / "empty.db", file)
    failing = Failing(folder, -1, error, lasting)
    history, said = History(), None
    with told(failing):
        room, other = opened(file), opened(file)
        failing.left = nth
        history.work(room)
        try:
            said = Seen(other)  # a look from elsewhere, before anybody opened the room again
        except CommitUnknown:
            assert history.unknown or history.perhaps_taken
        killed = folder / "killed"
        killed.mkdir()
        for name in ("room.db", "room.db-wal", "room.db-doubt"):  # what is left if all processes are killed now
            if (folder / name).exists():
                shutil.copy(folder / name, killed / name)
        failing.left = 0
        failing.lasting = False
        room.close()
        other.close()
    for place in (killed / "room.db", file):
        with postroom.open(place) as again:
            seen = Seen(again)
            history.compare(seen)
            assert said is None or said == seen, "what was looked at has changed"
            assert not Path(f"{place}-doubt").exists()
            for body in [each for each in history.unknown if each.endswith("once")]:
                again.send("q", body, idempotency_key=f"k{body.split()[0]}")
                assert Seen(again).waiting.count(body) + Seen(again).done.count(body) == 1
            assert not again.journal.verify().differences
    shutil.rmtree(folder)
    return history


WAYS = [
    pytest.param(io_error, False, id="one-error"),
    pytest.param(io_error, True, id="errors-for-ever"),
    pytest.param(no_space, False, id="full-once"),
    pytest.param(no_space, True, id="full-for-ever"),
]


@pytest.mark.parametrize("every", [23, pytest.param(1, marks=pytest.mark.slow)], ids=["slice", "whole"])
@pytest.mark.parametrize(("error", "lasting"), WAYS)
def test_an_error_of_the_disk_at_any_call_leaves_what_was_said(
    memory: Path, error: Callable[[], Exception], lasting: bool, every: int
) -> None:
    count = calls(memory)
    assert count > 100
    histories = []
    for nth in range(1, count + 1, every):
        try:
            histories.append(one(memory, nth, error, lasting))
        except (AssertionError, PostroomError) as wrong:
            raise AssertionError(f"call {nth} of {count}: {wrong}") from wrong
    unknown = sum(bool(history.unknown) or bool(history.perhaps_taken) for history in histories)
    print(f"{len(histories)} errors, {unknown} times unknown")
    if error is io_error:
        assert unknown
