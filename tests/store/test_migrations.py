"""Migrations: written once for both databases, numbered without a gap, and a room of the first version opens."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import apsw
import psycopg
import pytest

import postroom
from postroom.model.message import message_hash
from postroom.store import migrations
from postroom.store.migrations import (
    MIGRATIONS,
    for_postgres,
    for_sqlite,
    m0019_leases_shared,
    m0023_selecting_on_demand,
    m0026_calm_queues,
)
from postroom.store.sqlite.connection import APPLICATION_STATEMENT, VERSION_STATEMENTS

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
HASH_OF_N = message_hash(100002, 7, None, "waits", "text", None, '{"n":1}')


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
    url: str = request.getfixturevalue(f"empty_{store}_url")
    OLDER[store](url)
    program = tmp_path / "p.demaq"
    program.write_text(
        "create queue r kind basic mode persistent create property p as xs:string queue q, r value string(.)"
    )
    with postroom.open(url) as room:
        assert [message.body for message in room.queues.info("q")] == ["waits"]
        assert [message.body for message in room.queues.history("q")] == ["done"]
        assert room.send("q", "new").key > "00001.00002"
        room.load(program)
        room.send("q", "worked out")
        assert [message.properties.get("p") for message in room.queues.info("q")] == [None, None, "worked out"]
        assert [event.verb for event in room.trace("00001.00001")] == ["put", "take"]
        assert room.receive("q").message.body == "waits"  # type: ignore[union-attr]  # there is one
    with postroom.open(url) as again:
        (found,) = [count for count in again.queues.accept().queues if count.queue == "q"]
        assert (found.unprocessed, found.processed) == (2, 2)


LEASED = (
    "INSERT INTO journal (seq, at, verb, message, prior, source, target, actor) VALUES"
    " (5, 8, 'lease', 100002, 4, 1, 1, 'old')",
    "UPDATE messages SET state = -2, last = 5, processed = 8, attempts = 1 WHERE key = 100002",
    "INSERT INTO deliveries (fence, message, queue, owner, until) VALUES (5, 100002, 1, '', 9000000000000000)",
    "UPDATE tallies SET upto = 5, departed = departed + 1",
    "SELECT setval('journal_numbers', 5)",
)


def make_before(url: str, migration: Sequence[str], *rows: str) -> None:
    """A room of the version without a migration, with some rows."""
    make_old_postgres(url)
    with psycopg.connect(url, autocommit=True) as connection:
        for number, statements in enumerate(MIGRATIONS[1 : MIGRATIONS.index(tuple(migration))], 2):
            for statement in filter(None, map(for_postgres, statements)):
                connection.execute(statement.encode())
            connection.execute("INSERT INTO postroom_schema (version) VALUES (%s)", (number,))
        for row in rows:
            connection.execute(row.encode())


def test_leases_of_the_version_before_are_counted(empty_postgres_url: str) -> None:
    """There a tally had what was leased among the departed."""
    make_before(empty_postgres_url, m0019_leases_shared.STATEMENTS, *LEASED)
    with postroom.open(empty_postgres_url) as room:
        (found,) = [count for count in room.count().queues if count.queue == "q"]
        assert (found.unprocessed, found.leased, found.processed) == (0, 1, 1)
        assert room.journal.verify().differences == ()
        room.consumers.lease(5).done()
        assert room.journal.verify().differences == ()


def test_who_selected_in_the_version_before_selects_again_on_a_server(empty_postgres_url: str) -> None:
    """There the triggers were in every room, and entries that they kept."""
    selection = "INSERT INTO selections (queue, name) VALUES (1, 'n')"
    make_before(empty_postgres_url, m0026_calm_queues.STATEMENTS, selection)
    with postroom.open(empty_postgres_url) as room:
        (queue,) = [count for count in room.count().queues if count.queue == "q"]
        assert room.store.read(lambda tx: tx.selections.names(tx.queues.to_read(1))) == set()
        room.send("q", "new", properties={"n": 2})
        message = room.receive("q", where="n = 2").message
        assert message is not None
        assert message.body == "new"
        (now,) = [count for count in room.count().queues if count.queue == "q"]
        assert now.unprocessed == queue.unprocessed
        assert room.journal.verify().differences == ()


def test_who_selected_in_the_version_before_selects_again(empty_sqlite_url: str) -> None:
    """There the triggers were in every room."""
    before = MIGRATIONS.index(m0023_selecting_on_demand.STATEMENTS)
    connection = apsw.Connection(empty_sqlite_url)
    for statement in (each for statements in MIGRATIONS[:before] for each in map(for_sqlite, statements)):
        connection.execute(statement)
    for statement in OLD:
        connection.execute(statement)
    for message in MESSAGES:
        connection.execute(MESSAGE.format("?"), message)
    connection.execute("UPDATE messages SET properties = '{\"n\":1}', hash = ? WHERE key = 100002", (HASH_OF_N,))
    connection.execute("INSERT INTO selections (queue, name) VALUES (1, 'n')")
    connection.execute("INSERT INTO selected VALUES (1, 'n', NULL, 1.0, 0, 4, 100002)")
    connection.execute(VERSION_STATEMENTS[before])
    connection.execute(APPLICATION_STATEMENT)
    connection.close()
    with postroom.open(empty_sqlite_url) as room:
        room.send("q", "new", properties={"n": 2})
        assert [room.receive("q", where=f"n = {n}").message.body for n in (2, 1)] == ["new", "waits"]  # type: ignore[union-attr]
        assert room.store.read(lambda tx: tx.session.damage()) == []


def test_every_migration_has_its_place_by_its_number() -> None:
    files = sorted(Path(migrations.__file__).parent.glob("m*.py"))
    assert [int(file.name[1:5]) for file in files] == list(range(1, len(MIGRATIONS) + 1))
    for file, statements in zip(files, MIGRATIONS, strict=True):
        assert getattr(migrations, file.stem).STATEMENTS is statements


def test_no_word_is_left_that_a_database_does_not_know() -> None:
    for statement in (statement for statements in MIGRATIONS for statement in statements):
        for rendered in (for_sqlite(statement), for_postgres(statement)):
            assert not re.search(r"[{}]", rendered.replace("'{}'", "")), rendered


def test_functions_of_the_server_are_listed_with_the_migration_that_has_their_present_text() -> None:
    known: dict[str, str] = {}
    for module in sorted(name for name in vars(migrations) if re.fullmatch(r"m\d{4}_\w+", name)):
        for statement in map(for_postgres, getattr(migrations, module).STATEMENTS):
            made = re.match(r"(CREATE|DROP)(?: OR REPLACE)? FUNCTION (?:IF EXISTS )?(\w+)", statement)
            if made is not None and made[1] == "CREATE":
                known[made[2]] = module
            elif made is not None:
                known.pop(made[2], None)
    assert known == {name: module for module, names in migrations.IN_FORCE.items() for name in names.split()}
