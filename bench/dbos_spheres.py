"""The peer of spheres: `dbos` on SQLite, a durable workflow of three steps that are undone if it fails.

Written as its documentation advises: ``@DBOS.workflow`` calls ``@DBOS.step`` functions, and an ``except`` in the
workflow calls the steps that undo them, in the reverse order. Its steps do nothing but answer: what is measured is what
it keeps.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from dbos import DBOS

from contenders import Durability

STEPS = ("billing", "stock", "shipping")


class Refused(Exception):
    """Why half of the workflows fail."""


@DBOS.step()
def do(recipient: str, body: str) -> str:
    return recipient


@DBOS.step()
def undo(recipient: str, body: str) -> str:
    return recipient


@DBOS.workflow()
def book(bodies: list[str], undos: list[str], fails: bool) -> str:
    done: list[tuple[str, str]] = []
    try:
        for recipient, body, back in zip(STEPS, bodies, undos, strict=True):
            do(recipient, body)
            done.append((recipient, back))
        if fails:
            raise Refused
    except Refused:
        for recipient, back in reversed(done):
            undo(recipient, back)
        return "aborted"
    return "committed"


class DbosSpheres:
    """One store, and the engine that is open on it; there can be one of them in a process."""

    def __init__(self, folder: Path, journal_mode: str | None = None) -> None:
        self._file = folder / "dbos.sqlite"
        if journal_mode is not None:  # a file remembers it, and everyone who opens it follows
            with sqlite3.connect(self._file) as connection:
                connection.execute(f"PRAGMA journal_mode = {journal_mode}")
            connection.close()
        self._dbos = DBOS(
            config={
                "name": "spheres",
                "system_database_url": f"sqlite:///{self._file}",
                "log_level": "ERROR",
            }
        )
        DBOS.launch()

    @property
    def durability(self) -> Durability:
        """Read back from one of its own connections."""
        with self._dbos._sys_db.engine.connect() as connection:

            def pragma(name: str) -> object:
                return connection.exec_driver_sql(f"PRAGMA {name}").scalar()

            return Durability(
                int(str(pragma("synchronous"))), str(pragma("journal_mode")), int(str(pragma("wal_autocheckpoint")))
            )

    def book(self, bodies: list[str], undos: list[str], fails: bool) -> None:
        assert book(bodies, undos, fails) == ("aborted" if fails else "committed")

    def steps(self) -> int:
        """How many it has recorded."""
        with sqlite3.connect(self._file) as connection:
            (count,) = connection.execute("SELECT count(*) FROM operation_outputs").fetchone()
        connection.close()
        return int(count)

    def close(self) -> None:
        DBOS.destroy()
