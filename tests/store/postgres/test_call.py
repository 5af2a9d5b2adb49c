"""Calls below the driver's cursors: every kind of value goes there and comes back, and errors are the driver's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from postroom.store.postgres.call import Call, RecordCall

Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def connection(postgres_url: str) -> Iterator[Connection]:
    with psycopg.connect(postgres_url, autocommit=True, client_encoding="UTF8") as made:
        made.execute(
            "CREATE FUNCTION echo(n BIGINT, t TEXT, b BYTEA, many BIGINT[], OUT x BIGINT, OUT y TEXT, OUT z BYTEA,"
            " OUT s BIGINT) LANGUAGE plpgsql AS $$ BEGIN x := n; y := t; z := b; s := (SELECT sum(e) FROM unnest(many)"
            " e); IF n = 0 THEN RAISE EXCEPTION 'in the way' USING ERRCODE = '40001'; END IF; END $$"
        )
        yield made


echo = Call("SELECT * FROM echo($1, $2, $3, $4)", "ntbl", "ntbn")


@pytest.mark.parametrize(
    "values",
    [
        (1, "plain", b"\x00\xff", [1, 2]),
        (-(2**63), "ä€𝄞\x1f\\'\"{}", b"", [2**62]),
        (2**63 - 1, "", b"\\x00", [-5]),
        (None, None, None, None),
    ],
)
def test_values_go_there_and_come_back(connection: Connection, values: tuple[Any, ...]) -> None:
    many = values[3]
    for _ in range(3):
        assert echo.made(connection, values) == [(*values[:3], None if many is None else sum(many))]


record = RecordCall("SELECT echo($1, $2, $3, $4)", "ntbl", 1, "tbn")


@pytest.mark.parametrize(
    "values",
    [
        (1, "plain", b"\x00\xff", [1, 2]),
        (-(2**63), "ä€𝄞\x1f\\'\"{}()", b"", [2**62]),
        (5, None, None, None),
        (6, "", b"", None),
    ],
)
def test_a_record_comes_back_as_a_row_does(connection: Connection, values: tuple[Any, ...]) -> None:
    assert record.told(connection, values) == echo.made(connection, values)[0]


@pytest.mark.parametrize("value", [0, -(2**63), 2**63 - 1, None])
def test_one_number_comes_back(connection: Connection, value: int | None) -> None:
    assert Call("SELECT int8pl($1, $2)", "nn", "n").number(connection, (value, 0)) == value


def test_a_record_without_its_numbers_is_none(connection: Connection) -> None:
    assert record.told(connection, (None, "text", b"", [])) is None
    assert record.record(None) is None


def test_what_the_driver_has_let_go_is_prepared_again(connection: Connection) -> None:
    echo.made(connection, (1, "a", b"", []))
    connection.execute("DEALLOCATE ALL")
    assert echo.made(connection, (2, "b", b"", [])) == [(2, "b", b"", None)]


def test_errors_have_their_state(connection: Connection) -> None:
    with pytest.raises(psycopg.errors.SerializationFailure, match="in the way"):
        echo.made(connection, (0, "a", b"", []))
    assert echo.made(connection, (1, "a", b"", []))[0][0] == 1, "the connection goes on"
    with pytest.raises(psycopg.errors.UndefinedFunction):
        Call("SELECT no_such_function($1)", "n", "n").made(connection, (1,))


def test_a_text_that_no_server_takes_is_refused_before_it_is_cut_off(connection: Connection) -> None:
    with pytest.raises(psycopg.DataError, match="NUL"):
        echo.made(connection, (1, "a\0b", b"", []))
    with pytest.raises(UnicodeEncodeError):
        echo.made(connection, (1, "\ud800", b"", []))


def test_a_connection_that_is_gone_is_an_error_without_a_state(connection: Connection, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (connection.info.backend_pid,))
    with pytest.raises(psycopg.Error) as told:
        echo.made(connection, (1, "a", b"", []))
    assert (told.value.sqlstate or "57P01").startswith("57P")
