"""Checks the schema of a room on SQLite against its migrations.

A changed letter in it is no damage for SQLite: a column then has another name, and reads as empty.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import Any

import apsw

from postroom.store.migrations import MIGRATIONS, for_sqlite
from postroom.store.migrations.m0020_selectors import TRIGGERS

_DESCRIBED = """
SELECT CAST(type AS BLOB), CAST(name AS BLOB), CAST(tbl_name AS BLOB), CAST(sql AS BLOB) FROM sqlite_schema
WHERE sql IS NOT NULL AND tbl_name NOT LIKE 'sqlite_%'
"""
_SELECTS = "SELECT EXISTS (SELECT 1 FROM selections)"


def misdescribed(connection: apsw.Connection) -> Iterator[str]:
    """The tables and indexes that differ from the migrations, in words."""
    selects = connection.execute(_SELECTS).get
    for kind, name, *_ in sorted(_made(bool(selects)) - _described(connection)):
        yield f"the description of {kind.decode()} {name.decode()} is damaged"


def _described(connection: apsw.Connection) -> set[tuple[Any, ...]]:
    return set(connection.execute(_DESCRIBED).fetchall())


@cache
def _made(selects: bool) -> frozenset[tuple[Any, ...]]:
    """The schema that migrations make in an empty file; optionally with what selectors add."""
    with contextlib.closing(apsw.Connection(":memory:")) as connection:
        for statement in (*chain.from_iterable(MIGRATIONS), *(TRIGGERS if selects else ())):
            connection.execute(for_sqlite(statement))
        return frozenset(_described(connection))
