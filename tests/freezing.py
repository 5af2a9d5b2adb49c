"""Stop another process of a room between two of its transactions.

Whoever is stopped in the midst of one keeps its locks, so that everybody else waits until their time is up. A test of
what comes too late would fail by that now and then, whatever it has to say.
"""

from __future__ import annotations

import os
import signal
from time import monotonic, sleep

import psycopg

from postroom.room import Postroom
from postroom.store.kernel import owner

_OPEN = "SELECT pid, xact_start FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def freeze(room: Postroom, pid: int) -> None:
    """Stop it where it holds nothing; ``SIGCONT`` lets it go on."""
    if not room.url.startswith("postgres"):
        room.store.transact("send", lambda tx: _stop(pid))  # nobody else is in a transaction that writes
        return
    end = monotonic() + 60
    while True:
        _stop(pid)
        if not _someone_stays_in_a_transaction(room.url):
            return
        os.kill(pid, signal.SIGCONT)
        assert monotonic() < end, "it is never between two transactions"
        sleep(0.01)


def _stop(pid: int) -> None:
    token = owner.process_token(pid)
    os.kill(pid, signal.SIGSTOP)
    end = monotonic() + 60
    while not owner.is_stopped(token):
        assert monotonic() < end, "it does not stop"
        sleep(0.001)


def _someone_stays_in_a_transaction(url: str) -> bool:
    with psycopg.connect(url, autocommit=True) as connection:
        before = connection.execute(f"{_OPEN} AND xact_start IS NOT NULL").fetchall()
        sleep(0.2)
        return bool(set(before) & set(connection.execute(_OPEN).fetchall()))
