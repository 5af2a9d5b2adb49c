"""SQLite alone: text that is no text any more is still read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import apsw
import pytest

import postroom
from postroom.store.sqlite.session import ROWS_AT_ONCE, SqliteSession, with_rows


@pytest.fixture
def session(sqlite_url: str) -> Iterator[SqliteSession]:
    postroom.open(sqlite_url).close()
    with closing(apsw.Connection(sqlite_url)) as connection:
        yield SqliteSession(connection, lambda: 5, "place")


def test_bytes_that_are_no_text_come_as_characters_that_are_none(session: SqliteSession) -> None:
    select = "SELECT 1, CAST(? AS TEXT), ?, NULL, 'é'"
    assert session.rows(select, (b"a\xffb", b"\xff")) == [(1, "a\udcffb", b"\xff", None, "é")]
    assert session.row(select, (b"plain", b"x")) == (1, "plain", b"x", None, "é")


def test_a_line_gets_the_next_number_and_numbers_follow_each_other(session: SqliteSession) -> None:
    add = "INSERT INTO journal (at, verb, actor) VALUES (1, 'note', ?)"
    assert (session.append(add, ("me",)), session.append(add, ("me",))) == (1, 2)
    assert list(session.journal_numbers(3)) == [3, 4, 5]
    assert session.lock("anything") is True


def test_it_says_how_it_is_set(session: SqliteSession) -> None:
    about = session.about()
    assert (about.kind, about.version) == ("SQLite", apsw.sqlite_lib_version())
    assert set(about.settings) == {"journal_mode", "synchronous"}
    session.rebuild_indexes()
    assert session.damage() == []


def test_texts_are_a_table_unless_one_would_be_cut_off(session: SqliteSession) -> None:
    said = ["", "é☃𝔘", "plain"]
    rows = session.rows("SELECT rowid, value FROM carray(?)", (session.column(said),))
    assert rows == list(enumerate(said, 1))
    assert session.column(["plain", "a\0b"]) is None
    assert session.column([]) is None


def test_a_statement_of_several_rows_does_what_one_for_each_does(session: SqliteSession) -> None:
    add = "INSERT INTO counters (name, value) VALUES (?, ?)"
    rows = [(f"n{number}", number) for number in range(2 * ROWS_AT_ONCE + 5)]
    assert session.many(add, iter(rows)) == len(rows)
    assert session.rows("SELECT name, value FROM counters WHERE name GLOB 'n[0-9]*' ORDER BY value") == rows
    assert session.many("UPDATE counters SET value = ? WHERE name = ?", [(0, name) for name, _ in rows]) == len(rows)
    assert session.many(add, []) == 0
    assert with_rows(add, 2) == "INSERT INTO counters (name, value) VALUES (?, ?), (?, ?)"
    assert with_rows("INSERT INTO counters (name, value) VALUES (?, 1)", 2) is None
