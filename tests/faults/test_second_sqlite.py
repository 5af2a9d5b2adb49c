"""Another SQLite in the process opens and closes a room's file: what was acknowledged is there, once, after a kill."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path
from time import sleep

import apsw
import pytest

import postroom
from postroom.errors import StoreBusy, StoreReplaced, StoreStopped
from postroom.limits import LOOK_SECONDS
from postroom.model.key import key_number
from postroom.room import Postroom
from postroom.store.files import guard
from postroom.store.sqlite.store import SqliteStore

# What a user's program may do to the file beside the room: read it with the standard library, or copy it.
MEDDLING = """
import gc, os, shutil, sqlite3, sys, threading, time, postroom
def close(file):
    other = sqlite3.connect(file)
    other.execute("SELECT count(*) FROM messages").fetchall()
    other.close()
def collected(file):
    other = sqlite3.connect(file)
    other.execute("SELECT count(*) FROM messages").fetchall()
    other.execute("SELECT key FROM messages").fetchone()
    del other
    gc.collect()
def backup(file):
    other, copy = sqlite3.connect(file), sqlite3.connect(":memory:")
    other.backup(copy)
    other.close()
    copy.close()
def copy(file):
    for suffix in ("", "-wal", "-shm"):
        with open(file + suffix, "rb") as there: there.read()
def none(file): pass
"""
ONCE = (
    MEDDLING
    + """
url, meddle = sys.argv[1], globals()[sys.argv[2]]
room = postroom.open(url)
room.queues.create("q")
for number in range(3): print(room.send("q", f"before {number}").key, f"before {number}")
meddle(url)
for number in range(3): print(room.send("q", f"after {number}").key, f"after {number}")
room.receive("q")
meddle(url)
print(room.send_many("q", ["many 1"]).keys[0], "many 1", flush=True)
os.kill(os.getpid(), 9)
"""
)
BUSY = (
    MEDDLING
    + """
url, name, meddle = sys.argv[1], sys.argv[2], globals()[sys.argv[3]]
room = postroom.open(url)
def always():
    while True:
        meddle(url)
        time.sleep(0.0005)
threading.Thread(target=always, daemon=True).start()
number = 0
while True:
    number += 1
    body = f"{name}-{number}-" + "x" * 1500
    print("begin", body, flush=True)
    print("sent", room.send("q", body).key, body, flush=True)
    if number % 3 == 0:
        received = room.receive("q")
        if received.message: print("received", received.message.key, flush=True)
    if number % 5 == 0:
        counted = room.queues.accept("q").queues[0]
        assert counted.unprocessed >= 0
"""
)


def lines(text: str) -> list[list[str]]:
    return [line.split(" ", 1) for line in text.splitlines()]


@pytest.mark.parametrize("meddle", ["close", "collected", "backup", "copy"])
def test_what_was_sent_after_another_sqlite_closed_the_file_is_there_after_a_kill(sqlite_url: str, meddle: str) -> None:
    out = subprocess.run([sys.executable, "-c", ONCE, sqlite_url, meddle], capture_output=True, text=True)
    assert out.returncode == -signal.SIGKILL, out.stderr
    told = lines(out.stdout)
    assert len(told) == 7
    with postroom.open(sqlite_url) as room:
        for key, body in told:
            assert room.show(key).body == body
        assert not room.journal.verify().differences
        assert room.send("q", "next").key not in dict(told)


def kept(url: str, said: list[Path]) -> int:
    """Compare what processes were told with what is there; how many were sent."""
    told = [line.split(" ") for file in said for line in file.read_text().splitlines(keepends=True) if line[-1] == "\n"]
    begun = {words[1].strip() for words in told if words[0] == "begin"}
    sent = {words[1]: words[2].strip() for words in told if words[0] == "sent"}
    received = [words[1].strip() for words in told if words[0] == "received"]
    assert len(sent) == sum(words[0] == "sent" for words in told), "two messages got one key"
    assert len(set(received)) == len(received), "a message was received twice"
    with postroom.open(url) as room:
        waiting, history = list(room.queues.info("q")), list(room.queues.history("q"))
        stored = {message.key: message.body for message in [*waiting, *history]}
        assert max(Counter(stored.values()).values()) == 1, "a message was doubled"
        assert sent.items() <= stored.items(), "an acknowledged message was lost"
        assert set(stored.values()) <= begun, "a message was invented"
        assert set(received) <= {message.key for message in history}
        order = [key_number(message.key) for message in history]
        assert len(set(order)) == len(order)
        assert not room.journal.verify().differences
    return len(sent)


@pytest.mark.parametrize(
    ("meddle", "rounds"),
    [("close", 2), ("copy", 1), *(pytest.param(m, 30, marks=pytest.mark.slow) for m in ("close", "copy", "backup"))],
)
def test_writers_beside_each_other_lose_nothing_while_another_sqlite_opens_and_closes_the_file(
    sqlite_url: str, tmp_path: Path, meddle: str, rounds: int
) -> None:
    with postroom.open(sqlite_url) as room:
        room.queues.create("q")
    said: list[Path] = []
    for number in range(rounds):
        children = []
        for name, does in ((f"a{number}", meddle), (f"b{number}", "none"), (f"c{number}", meddle)):
            said.append(tmp_path / name)
            with said[-1].open("w") as out, (tmp_path / f"{name}.err").open("w") as err:
                command = [sys.executable, "-c", BUSY, sqlite_url, name, does]
                children.append(subprocess.Popen(command, stdout=out, stderr=err))
        while not all(file.stat().st_size for file in said) and all(child.poll() is None for child in children):
            sleep(0.01)
        sleep(1.5)
        for child in children:
            child.kill()
            told = "".join((tmp_path / f"{name}{number}.err").read_text() for name in "abc")
            assert child.wait() == -signal.SIGKILL, told
    assert kept(sqlite_url, said) > 10


@pytest.fixture
def room(sqlite_url: str) -> Postroom:
    opened = postroom.open(sqlite_url)
    opened.queues.create("q")
    return opened


def test_without_such_locks_the_answer_says_that_the_log_is_gone(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "_SET", None)
    with postroom.open(sqlite_url) as room:
        room.queues.create("q")
        room.send("q", "before")
        for act in ("send", "receive"):
            other = sqlite3.connect(sqlite_url)
            other.execute("SELECT 1 FROM messages").fetchall()
            other.close()
            if act == "send":
                with pytest.raises(StoreReplaced, match="-wal was removed or replaced") as caught:
                    room.send("q", "into nowhere")
                assert caught.value.happened == "unknown"
                with pytest.raises(StoreStopped):
                    room.send("q", "more")
                room = postroom.open(sqlite_url)
            else:
                with pytest.raises(StoreReplaced):
                    room.receive("q")
    with postroom.open(sqlite_url) as again:
        assert [message.body for message in again.queues.info("q")] == ["before"]
        assert not again.journal.verify().differences


def test_a_room_is_opened_again_while_another_connection_of_the_process_keeps_its_handles(sqlite_url: str) -> None:
    with postroom.open(sqlite_url) as room:
        room.queues.create("q")
        kept_open = apsw.Connection(sqlite_url)
        kept_open.execute("SELECT count(*) FROM messages").fetchall()
    for number in range(2):
        with postroom.open(sqlite_url) as room:
            assert room.send("q", f"{number}").key
        if number == 0:
            kept_open.close()  # the last one, which removes the log
    with postroom.open(sqlite_url) as room:
        assert [message.body for message in room.queues.info("q")] == ["0", "1"]
    assert not [name for name in open_files() if name.startswith(sqlite_url)]


def open_files() -> list[str]:
    return [os.readlink(handle) for handle in Path("/proc/self/fd").iterdir() if handle.is_symlink()]


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_files_that_were_moved_away_are_noticed_before_the_answer(room: Postroom, sqlite_url: str, suffix: str) -> None:
    room.send("q", "x")
    os.rename(sqlite_url + suffix, sqlite_url + ".away")
    sleep(LOOK_SECONDS)
    with pytest.raises(StoreReplaced):
        room.send_many("q", ["y"])
    with pytest.raises(StoreStopped):
        room.queues.accept()


def test_a_change_by_another_sqlite_of_the_process_is_waited_for(
    room: Postroom, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "BUSY_SECONDS", 0.2)
    other = sqlite3.connect(sqlite_url, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("UPDATE queues SET name = name")
    for act in (lambda: room.send("q", "x"), lambda: room.send_many("q", ["y"]), lambda: room.receive("q")):
        with pytest.raises(StoreBusy, match="of this process"):
            act()
    other.execute("COMMIT")
    assert room.send("q", "z").status == "00"
    other.close()
    assert [message.body for message in room.queues.info("q")] == ["z"]
    room.close()


def test_a_lock_dropped_in_the_middle_of_a_change_is_noticed_and_the_change_made_again(
    room: Postroom, sqlite_url: str
) -> None:
    tries = []

    def work(tx: object) -> None:
        tries.append(1)
        if len(tries) == 1:  # the index of the log, copied
            Path(sqlite_url + "-shm").read_bytes()

    room.store.transact("send", work)
    assert len(tries) == 2
    room.close()


def test_a_reader_whose_pages_were_written_over_reads_again(room: Postroom, sqlite_url: str) -> None:
    room.send_many("q", [f"{number}" for number in range(50)])
    tries = []
    writes = (
        "import sys, postroom\n"
        "with postroom.open(sys.argv[1]) as room:\n"
        "    room.send_many('q', ['x' * 1000] * 50)\n"
        "    room.store.session.connection.wal_checkpoint(mode=3)\n"  # begins the log anew
        "    room.send_many('q', ['x' * 1000] * 50)\n"
    )

    def work(tx: object) -> int:
        assert isinstance(room.store, SqliteStore)
        count = room.store.session.connection.execute("SELECT count(*) FROM messages").get
        tries.append(count)
        if len(tries) == 1:
            Path(sqlite_url + "-shm").read_bytes()
            subprocess.run([sys.executable, "-c", writes, sqlite_url], check=True)
        return int(count)

    assert room.store.read(work) == 150
    assert tries == [50, 150]
    room.close()


def test_a_reader_of_the_file_alone_is_not_overtaken_by_a_log_that_begins_anew_twice(
    room: Postroom, sqlite_url: str
) -> None:
    """All of the log is in the file. Whoever reads then looks at the file alone, and only its lock keeps the file."""
    room.send_many("q", [f"{number}" for number in range(50)])
    assert isinstance(room.store, SqliteStore)
    connection = room.store.session.connection
    connection.wal_checkpoint(mode=0)
    writes = (
        "import sys, postroom\n"
        "with postroom.open(sys.argv[1]) as room:\n"
        "    for _ in range(2):\n"
        "        room.send_many('q', ['x' * 1000] * 50)\n"  # in a log that begins anew
        "        if _ == 0: room.store.session.connection.wal_checkpoint(mode=0)\n"  # if nobody keeps the file
    )
    counts: list[tuple[int, int]] = []

    def work(tx: object) -> None:
        before = int(connection.execute("SELECT count(*) FROM journal").get)
        Path(sqlite_url + "-shm").read_bytes()  # SQLite's lock is gone
        subprocess.run([sys.executable, "-c", writes, sqlite_url], check=True)
        connection.execute("PRAGMA shrink_memory").fetchall()  # every page is read again
        counts.append((before, int(connection.execute("SELECT count(*) FROM journal").get)))
        assert connection.execute("PRAGMA quick_check").get == "ok"

    room.store.read(work)
    assert counts[-1][0] == counts[-1][1], "what one reader sees changes under it"
    assert len(counts) == 1, "and it need not read again"
    assert len(room.queues.info("q", limit=500).messages) == 150
    room.close()


def test_a_child_that_opens_the_room_again_keeps_its_log_when_the_parent_ends(sqlite_url: str) -> None:
    script = """
import os, subprocess, sys, postroom
url = sys.argv[1]
room = postroom.open(url)
room.queues.create("q")
ready, go = os.pipe(), os.pipe()
if os.fork() == 0:
    mine = postroom.open(url)
    mine.send("q", "early")
    os.write(ready[1], b"x")
    os.read(go[0], 1)          # the parent has ended, and another process has come and gone
    print(mine.send("q", "late").key, flush=True)
    os.kill(os.getpid(), 9)
os.read(ready[0], 1)
room.send("q", "parent")
room.close()
subprocess.run([sys.executable, "-c", "import sys, postroom; postroom.open(sys.argv[1]).close()", url], check=True)
os.write(go[1], b"x")
os.wait()
"""
    out = subprocess.run([sys.executable, "-c", script, sqlite_url], capture_output=True, text=True, timeout=60)
    key = out.stdout.strip()
    assert key, out.stderr
    with postroom.open(sqlite_url) as room:
        assert [message.body for message in room.queues.info("q")] == ["early", "parent", "late"]
        assert room.show(key).body == "late"
        assert not room.journal.verify().differences


def test_a_process_that_was_forked_and_lives_on_keeps_no_turn_of_a_killed_parent(sqlite_url: str) -> None:
    script = """
import os, sys, time, postroom
room = postroom.open(sys.argv[1])
room.queues.create("q")
def work(tx):
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        time.sleep(30)
        os._exit(0)
    time.sleep(0.1)
    os.kill(os.getpid(), 9)
room.store.transact("send", work)
"""
    with subprocess.Popen([sys.executable, "-c", script, sqlite_url], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert parent.wait() == -signal.SIGKILL
        try:
            with postroom.open(sqlite_url) as room:
                assert room.send("q", "goes on").status == "00"
        finally:
            os.kill(child, signal.SIGKILL)
