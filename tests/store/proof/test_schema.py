"""A table whose description was changed is named."""

from __future__ import annotations

from contextlib import closing

import apsw

import postroom
from postroom.store.proof.schema import misdescribed


def test_a_changed_description_is_named(sqlite_url: str) -> None:
    postroom.open(sqlite_url).close()
    with closing(apsw.Connection(sqlite_url)) as connection:
        assert list(misdescribed(connection)) == []
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET sql = replace(sql, 'owner', 'ownes') WHERE name = 'locks'")
        assert list(misdescribed(connection)) == ["the description of table locks is damaged"]


def test_a_changed_trigger_is_named_as_soon_as_there_is_one(sqlite_url: str) -> None:
    with postroom.open(sqlite_url) as room:
        room.queues.create("q")
        assert not room.receive("q", where="n = 1")
    with closing(apsw.Connection(sqlite_url)) as connection:
        assert list(misdescribed(connection)) == []
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET sql = replace(sql, 'NEW', 'OLD') WHERE name = 'messages_select'")
        assert list(misdescribed(connection)) == ["the description of trigger messages_select is damaged"]
