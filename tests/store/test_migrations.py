"""Migrations: written once for both databases, numbered without a gap, and a room of the first version opens."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import apsw
import psycopg
import pytest

import postroom
from postroom.model.message import message_hash
from postroom.store import migrations
from postroom.store.migrations import MIGRATIONS, for_postgres, for_sqlite
from postroom.store.sqlite.connection import APPLICATION_STATEMENT

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


def test_every_migration_has_its_place_by_its_number() -> None:
    files = sorted(Path(migrations.__file__).parent.glob("m*.py"))
    assert [int(file.name[1:5]) for file in files] == list(range(1, len(MIGRATIONS) + 1))
    for file, statements in zip(files, MIGRATIONS, strict=True):
        assert getattr(migrations, file.stem).STATEMENTS is statements


def test_no_word_is_left_that_a_database_does_not_know() -> None:
    for statement in (statement for statements in MIGRATIONS for statement in statements):
        for rendered in (for_sqlite(statement), for_postgres(statement)):
            assert not re.search(r"[{}]", rendered.replace("'{}'", "")), rendered
