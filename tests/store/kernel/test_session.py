"""What both drivers answer to the same statements."""

from __future__ import annotations

import pytest

from postroom.store.kernel.session import Session
from postroom.store.kernel.transaction import Transaction

ADD = "INSERT INTO sets (kind, name) VALUES (?, ?)"
NAMES = "SELECT id, name FROM sets WHERE kind = ? AND id > ? ORDER BY id LIMIT ?"


@pytest.fixture
def session(tx: Transaction) -> Session:
    tx.session.many(ADD, [("k", str(number)) for number in range(25)])
    return tx.session


def test_one_row_one_value_one_number(session: Session) -> None:
    count = "SELECT count(*) FROM sets WHERE kind = ?"
    assert session.row(count, ("k",)) == (25,)
    assert session.number(count, ("k",)) == session.value(count, ("k",)) == 25
    assert session.one(lambda row: row[0] + 1, count, ("k",)) == 26
    nothing = "SELECT id FROM sets WHERE kind = 'none'"
    assert session.row(nothing) is session.value(nothing) is session.one(tuple, nothing) is None
    with pytest.raises(LookupError):
        session.number(nothing)


def test_pages_go_on_behind_the_last_row(session: Session) -> None:
    assert [row[1] for row in session.pages(NAMES, 10, "k")] == [str(number) for number in range(25)]
    ids = [row[0] for row in session.pages(NAMES, 10, "k")]
    assert [row[0] for row in session.pages(NAMES, 10, "k", after=ids[20])] == ids[21:]


def test_changes_are_counted_and_many_questions_answered_one_by_one(session: Session) -> None:
    assert session.run("UPDATE sets SET kind = 'l' WHERE kind = 'k' AND name < ?", ("2",)) == 12
    assert session.many("DELETE FROM sets WHERE kind = ? AND name = ?", [("k", "2"), ("k", "0"), ("k", "3")]) == 2
    assert session.many(ADD, []) == 0
    found = session.each("SELECT name FROM sets WHERE kind = ? AND name = ?", [("k", "4"), ("k", "2"), ("l", "1")])
    assert found == [[("4",)], [], [("1",)]]
    assert session.each("SELECT 1 WHERE 1 = ?", []) == []


def test_numbers_of_the_journal_grow(session: Session, tx: Transaction) -> None:
    numbers = session.journal_numbers(5)
    assert sorted(set(numbers)) == list(numbers)
    assert numbers[0] > tx.journal.newest()


def test_a_database_says_what_it_is(session: Session) -> None:
    about = session.about()
    assert about.kind in ("SQLite", "PostgreSQL")
    assert about.version
    assert about.schema >= 13
    assert session.damage() == []
    assert session.place
    session.lock_counter("keys")
    session.take_time()
