"""Backups: taken while a room is in use, whole, and restored into either store."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.store.life import live

import postroom
from postroom import faults
from postroom.errors import (
    BackupExists,
    BackupInvalid,
    BackupRefused,
    RoomInUse,
    StoreNewer,
    StoreStopped,
    StoreUnavailable,
)
from postroom.room import Postroom
from postroom.store.kernel.session import Row
from postroom.store.kernel.transaction import Transaction
from postroom.store.sqlite.store import SqliteStore
from postroom.store.upkeep.portable import _tables

#: Makes the address of one more room, in the other kind of store than the room of the test, or in the same.
Place = Callable[[str], str]


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    def one(kind: str) -> str:
        if kind == "sqlite":
            return str(tmp_path / "restored.db")
        address: str = request.getfixturevalue("postgres_url")
        return address

    return one


def rows(room: Postroom) -> dict[str, list[Row]]:
    """Everything that is stored."""

    def work(tx: Transaction) -> dict[str, list[Row]]:
        found = {}
        for name, columns in TABLES.items():
            some = tx.session.rows(f"SELECT {columns} FROM {name}")
            found[name] = sorted(
                (tuple(bytes(cell) if isinstance(cell, memoryview) else cell for cell in row) for row in some), key=repr
            )
        return found

    return room.store.read(work)


TABLES: dict[str, str] = {}
#: What SQLite counts and PostgreSQL does not; that it is right is verified.
COUNTED = {"queues": {"arrived", "departed", "processed"}, "messages": {"number"}, "handouts": {"number"}}


@pytest.fixture(autouse=True)
def _known_tables(tmp_path: Path) -> None:
    if not TABLES:
        store = SqliteStore(tmp_path / "tables.db", actor="x")
        for table in _tables(store.session.connection):
            counted = COUNTED.get(table.name, set())
            TABLES[table.name] = ", ".join(name for name in table.columns if name not in counted)
        store.close()


CHANGED = {"leases", "queries", "counters", "journal"}  # by a restore, on purpose


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_backup_of_either_store_is_restored_into_either(
    url: str, kind: str, urls: Callable[[], str], tmp_path: Path
) -> None:
    with postroom.open(url) as room:
        live(room, tmp_path)
        before, about = rows(room), room.journal.verify()
        told: list[tuple[int, int]] = []
        made = room.backup(tmp_path / "copy", progress=lambda done, total: told.append((done, total)))
        assert (made.lines, made.messages) == (about.lines, about.messages)
        assert told[-1][0] == told[-1][1] > 0
        assert rows(room) == before
    assert os.stat(tmp_path / "copy").st_mode & 0o777 == 0o600
    target = str(tmp_path / "restored.db") if kind == "sqlite" else urls()
    with postroom.open(target) as empty:
        assert empty.operations.restore(tmp_path / "copy").differences == ()
        with pytest.raises(StoreStopped, match="open it again"):
            empty.queues.accept()
    with postroom.open(target) as again:
        after = rows(again)
        assert {name: some for name, some in after.items() if name not in CHANGED} == {
            name: some for name, some in before.items() if name not in CHANGED
        }
        (told_of,) = [row for row in after["journal"] if row not in before["journal"]]
        assert "restore" in told_of
        assert len(after["journal"]) == about.lines + 1
        works_on(again)
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


def works_on(room: Postroom) -> None:
    """Nothing that is new takes the place of something old."""
    known = {row[0] for row in rows(room)["messages"]} | {row[0] for row in rows(room)["departed"]}
    keys = [room.send("plain", "new").key for _ in range(3)]
    assert not {int(key.replace(".", "")) for key in keys} & known
    assert room.receive("plain").message is not None
    room.queues.create("new").send("x")
    room.spheres.machine(["NEW", "PAID"], [("NEW", "PAID")]).start("another")
    with room.sphere("another") as sphere:
        sphere.send("plain", "book", compensation="cancel")
    others = [room.store.transact("send", lambda tx: tx.outbox.add("command", {"command": "true"}, "q"))]
    room.engine.drop_effect(others[0])
    assert room.journal.verify().differences == ()


def test_keys_that_were_given_after_the_backup_are_not_given_again(room: Postroom, tmp_path: Path) -> None:
    queue = room.queues.create("q")
    queue.send("before")
    room.backup(tmp_path / "copy")
    later = {queue.send(f"{number}").key for number in range(500)}
    with postroom.open(tmp_path / "restored.db") as copy:
        copy.operations.restore(tmp_path / "copy")
    with postroom.open(tmp_path / "restored.db") as copy:
        assert not later & set(copy.send_many("q", map(str, range(500))).keys)


def test_a_backup_beside_senders_is_one_moment(url: str, tmp_path: Path) -> None:
    with postroom.open(url) as room:
        room.queues.create("a")
        room.queues.create("b")
        room.send_many("a", ["x" * 2_000] * 300)
    ended = threading.Event()
    count = [0]

    def send() -> None:
        with postroom.open(url) as mine:
            while not ended.is_set():
                count[0] += 1
                mine.queues.distribute(["a", "b"], f"{count[0]}")

    threads = [threading.Thread(target=send) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        with postroom.open(url) as room:
            for number in range(3):
                made = room.backup(tmp_path / f"copy{number}")
                assert made.lines > 300
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    for number in range(3):
        with postroom.open(tmp_path / f"copy{number}") as copy:
            assert copy.journal.verify().differences == ()
            bodies = {each: {m.body for m in copy.queues.info(each).messages if len(m.body) < 100} for each in "ab"}
            assert bodies["a"] == bodies["b"], "what was sent to both is in both, or in none"


def test_what_is_there_is_not_overwritten_unless_told(room: Postroom, tmp_path: Path) -> None:
    room.queues.create("q").send("1")
    file = tmp_path / "copy"
    file.write_text("mine")
    with pytest.raises(BackupExists, match="--replace"):
        room.backup(file)
    assert file.read_text() == "mine"
    room.backup(file, replace=True)
    room.send("q", "2")
    with pytest.raises(RoomInUse, match="not empty"):
        room.operations.restore(file)
    assert room.queues.accept("q").queues[0].unprocessed == 2
    room.operations.restore(file, replace=True)
    with postroom.open(room.url) as again:
        assert again.queues.accept("q").queues[0].unprocessed == 1
        assert again.journal.verify().differences == ()


def test_the_file_of_an_open_room_is_never_replaced(room: Postroom, tmp_path: Path) -> None:
    """It would take the room from everyone who has it open, and their log would go into the copy."""
    room.queues.create("q").send("1")
    other = tmp_path / "other.db"
    with postroom.open(other) as beside:
        beside.queues.create("mine").send("kept")
        for name in (other, tmp_path / "other.db-wal"):
            for replace in (True, False):
                with pytest.raises((BackupRefused, BackupExists)):
                    room.backup(name, replace=replace)
        with pytest.raises(BackupRefused, match=r"other\.db-wal is beside it"):
            room.backup(other, replace=True)
        beside.send("mine", "later")
        assert beside.journal.verify().differences == ()
    if "://" not in room.url:
        with pytest.raises(BackupRefused, match="is beside it"):
            room.backup(room.url, replace=True)
    room.send("q", "2")
    assert room.journal.verify().differences == ()
    assert [each.name for each in tmp_path.iterdir() if ".part" in each.name] == []


def test_only_an_earlier_backup_of_the_same_room_is_replaced(room: Postroom, tmp_path: Path) -> None:
    room.queues.create("q").send("1")
    file = tmp_path / "latest.db"
    room.backup(file)
    room.send("q", "2")
    assert room.backup(file, replace=True).messages == 2
    with postroom.open(file) as used:
        used.send("q", "of its own")
    kept = file.read_bytes()
    with pytest.raises(BackupRefused, match="has been used since"):
        room.backup(file, replace=True)
    other = tmp_path / "other.db"
    with postroom.open(other) as beside:
        beside.queues.create("mine")
    with pytest.raises(BackupRefused, match="another room"):
        room.backup(other, replace=True)
    foreign = tmp_path / "foreign.db"
    with closing(sqlite3.connect(foreign)) as made:
        made.execute("CREATE TABLE t (n)")
    with pytest.raises(BackupRefused, match="no room"):
        room.backup(foreign, replace=True)
    assert file.read_bytes() == kept
    with postroom.open(other) as beside:
        assert [queue.queue for queue in beside.count().queues] == ["mine"]


def test_a_room_that_is_opened_while_its_backup_is_made_is_not_replaced(room: Postroom, tmp_path: Path) -> None:
    room.queues.create("q").send("1")
    file = tmp_path / "latest.db"
    opened: list[Postroom] = []
    room.backup(file)

    def copying(done: int, of: int) -> None:
        if not opened:
            opened.append(postroom.open(file))
            opened[0].send("q", "of its own")

    with pytest.raises(BackupRefused, match="is beside it"):
        room.backup(file, replace=True, progress=copying)
    with opened[0] as used:
        assert used.count("q").queues[0].unprocessed == 2


def test_a_room_with_an_engine_is_not_replaced(room: Postroom, tmp_path: Path) -> None:
    room.queues.create("q")
    room.backup(tmp_path / "copy")
    room.store.transact("lease", lambda tx: tx.leases.acquire("engine", room._parts.owner, 60))
    with pytest.raises(RoomInUse, match="engine runs in process"):
        room.operations.restore(tmp_path / "copy", replace=True)
    assert room.queues.accept("q").queues


def test_a_lease_in_a_backup_keeps_nobody_from_working(room: Postroom, tmp_path: Path) -> None:
    room.queues.create("q")
    fence = room.store.transact("lease", lambda tx: tx.leases.acquire("engine", "elsewhere/1/1", 3_600))
    room.backup(tmp_path / "copy")
    with postroom.open(tmp_path / "restored.db") as copy:
        copy.operations.restore(tmp_path / "copy")
    with postroom.open(tmp_path / "restored.db") as copy:
        assert copy.store.transact("lease", lambda tx: tx.leases.acquire("engine", "me/1/1", 1)) == fence + 1


def test_no_backup_and_a_damaged_one_are_refused_and_change_nothing(room: Postroom, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="does not exist"):
        room.operations.restore(tmp_path / "nothing")
    (tmp_path / "text").write_text("no database at all " * 100)
    with postroom.open(tmp_path / "other.db") as other:
        other.queues.create("q").send("x" * 5_000)
        whole = other.backup(tmp_path / "whole")
    cut = (tmp_path / "whole").read_bytes()
    (tmp_path / "cut").write_bytes(cut[: whole.size // 2])
    with postroom.open(tmp_path / "wrong.db") as wrong:
        wrong.queues.create("q").send("x")
        wrong.store.transact("send", lambda tx: tx.session.run("DELETE FROM messages"))
        with pytest.raises(BackupInvalid, match="between it and its journal"):
            wrong.backup(tmp_path / "wrong")
        wrong.backup(tmp_path / "wrong", check=False)
    for name in ("text", "cut", "wrong"):
        with pytest.raises(BackupInvalid, match=str(tmp_path / name)):
            room.operations.restore(tmp_path / name)
        assert room.journal.verify().lines == 0
    with pytest.raises(StoreUnavailable, match="directory"):
        room.backup(tmp_path / "no" / "copy")


def test_a_backup_of_a_newer_version_is_refused(room: Postroom, tmp_path: Path) -> None:
    with postroom.open(tmp_path / "newer.db") as newer:
        newer.queues.create("q")
        newer.store.session.connection.execute("PRAGMA user_version = 99")  # type: ignore[attr-defined]
    with pytest.raises(StoreNewer):
        room.operations.restore(tmp_path / "newer.db")


@pytest.mark.parametrize("point", ["backup.copied", "backup.renamed"])
def test_a_backup_that_fails_leaves_nothing_half(room: Postroom, tmp_path: Path, point: str) -> None:
    room.queues.create("q").send("x")
    faults.arm(point, "raise")
    with pytest.raises(faults.FaultInjected):
        room.backup(tmp_path / "copy")
    faults.disarm()
    left = [file.name for file in tmp_path.iterdir() if file.name.endswith(".part") or file.name == "copy"]
    assert left == (["copy"] if point == "backup.renamed" else [])
    room.backup(tmp_path / "copy", replace=True)


def test_a_restore_that_fails_leaves_the_room_as_it_was(room: Postroom, tmp_path: Path) -> None:
    room.queues.create("q").send("x")
    room.backup(tmp_path / "copy")
    before = rows(room)
    for point in ("backup.copied", "restore.begun", "restore.committing"):
        faults.arm(point, "raise")
        with pytest.raises(faults.FaultInjected):
            room.operations.restore(tmp_path / "copy", replace=True)
        faults.disarm()
        with postroom.open(room.url) as other:
            assert rows(other) == before, point
