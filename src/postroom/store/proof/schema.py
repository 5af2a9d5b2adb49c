"""Whether the tables of a room on SQLite are still described as its migrations made them.

A changed letter in a description is no damage to SQLite: a column has another name then, and is read as empty.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cache
from typing import Any

import apsw

from postroom.store.migrations import MIGRATIONS, for_sqlite

_DESCRIBED = """
SELECT CAST(type AS BLOB), CAST(name AS BLOB), CAST(tbl_name AS BLOB), CAST(sql AS BLOB) FROM sqlite_schema
WHERE sql IS NOT NULL AND tbl_name NOT LIKE 'sqlite_%'
"""


def misdescribed(connection: apsw.Connection) -> Iterator[str]:
    """The tables and indexes of a room with all migrations that are not as these made them, in words."""
    for kind, name, *_ in sorted(_made() - _described(connection)):
        yield f"the description of {kind.decode()} {name.decode()} is damaged"


def _described(connection: apsw.Connection) -> set[tuple[Any, ...]]:
    return set(connection.execute(_DESCRIBED).fetchall())


@cache
def _made() -> frozenset[tuple[Any, ...]]:
    """What the migrations make in an empty file."""
    with contextlib.closing(apsw.Connection(":memory:")) as connection:
        for statements in MIGRATIONS:
            for statement in map(for_sqlite, statements):
                connection.execute(statement)
        return frozenset(_described(connection))
