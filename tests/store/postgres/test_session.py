"""A connection to PostgreSQL in one transaction: many rows at once, numbers of the journal, what it says of itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import postroom
from postroom.room import Postroom
from postroom.store.kernel.transaction import Transaction
from postroom.store.migrations import MIGRATIONS
from postroom.store.postgres.session import PostgresSession

ADD = "INSERT INTO retentions (kind, microseconds) VALUES (?, ?)"


@pytest.fixture
def room(postgres_url: str) -> Iterator[Postroom]:
    with postroom.open(postgres_url) as opened:
        yield opened


@pytest.mark.parametrize("count", [0, 3, 50])
def test_few_and_many_rows_are_inserted_alike(room: Postroom, count: int) -> None:
    def work(tx: Transaction) -> list[tuple[str, int]]:
        assert tx.session.many(ADD, [(f"k{number}", number) for number in range(count)]) == count
        found = tx.session.rows("SELECT kind, microseconds FROM retentions ORDER BY microseconds")
        tx.session.run("DELETE FROM retentions")
        return [(row[0], row[1]) for row in found]

    assert room.store.transact("send", work) == [(f"k{number}", number) for number in range(count)]


def test_numbers_of_the_journal_grow_and_have_the_lines_of_messages(room: Postroom) -> None:
    def work(tx: Transaction) -> list[int]:
        assert isinstance(tx.session, PostgresSession)
        assert not tx.session.counts_arrivals
        return [*tx.session.journal_numbers(5), tx.journal.add("note")]

    found = room.store.transact("send", work)
    assert found == sorted(set(found))


def test_it_tells_its_kind_its_schema_and_what_makes_a_commit_last(room: Postroom) -> None:
    about = room.store.read(lambda tx: tx.session.about())
    assert (about.kind, about.schema) == ("PostgreSQL", len(MIGRATIONS))
    assert about.settings["synchronous_commit"] == "on"
    assert room.store.read(lambda tx: tx.session.damage()) == []
