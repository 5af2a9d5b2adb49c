"""One room of each database for all tests of tables: each test has a transaction of its own, which is rolled back."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from postroom.store import open_store
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction
from postroom.store.sqlite.store import SqliteStore


def _postgres(server: str) -> str:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA tables")
    return f"{server}&options=-csearch_path%3Dtables"


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    if request.param == "sqlite":
        url = str(tmp_path_factory.mktemp("tables") / "room.db")
    else:
        url = _postgres(request.getfixturevalue("postgres_server"))
    opened = open_store(url, actor="tester")
    yield opened
    opened.close()


@pytest.fixture
def tx(store: Store) -> Iterator[Transaction]:
    """A transaction that nobody else sees, and that leaves nothing."""
    with store._entered():
        if isinstance(store, SqliteStore):
            store._take_turn("send")
        store._transaction.clear()
        store._transaction.journal.actor = store.actor
        store._begin()
        try:
            yield store._transaction
        finally:
            store._rollback()
            store._transaction.clear()
            store._transaction.keys.rolled_back()
