"""Who is measured: Postroom, the same work by hand on ``sqlite3``, and two queue libraries.

Each answers to the same few calls and keeps its own file. Each is set to the same durability, and that is read back:
a queue that may lose its last messages would win every comparison and mean nothing.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import persistqueue
from litequeue import LiteQueue

import postroom
from postroom.store.sqlite.store import SqliteStore

QUEUE = "q"
PLAIN = "plain sqlite3"
PEERS = ("persist-queue", "litequeue")

_SYNCHRONOUS_FULL = 2
_CACHE_SAME_AS_POSTROOM = "PRAGMA cache_size = -32768"


class Durability(NamedTuple):
    """What decides when a commit is on disk, and how often the log is copied back."""

    synchronous: int
    journal_mode: str
    wal_autocheckpoint: int

    def told(self) -> str:
        assert self.synchronous == _SYNCHRONOUS_FULL, self
        return f"synchronous {self.synchronous} (FULL), journal_mode {self.journal_mode}"


@dataclass(frozen=True, slots=True)
class Contender:
    """Calls bound without a layer in between, so that nobody is charged for ours."""

    name: str
    send: Callable[[str], object]
    receive: Callable[[], Any]
    body_of: Callable[[Any], object]
    durability: Durability
    close: Callable[[], object]
    send_many: Callable[[Sequence[str]], object] | None = None

    def __post_init__(self) -> None:
        assert self.durability.synchronous == _SYNCHRONOUS_FULL, f"{self.name}: {self.durability}"
        assert self.durability.journal_mode == "wal", f"{self.name}: {self.durability}"


def open_postroom(directory: Path) -> Contender:
    room = postroom.open(directory / "postroom.db")
    room.queues.create(QUEUE)
    assert isinstance(room.store, SqliteStore)
    pragma = room.store.session.connection.pragma
    return Contender(
        name="postroom",
        send=partial(room.send, QUEUE),
        receive=partial(room.receive, QUEUE),
        body_of=lambda received: received.message.body,
        durability=Durability(pragma("synchronous"), pragma("journal_mode"), pragma("wal_autocheckpoint")),
        close=room.close,
        send_many=partial(room.send_many, QUEUE),
    )


class PlainTable:
    """The limit: what a queue costs when nothing is checked, hashed, counted or journaled."""

    def __init__(self, file: Path) -> None:
        self.connection = sqlite3.connect(file, isolation_level=None)
        execute = self._execute = self.connection.execute
        execute("PRAGMA journal_mode = WAL")
        execute("PRAGMA synchronous = FULL")
        execute(_CACHE_SAME_AS_POSTROOM)
        execute("CREATE TABLE m (id INTEGER PRIMARY KEY, q INTEGER, state INT, body TEXT, created INT, processed INT)")
        execute("CREATE INDEX m_chain ON m (q, state, id)")

    def send(self, body: str) -> None:
        execute = self._execute
        execute("BEGIN IMMEDIATE")
        execute("INSERT INTO m (q, state, body, created) VALUES (1, 0, ?, ?)", (body, time.time_ns()))
        execute("COMMIT")

    def send_many(self, bodies: Sequence[str]) -> None:
        self._execute("BEGIN IMMEDIATE")
        now = time.time_ns()
        self.connection.executemany(
            "INSERT INTO m (q, state, body, created) VALUES (1, 0, ?, ?)", ((body, now) for body in bodies)
        )
        self._execute("COMMIT")

    def receive(self) -> str:
        execute = self._execute
        execute("BEGIN IMMEDIATE")
        id, body = execute("SELECT id, body FROM m WHERE q = 1 AND state = 0 ORDER BY id LIMIT 1").fetchone()
        execute("UPDATE m SET state = 1, processed = ? WHERE id = ?", (time.time_ns(), id))
        execute("COMMIT")
        assert isinstance(body, str)
        return body


def open_plain(directory: Path) -> Contender:
    table = PlainTable(directory / "plain.db")
    return Contender(
        name=PLAIN,
        send=table.send,
        receive=table.receive,
        body_of=str,
        durability=durability_of(table.connection),
        close=table.connection.close,
        send_many=table.send_many,
    )


def open_persist_queue(directory: Path) -> Contender:
    """Its queue without acknowledgements: one commit per get, where the other kind searches all it ever gave out."""
    queue = persistqueue.FIFOSQLiteQueue(str(directory / "persist-queue"), auto_commit=True)
    putter: Any = queue._putter  # it declares both as None
    getter: Any = queue._getter
    for connection in (putter, getter):
        connection.execute("PRAGMA synchronous = FULL")
    assert durability_of(getter) == durability_of(putter)
    return Contender(
        name=PEERS[0],
        send=queue.put,
        receive=queue.get_nowait,
        body_of=str,
        durability=durability_of(putter),
        close=queue.close,
    )


def open_litequeue(directory: Path) -> Contender:
    """A pop alone, one commit; calling a message done would be a second one."""
    queue = LiteQueue(directory / "litequeue.db")
    queue.conn.execute("PRAGMA synchronous = FULL")  # it chooses NORMAL, which may lose the last commits
    return Contender(
        name=PEERS[1],
        send=queue.put,
        receive=queue.pop,
        body_of=lambda popped: popped.data,
        durability=durability_of(queue.conn),
        close=queue.close,
    )


def open_all(directory: Path) -> list[Contender]:
    directory.mkdir()
    return [opener(directory) for opener in (open_postroom, open_plain, open_persist_queue, open_litequeue)]


def open_batching(directory: Path) -> list[Contender]:
    """Those that can send many in one commit."""
    directory.mkdir()
    return [opener(directory) for opener in (open_postroom, open_plain)]


def durability_of(connection: sqlite3.Connection) -> Durability:
    def pragma(name: str) -> Any:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]

    return Durability(pragma("synchronous"), pragma("journal_mode"), pragma("wal_autocheckpoint"))
