"""Fast calls of functions in the database, prepared once per connection.

A cursor of the driver takes as long as the server needs for a send, so these calls use libpq directly. Values are
integers, texts, bytes and lists of integers; results are integers, texts and bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, LiteralString

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from postroom.store.kernel.session import Row

_BINARY = 1
_UNPREPARED = "26000"  # the driver lets all go when a transaction was rolled back
_MISSING = b"\xff\xff\xff\xff"  # the length of a column without a value
_NUL = "PostgreSQL text fields cannot contain NUL (0x00) bytes"


def _number(value: bytes) -> int:
    return int.from_bytes(value, "big", signed=True)


def _text(value: str) -> bytes:
    text = value.encode()
    if b"\0" in text:
        raise psycopg.DataError(_NUL)
    return text


def _list(value: list[int]) -> bytes:
    return b"{%s}" % ",".join(map(str, value)).encode()


_READERS: dict[str, Callable[[bytes], Any]] = {"n": _number, "t": bytes.decode, "b": bytes}
_WRITERS: dict[str, Callable[[Any], bytes]] = {"n": Struct(">q").pack, "t": _text, "b": bytes, "l": _list}
_AS_TEXT = "l"  # the rest goes as the server stores it


class Call:
    """A statement that returns rows. ``given`` has a letter for each value, ``columns`` one for each column: n is a
    number, t a text, b bytes, l a list of numbers."""

    def __init__(self, statement: LiteralString, given: str, columns: str) -> None:
        self._statement = statement.encode()
        self._name = self._statement.partition(b"(")[0]  # by which the server knows it
        self._writers = [_WRITERS[letter] for letter in given]
        self._formats = [0 if letter == _AS_TEXT else _BINARY for letter in given]
        self._readers = [(number, _READERS[letter]) for number, letter in enumerate(columns)]

    def made(self, connection: psycopg.Connection[Row], values: Sequence[Any]) -> list[Row]:
        """Call the function in a transaction of its own; returns its rows."""
        result = self._answer(connection, values)
        get, readers = result.get_value, self._readers
        return [
            tuple([None if (value := get(row, column)) is None else read(value) for column, read in readers])
            for row in range(result.ntuples)
        ]

    def number(self, connection: psycopg.Connection[Row], values: Sequence[Any]) -> int | None:
        """Like ``made``, of a function that returns one number."""
        value = self._answer(connection, values).get_value(0, 0)
        return None if value is None else _number(value)

    def _answer(self, connection: psycopg.Connection[Row], values: Sequence[Any]) -> PGresult:
        given: Any = [  # the driver takes None, and does not say so
            None if value is None else write(value) for write, value in zip(self._writers, values, strict=True)
        ]
        result = connection.pgconn.exec_prepared(self._name, given, self._formats, _BINARY)
        if result.status != ExecStatus.TUPLES_OK:
            result = self._again(connection, result, given)
        return result

    def _again(self, connection: psycopg.Connection[Row], result: PGresult, given: Any) -> PGresult:
        """Prepare the statement and call again, if only that was missing; the server has done nothing then."""
        error = error_from_result(result, encoding="utf-8")
        if error.sqlstate != _UNPREPARED:
            raise error
        pgconn = connection.pgconn
        prepared = pgconn.prepare(self._name, self._statement)
        if prepared.status != ExecStatus.COMMAND_OK:
            raise error_from_result(prepared, encoding="utf-8")
        again = pgconn.exec_prepared(self._name, given, self._formats, _BINARY)
        if again.status != ExecStatus.TUPLES_OK:
            raise error_from_result(again, encoding="utf-8")
        return again


class RecordCall(Call):
    """A statement that returns one record: integers that are all present or all missing, then other columns.

    A composite value costs the server less than a row.
    """

    def __init__(self, statement: LiteralString, given: str, numbers: int, columns: str) -> None:
        super().__init__(statement, given, columns)
        self._numbers = Struct(">4x" + numbers * "8xq")  # how many columns; of each its type, its length and itself
        self._reads = [_READERS[letter] for letter in columns]

    def told(self, connection: psycopg.Connection[Row], values: Sequence[Any]) -> Row | None:
        """The record, integers first; None if it has none."""
        return self.record(self._answer(connection, values).get_value(0, 0))

    def record(self, value: bytes | None) -> Row | None:
        if value is None or value[8:12] == _MISSING:
            return None
        columns: list[Any] = list(self._numbers.unpack_from(value))
        place = self._numbers.size
        for read in self._reads:
            start = place + 8
            size = value[place + 4 : start]
            if size == _MISSING:
                columns.append(None)
                place = start
            else:
                place = start + int.from_bytes(size, "big")
                columns.append(read(value[start:place]))
        return tuple(columns)
