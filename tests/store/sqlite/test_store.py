"""SQLite alone: durability settings, full and damaged files, other programs' locks."""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

import postroom
from postroom.errors import (
    MessageCorrupt,
    PostroomError,
    RoomMissing,
    RoomReentered,
    StoreBusy,
    StoreCorrupt,
    StoreFull,
    StoreNewer,
    StoreStopped,
    StoreUnavailable,
    UrlInvalid,
)
from postroom.room import Postroom
from postroom.store.kernel.transaction import Transaction
from postroom.store.sqlite.store import SqliteStore


@pytest.fixture
def room(sqlite_url: str) -> Iterator[Postroom]:
    with postroom.open(sqlite_url) as opened:
        opened.queues.create("q")
        yield opened


def connection_of(room: Postroom) -> apsw.Connection:
    assert isinstance(room.store, SqliteStore)
    return room.store.session.connection


def test_every_commit_is_durable_by_default(room: Postroom) -> None:
    connection = connection_of(room)
    assert connection.execute("PRAGMA synchronous").get == 2
    assert connection.execute("PRAGMA journal_mode").get == "wal"


def test_a_full_store_refuses_with_a_typed_error_and_resumes_unaided(room: Postroom) -> None:
    connection = connection_of(room)
    room.send("q", "before")
    pages = connection.execute("PRAGMA page_count").get
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreFull) as caught:
        room.send_many("q", ["x" * 100_000] * 100)
    assert caught.value.happened == "no"
    accepted = room.queues.accept("q").queues[0].unprocessed
    assert accepted == len(room.queues.info("q").messages)  # nothing half-applied, and reading works
    received = room.receive("q")  # so does draining
    assert received.message is not None
    assert received.message.body == "before"
    connection.execute("PRAGMA max_page_count = 1000000")
    assert room.send("q", "x" * 100_000).status == "00"


def test_a_file_size_limit_is_a_typed_refusal(sqlite_url: str) -> None:
    script = """
import resource, signal, sys, postroom
from postroom.errors import PostroomError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
room = postroom.open(sys.argv[1]); room.queues.create("q")
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
sent = 0
try:
    while True:
        room.send("q", "x" * 20_000); sent += 1
except PostroomError as error:
    print(sent, error.code, error.happened)
"""
    out = subprocess.run([sys.executable, "-c", script, sqlite_url], capture_output=True, text=True, check=True)
    sent, code, happened = out.stdout.split()
    assert code in ("store-unavailable", "store-full", "commit-unknown")
    with postroom.open(sqlite_url) as again:
        held = again.queues.accept("q").queues[0].unprocessed
        assert held == int(sent) if happened == "no" else held in (int(sent), int(sent) + 1)
        assert len(again.queues.info("q").messages) == held


def test_no_file_handles_left_is_a_typed_refusal(tmp_path: Path) -> None:
    script = """
import os, resource, sys, postroom
from postroom import PostroomError, open as open_room  # names come when they are asked for: now there are handles
import apsw, postroom.store.sqlite.store
resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
held = []
try:
    while True: held.append(os.open("/dev/null", os.O_RDONLY))
except OSError: pass
try:
    open_room(sys.argv[1])
except PostroomError as error:
    print(error.code, error.happened)
"""
    url = str(tmp_path / "r.db")
    out = subprocess.run([sys.executable, "-c", script, url], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["store-unavailable", "no"]


def test_a_changed_message_is_never_delivered_and_the_others_go_on(room: Postroom) -> None:
    keys = [room.send("q", body).key for body in ("first", "second", "third")]
    connection_of(room).execute("UPDATE messages SET body = 'forged' WHERE body = 'second'")
    assert room.receive("q").message is not None
    with pytest.raises(MessageCorrupt) as caught:
        room.receive("q")
    assert caught.value.facts["key"] == keys[1]
    last = room.receive("q")
    assert last.message is not None
    assert last.message.body == "third"
    assert [event.verb for event in room.trace(keys[1])] == ["put", "set-aside"]
    shown = room.show(keys[1])
    assert (shown.corrupt, shown.body) == (True, "")
    assert shown.as_dict()["corrupt"] is True
    assert room.queues.accept("q").queues[0].as_dict()["unprocessed"] == 0


@pytest.mark.parametrize("column", ["body", "properties", "format", "type", "created", "cause"])
def test_the_hash_covers_all_that_a_message_says(room: Postroom, column: str) -> None:
    room.send("q", "x", properties={"a": 1})
    connection_of(room).execute(f"UPDATE messages SET {column} = 17")
    with pytest.raises(MessageCorrupt):
        room.receive("q")


def test_a_damaged_message_in_the_middle_of_its_segments_frees_the_queue(room: Postroom) -> None:
    room.send("q", "a\nb")
    room.receive("q", segment=True)
    connection_of(room).execute("UPDATE messages SET body = 'a'")
    with pytest.raises(MessageCorrupt):
        room.receive("q", segment=True)
    assert room.queues.accept("q").queues[0].unprocessed == 0


def test_counts_that_do_not_fit_are_damage_and_not_a_crash(room: Postroom) -> None:
    connection_of(room).execute("UPDATE queues SET arrived = 1")
    with pytest.raises(StoreCorrupt):
        room.receive("q")


def flip(file: Path, position: int) -> None:
    data = bytearray(file.read_bytes())
    data[position] ^= 0x55
    file.write_bytes(data)


def deliveries(file: Path) -> list[str]:
    """What a user of a damaged room gets: messages or typed errors, nothing else."""
    bodies = []
    try:
        with postroom.open(file, create=False) as room:
            for _ in range(40):
                try:
                    received = room.receive("q")
                except MessageCorrupt:
                    continue
                if received.message is None:
                    break
                bodies.append(received.message.body)
    except PostroomError:
        pass
    return bodies


@pytest.mark.parametrize("many", [250, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_flipped_byte_anywhere_never_delivers_a_changed_message(tmp_path: Path, many: int) -> None:
    original = tmp_path / "original.db"
    sent = [f"message {number} " + "x" * 300 for number in range(30)]
    with postroom.open(original) as room:
        room.queues.create("q")
        for body in sent:
            room.send("q", body, properties={"n": 1})
    chance = random.Random(17)
    for number in range(many):
        copy = tmp_path / "copy.db"
        shutil.copy(original, copy)
        flip(copy, chance.randrange(copy.stat().st_size))
        got = deliveries(copy)
        assert set(got) <= set(sent), f"flip {number} changed a message"
        assert len(set(got)) == len(got), f"flip {number} doubled a message"
        for suffix in ("-wal", "-shm"):
            Path(f"{copy}{suffix}").unlink(missing_ok=True)


def test_files_that_are_no_rooms_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(RoomMissing):
        postroom.open(tmp_path / "none.db", create=False)
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(StoreUnavailable, match="does not exist"):
        postroom.open(tmp_path / "no" / "such" / "folder.db")
    (tmp_path / "text.db").write_text("this is not a database, and it is long enough to have a header" * 20)
    with pytest.raises(UrlInvalid, match="not a SQLite database"):
        postroom.open(tmp_path / "text.db")
    foreign = apsw.Connection(str(tmp_path / "foreign.db"))
    foreign.execute("CREATE TABLE theirs (a)")
    for create in (True, False):
        with pytest.raises(UrlInvalid, match="another program"):
            postroom.open(tmp_path / "foreign.db", create=create)
    assert foreign.execute("PRAGMA journal_mode").get == "delete"
    foreign.close()
    (tmp_path / "empty.db").touch()
    with pytest.raises(RoomMissing):
        postroom.open(tmp_path / "empty.db", create=False)
    with pytest.raises(StoreUnavailable):
        postroom.open(tmp_path)


def test_a_room_from_the_future_is_left_alone(room: Postroom, sqlite_url: str) -> None:
    connection_of(room).execute("PRAGMA user_version = 999")
    room.close()
    with pytest.raises(StoreNewer, match="999"):
        postroom.open(sqlite_url)


def test_another_writer_that_does_not_let_go_is_told(
    room: Postroom, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.store.files.guard.BUSY_SECONDS", 0.05)
    with postroom.open(sqlite_url) as other:
        connection_of(other).set_busy_timeout(50)
        connection_of(room).execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy) as caught:
            other.send("q", "x")
        assert caught.value.happened == "no"
        connection_of(room).execute("ROLLBACK")
        assert other.send("q", "x").status == "00"


def test_a_closed_room_says_so_and_closing_again_is_fine(sqlite_url: str) -> None:
    room = postroom.open(sqlite_url)
    room.close()
    room.close()
    with pytest.raises(StoreStopped, match="closed"):
        room.queues.accept()


def test_a_long_path_can_still_be_waited_on(tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 100) / ("e" * 100)
    folder.mkdir(parents=True)
    with postroom.open(folder / "room.db") as room:
        room.queues.create("q")
        assert not room.receive("q", wait=0.05)
        assert not (folder / "room.db-wake").exists()


def test_memory_stays_bounded_while_a_long_queue_is_listed(sqlite_url: str) -> None:
    script = """
import resource, sys, postroom
room = postroom.open(sys.argv[1]); room.queues.create("q")
for _ in range(20): room.send_many("q", ["x" * 1000] * 2000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert sum(1 for _ in room.queues.info("q")) == 40_000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    out = subprocess.run([sys.executable, "-c", script, sqlite_url], capture_output=True, text=True, check=True)
    growth = int(out.stdout) * resource.getpagesize() // resource.getpagesize()
    assert growth < 30_000  # kilobytes; the listing itself is 40,000


def test_a_real_fork_cannot_use_its_parents_room(sqlite_url: str) -> None:
    script = """
import os, sys, postroom
room = postroom.open(sys.argv[1]); room.queues.create("q")
child = os.fork()
if child == 0:
    try:
        room.send("q", "x")
    except postroom.errors.RoomForked:
        room.close()
        os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert room.send("q", "parent").status == "00"
"""
    subprocess.run([sys.executable, "-c", script, sqlite_url], check=True, env={**os.environ})


def test_a_signal_handler_cannot_enter_a_room_in_the_middle_of_a_call(sqlite_url: str) -> None:
    with postroom.open(sqlite_url) as room:
        room.queues.create("q")

        def work(tx: Transaction) -> None:
            tx.journal.add("note")
            for act in (lambda: room.send("q", "inner"), room.queues.accept, room.close, lambda: room.receive("q")):
                with pytest.raises(RoomReentered):
                    act()

        room.store.transact("send", work)
        assert [event.verb for event in room.journal.last(1)] == ["note"]
        assert room.send("q", "after").status == "00"


def test_an_interrupt_while_waiting_for_the_store_leaves_nothing_open(sqlite_url: str, tmp_path: Path) -> None:
    script = """
import os, signal, sys, threading, time, postroom
room = postroom.open(sys.argv[1]); room.queues.create("q")
other = postroom.open(sys.argv[1])
other.store.session.connection.execute("BEGIN IMMEDIATE")
def later():
    time.sleep(0.3); os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.3); other.store.session.connection.execute("ROLLBACK")
threading.Thread(target=later).start()
try:
    room.send("q", "x")
except KeyboardInterrupt:
    print("interrupted", room.store.session.connection.in_transaction)
print(other.send("q", "y").status, room.send("q", "z").status)
"""
    out = subprocess.run([sys.executable, "-c", script, sqlite_url], capture_output=True, text=True, timeout=60)
    assert out.stdout.splitlines()[-1] == "00 00", out.stderr
    assert "interrupted True" not in out.stdout


@pytest.mark.parametrize("spoil", ["file", "descriptors"])
def test_a_wake_up_that_cannot_be_given_does_not_undo_the_yes(room: Postroom, sqlite_url: str, spoil: str) -> None:
    if spoil == "file":
        Path(sqlite_url + "-wake").write_text("in the way")
        assert room.send("q", "x").status == "00"
        assert room.receive("q").message is not None
        with pytest.raises(StoreUnavailable, match="cannot wait"):
            room.receive("q", wait=0.1)
        return
    held = []
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
    try:
        while True:
            try:
                held.append(os.open("/dev/null", os.O_RDONLY))
            except OSError:
                break
        assert room.send("q", "x").status == "00"
    finally:
        for handle in held:
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_refusals_of_a_closed_room_are_new_each_time(sqlite_url: str) -> None:
    room = postroom.open(sqlite_url)
    room.close()
    seen = []
    for _ in range(2):
        with pytest.raises(StoreStopped) as caught:
            room.queues.accept()
        seen.append(caught.value)
    assert seen[0] is not seen[1]
