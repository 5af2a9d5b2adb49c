"""Rows of messages: one statement that inserts, one list of columns, one way to ``Stored``."""

from __future__ import annotations

import pytest
from tests.store.places import found, put, queue

from postroom.errors import StoreCorrupt
from postroom.model.message import NO_PROPERTIES, Stored, message_hash
from postroom.store.kernel import message_rows
from postroom.store.kernel.message_rows import MessageRows, State, arrived, check_one, columns, image, new_row, record
from postroom.store.kernel.transaction import Transaction

STORED = arrived(7, "q", 1, ("body", "text", None, NO_PROPERTIES), 3, 20, 5)


def test_the_columns_are_those_of_a_stored_message_in_its_order() -> None:
    assert len(columns().split(", ")) == len(Stored._fields) + 1  # coalesce has a comma
    assert columns("h", key="h.message", queue="q.name").startswith("h.message, q.name, h.created, h.processed")
    row = tuple(range(len(Stored._fields)))
    assert record(row) == Stored(*row)  # type: ignore[arg-type]
    assert type(record(row)) is Stored


def test_a_message_that_has_arrived_is_sound_and_stands_at_its_event() -> None:
    assert STORED.sound
    assert (STORED.position, STORED.last, STORED.number, STORED.processed) == (20, 20, 5, None)
    assert image(STORED) == (7, 1, None, "text", "body", STORED.hash, NO_PROPERTIES, 3)


def test_values_of_a_new_row_stand_under_their_columns() -> None:
    row = dict(zip(message_rows.NEW, new_row(9, STORED), strict=True))
    assert row.pop("queue") == 9
    assert row == {name: getattr(STORED, name) for name in row}


def test_what_is_inserted_is_found_as_it_was(tx: Transaction) -> None:
    place = queue(tx, "q")
    stored = STORED._replace(key=tx.keys.next())
    stored = stored._replace(hash=message_hash(stored.key, 1, 3, "body", "text", None, NO_PROPERTIES))
    tx.messages.insert([new_row(place.id, stored)])
    assert found(tx, stored.key) == stored
    processed = stored._replace(key=tx.keys.next())
    tx.messages.insert_processed([(*new_row(place.id, processed), 99, int(State.PROCESSED))])
    assert found(tx, processed.key).processed == 99
    assert MessageRows(tx.session).last_line(stored.key) == 20


def test_many_are_marked_discarded_and_rewritten_or_it_is_told(tx: Transaction) -> None:
    place = queue(tx, "q")
    some = [put(tx, place, str(number)) for number in range(20)]  # enough for one statement over many rows
    marks = [(100 + n, tx.now, stored.key, place.id, stored.last) for n, stored in enumerate(some[:9])]
    discards = [(stored.key, place.id, stored.last) for stored in some[9:18]]
    for changed in (1, 9):  # one by one, and many at once
        assert not tx.messages.mark([(*row[:-1], row[-1] + 1) for row in marks[:changed]]), "someone has had it"
        assert not tx.messages.discard([(*row[:-1], row[-1] + 1) for row in discards[:changed]])
    assert tx.messages.mark(marks)
    assert not tx.messages.mark([(1, tx.now, 999_999_999, place.id, 1)])
    assert tx.messages.discard(discards)
    assert not tx.messages.discard(discards)
    rows = [(place.id, 200, 30, "new", "{}", b"h", s.key, place.id, s.position) for s in some[18:]]
    assert tx.messages.rewrite(rows)
    assert not tx.messages.rewrite(rows), "they are not where they were"
    assert [found(tx, stored.key).body for stored in some[18:]] == ["new", "new"]
    assert [tx.messages.find(stored.key) for stored in some[9:18]] == [None] * 9
    assert all(tx.messages.mark([]) and tx.messages.discard([]) and tx.messages.rewrite([]) for _ in "x")


def test_what_is_known_of_the_departed_goes_by_key_and_is_counted(tx: Transaction) -> None:
    keys = list(tx.keys.take(12))
    tx.messages.depart([(key, 5, None, "T") for key in keys])
    assert tx.messages.last_line(keys[0]) == 5
    assert tx.messages.forget_departed([*keys, 999_999_999]) == 12
    assert tx.messages.forget_departed([]) == 0
    assert tx.messages.last_line(keys[0]) is None


def test_a_row_that_cannot_be_changed_is_damage() -> None:
    check_one(1, STORED)
    with pytest.raises(StoreCorrupt, match="cannot be changed"):
        check_one(0, STORED)
