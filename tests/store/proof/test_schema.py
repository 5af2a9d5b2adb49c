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
