"""What the tests' bank has: payments that stand, and transactions that are prepared."""

from __future__ import annotations

import psycopg

Connection = psycopg.Connection[tuple[object, ...]]


def pay(connection: Connection, booking: str, amount: int = 100, customer: int = 1) -> None:
    """An amount below 1 fails at once; a customer that is not there when the transaction is prepared."""
    connection.execute("INSERT INTO payments VALUES (%s, %s, %s)", (booking, amount, customer))


def paid(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        return {str(row[0]) for row in connection.execute("SELECT booking FROM payments")}


def prepared(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [xid.gtrid for xid in connection.tpc_recover()]
