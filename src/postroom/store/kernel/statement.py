"""A statement that differs between the two databases, with both texts side by side.

Most statements are the same for both and are plain strings, in which ``?`` marks a parameter. One that differs is a
``Statement``, or contains one: concatenation keeps both texts.
"""

from __future__ import annotations


class Statement(str):
    """The text for SQLite, and that for PostgreSQL; missing for a database that never runs it.

    ``setwise`` is the same work for many rows at once, on PostgreSQL: each parameter is a list. ``several`` is that on
    SQLite: the statement, in which ``{rows}`` is replaced by one group of parameters for each row, and the group.
    """

    postgres: str
    setwise: str | None
    several: tuple[str, str] | None

    def __new__(
        cls,
        sqlite: str,
        postgres: str | None = None,
        setwise: str | None = None,
        several: tuple[str, str] | None = None,
    ) -> Statement:
        statement = super().__new__(cls, sqlite)
        statement.postgres = sqlite if postgres is None else postgres
        statement.setwise = setwise
        statement.several = several
        return statement

    def __add__(self, other: str) -> Statement:
        return Statement(str.__add__(self, other), self.postgres + postgres_words(other))

    def __radd__(self, other: str) -> Statement:
        return Statement(str.__add__(other, self), postgres_words(other) + self.postgres)


def postgres_words(statement: str) -> str:
    return statement.postgres if isinstance(statement, Statement) else statement


#: Behind a SELECT whose row is locked. SQLite has one writer at a time.
FOR_UPDATE = Statement("", " FOR NO KEY UPDATE")
#: The highest of some values in one row.
GREATEST = Statement("max", "greatest")
#: Whatever stands in a parameter that is a JSON list.
TEXTS = Statement("(SELECT value FROM json_each(?))", "(SELECT json_array_elements_text(?::json))")
NUMBERS = Statement("(SELECT value FROM json_each(?))", "(SELECT json_array_elements_text(?::json)::bigint)")
