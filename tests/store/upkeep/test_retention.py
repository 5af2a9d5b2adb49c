"""What a sweep removes on both stores, what it leaves, and what can be asked afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw
import psycopg
import pytest

import postroom
from postroom.model.key import key_number, key_text
from postroom.model.message import Draft, message_hash
from postroom.room import Postroom
from postroom.store.kernel.batch import Batch, Places, Put, Reset, Take
from postroom.store.kernel.queues import Keep, Queue
from postroom.store.kernel.slices import Member
from postroom.store.kernel.transaction import Transaction
from postroom.store.migrations import MIGRATIONS, for_postgres, for_sqlite
from postroom.store.sqlite.connection import APPLICATION_STATEMENT


def queue(room: Postroom, name: str, keep: int = Keep.SLICED) -> None:
    room.store.transact("create-queue", lambda tx: tx.queues.create(name, "rules", path=name, keep=keep))


def locked(tx: Transaction, name: str) -> Queue:
    found = tx.queues.named(name)
    assert found is not None
    return found


def put(room: Postroom, name: str, body: str, value: str | None = None) -> str:
    def work(tx: Transaction) -> int:
        places = Places(((tx.slices.slicing("s"), value),), ((tx.slices.index("i"), value),)) if value else Places()
        return Batch(tx).write([Put(locked(tx, name), Draft.of(body), None, "r", places)], 0)[0]

    return key_text(room.store.transact("step", work))


def take_all(room: Postroom, name: str, *, sliced: bool = True) -> None:
    def work(tx: Transaction) -> None:
        found = locked(tx, name)
        Batch(tx).write([Take(found, each, sliced) for each in tx.messages.between(found, 0, 2**62)], 0)

    room.store.transact("step", work)


def reset(room: Postroom, value: str) -> None:
    def work(tx: Transaction) -> None:
        Batch(tx).write([Reset(tx.slices.slicing("s"), value, "s", "r")], tx.journal.newest())

    room.store.transact("step", work)


def sweep(room: Postroom, *unsliced: str, limit: int = 100) -> int:
    def work(tx: Transaction) -> int:
        return tx.retention.sweep([locked(tx, name) for name in unsliced], limit)

    return room.store.transact("sweep", work)


def counts(room: Postroom, name: str) -> tuple[int, int]:
    count = room.accept(name).queues[0]
    return count.unprocessed, count.processed


def rows(room: Postroom, table: str) -> int:
    statements = {
        "spent": "SELECT count(*) FROM spent",
        "entries": "SELECT count(*) FROM entries",
        "slices": "SELECT count(*) FROM slices",
    }
    found = room.store.read(lambda tx: tx.session.row(statements[table]))
    assert found is not None
    return int(found[0])


def test_a_sweep_removes_what_is_processed_and_held_by_nothing(room: Postroom) -> None:
    queue(room, "q")
    put(room, "q", "held", "k")
    free = put(room, "q", "free")
    take_all(room, "q")
    put(room, "q", "waiting")
    assert sweep(room) == 1
    assert counts(room, "q") == (1, 1)
    with pytest.raises(postroom.errors.MessageGone):
        room.show(free)
    reset(room, "k")
    assert sweep(room) == 1
    assert sweep(room) == 0
    assert counts(room, "q") == (1, 0)
    assert [message.body for message in room.info("q")] == ["waiting"]


def test_a_swept_message_can_still_be_traced_and_leaves_no_row_behind(room: Postroom) -> None:
    queue(room, "q")
    key = put(room, "q", "m", "k")
    take_all(room, "q")
    reset(room, "k")
    assert (rows(room, "spent"), rows(room, "entries"), rows(room, "slices")) == (1, 1, 0)
    assert sweep(room) == 1
    assert [event.verb for event in room.trace(key)] == ["put", "take"]
    assert (rows(room, "spent"), rows(room, "entries"), rows(room, "slices")) == (0, 0, 0)
    last = room.journal(1)[0]
    assert (last.verb, last.source, last.detail) == ("sweep", "q", {"messages": 1, "keys": [[key_number(key)] * 2]})


def test_of_a_queue_without_slices_every_processed_message_goes(room: Postroom) -> None:
    queue(room, "q")
    for number in range(5):
        put(room, "q", str(number))
    take_all(room, "q", sliced=False)
    put(room, "q", "waiting")
    assert sweep(room) == 0
    assert sweep(room, "q") == 5
    assert counts(room, "q") == (1, 0)


def test_a_sweep_takes_no_more_than_its_limit_from_all_queues_together(room: Postroom) -> None:
    for name in ("q", "p"):
        queue(room, name)
        for number in range(3):
            put(room, name, str(number))
    take_all(room, "q")
    take_all(room, "p", sliced=False)
    assert [sweep(room, "p", limit=4) for _ in range(3)] == [4, 2, 0]
    assert (counts(room, "q"), counts(room, "p")) == ((0, 0), (0, 0))


def test_a_message_that_was_received_and_noted_goes_once(room: Postroom) -> None:
    queue(room, "q")
    put(room, "q", "1")
    assert room.receive("q").message is not None
    assert sweep(room, "q") == 1
    assert counts(room, "q") == (0, 0)


def test_notes_of_messages_that_have_gone_another_way_are_forgotten(room: Postroom) -> None:
    queue(room, "q")
    put(room, "q", "1")
    take_all(room, "q")
    room.store.transact("mode", lambda tx: tx.messages.purge_processed(locked(tx, "q")))
    assert rows(room, "spent") == 1
    assert sweep(room) == 0
    assert rows(room, "spent") == 0
    assert counts(room, "q") == (0, 0)


def test_a_message_that_a_slice_took_hold_of_again_stays(room: Postroom) -> None:
    queue(room, "q")
    key = key_number(put(room, "q", "1"))
    take_all(room, "q")

    def hold(tx: Transaction) -> None:
        stored = tx.messages.find(key)
        assert stored is not None
        tx.slices.add([Member(tx.slices.slicing("s"), "k", stored.position, key)], [])

    room.store.transact("load", hold)
    assert sweep(room, "q") == 0
    reset(room, "k")
    assert sweep(room) == 1


def test_the_processed_messages_of_a_queue_are_told_by_key(room: Postroom) -> None:
    queue(room, "q")
    keys = [key_number(put(room, "q", str(number))) for number in range(3)]
    take_all(room, "q")
    put(room, "q", "waiting")
    assert sorted(room.store.transact("load", lambda tx: list(tx.retention.processed(locked(tx, "q"))))) == keys


# --- definitions, for the catalog --------------------------------------------------------------------------------


def test_all_definitions_and_versions_are_told_in_their_order(url: str) -> None:
    from postroom.model.definitions import Definition

    with postroom.open(url, actor="first") as room:
        room.store.transact("load", lambda tx: tx.definitions.define(Definition("x", "a"), {}))
        room.store.transact("load", lambda tx: tx.definitions.define(Definition("y", "b"), {}))
    with postroom.open(url, actor="second") as room:
        room.store.transact("load", lambda tx: tx.definitions.define(Definition("x", "a", {"n": 1}), {}))
        found = room.store.read(lambda tx: tx.definitions.all())
        versions = room.store.read(lambda tx: tx.definitions.versions())
    assert [(each.kind, each.name, each.since) for each in found] == [("y", "b", 2), ("x", "a", 3)]
    assert [(number, actor) for number, _, actor in versions] == [(1, "first"), (2, "first"), (3, "second")]
    assert sorted(at for _, at, _ in versions) == [at for _, at, _ in versions]


# --- a room of version 1 -----------------------------------------------------------------------------------------

OLD = (
    "INSERT INTO queues (name, kind, path, ordinal, keep, hold, retired, command, arrived, departed, processed)"
    " VALUES ('q', 'queue', 'q', 0, 1, 0, 0, NULL, 1, 1, 1)",
    "INSERT INTO journal (seq, at, verb, message, prior, source, target, actor) VALUES"
    " (1, 5, 'create-queue', NULL, NULL, NULL, 1, 'old'), (2, 5, 'put', 100001, NULL, NULL, 1, 'old'),"
    " (3, 6, 'take', 100001, 2, 1, 1, 'old'), (4, 7, 'put', 100002, NULL, NULL, 1, 'old')",
    "UPDATE counters SET value = 100003 WHERE name = 'keys'",
)
MESSAGE = (
    "INSERT INTO messages (key, queue, state, position, number, created, processed, format, body, hash, properties)"
    " VALUES ({0}, 1, {0}, {0}, {0}, {0}, {0}, 'text', {0}, {0}, '{{}}')"
)
MESSAGES = [
    (key, state, position, number, created, processed, body, message_hash(key, created, None, body, "text", None, "{}"))
    for key, state, position, number, created, processed, body in (
        (100001, 0, 3, 1, 5, 6, "done"),
        (100002, 1, 4, 2, 7, None, "waits"),
    )
]


def make_old_sqlite(url: str) -> None:
    connection = apsw.Connection(url)
    for statement in map(for_sqlite, MIGRATIONS[0]):
        connection.execute(statement)
    for statement in OLD:
        connection.execute(statement)
    for message in MESSAGES:
        connection.execute(MESSAGE.format("?"), message)
    connection.execute("PRAGMA user_version = 1")
    connection.execute(APPLICATION_STATEMENT)
    connection.close()


def make_old_postgres(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE postroom_schema (version BIGINT PRIMARY KEY)")
        for statement in map(for_postgres, MIGRATIONS[0]):
            if statement:
                connection.execute(statement.encode())
        for old in OLD:
            connection.execute(old.encode())
        for message in MESSAGES:
            connection.execute(MESSAGE.format("%s").encode(), message)
        connection.execute("SELECT setval('journal_numbers', 4)")
        connection.execute("INSERT INTO postroom_schema (version) VALUES (1)")


OLDER: dict[str, Callable[[str], None]] = {"sqlite": make_old_sqlite, "postgres": make_old_postgres}


@pytest.mark.parametrize("store", OLDER)
def test_a_room_of_version_1_opens_with_its_messages_and_takes_rules(
    store: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url: str = request.getfixturevalue(f"{store}_url")
    OLDER[store](url)
    program = tmp_path / "p.demaq"
    program.write_text(
        "create queue r kind basic mode persistent create property p as xs:string queue q, r value string(.)"
    )
    with postroom.open(url) as room:
        assert [message.body for message in room.info("q")] == ["waits"]
        assert [message.body for message in room.history("q")] == ["done"]
        assert room.send("q", "new").key > "00001.00002"
        room.load(program)
        room.send("q", "worked out")
        assert [message.properties.get("p") for message in room.info("q")] == [None, None, "worked out"]
        assert [event.verb for event in room.trace("00001.00001")] == ["put", "take"]
        assert room.receive("q").message.body == "waits"  # type: ignore[union-attr]  # there is one
    with postroom.open(url) as again:
        assert counts(again, "q") == (2, 2)
