"""Messages that are written on and moved in one event, many at once."""

from __future__ import annotations

import pytest
from tests.store.places import again, found, put, queue

from postroom.store.kernel.batch import Stale
from postroom.store.kernel.handling import Move, New, apply
from postroom.store.kernel.transaction import Transaction


def test_moves_and_new_messages_are_made_in_their_order(tx: Transaction) -> None:
    here, there = queue(tx, "here"), queue(tx, "there")
    old, kept = put(tx, here, "old"), put(tx, here, "kept")
    key = tx.keys.next()
    changes: list[Move | New] = [
        Move(old, here, there, "move", "new", '{"a":1}', "procedure p", '{"why":"w"}'),
        New(key, there, "T", "{}", "{}", old.key, "procedure p", "{}"),
        Move(kept, here, here, "modify", "kept", "{}", "procedure p", "{}"),
    ]
    made = apply(tx, changes)
    assert [found(tx, stored.key) for stored in made] == made
    assert all(stored.sound for stored in made)
    assert [(stored.queue, stored.body) for stored in made] == [("there", "new"), ("there", "{}"), ("here", "kept")]
    lines = [stored.position for stored in made]
    assert [stored.number for stored in made] == ([1, 2, 3] if tx.session.counts_arrivals else lines)
    assert tx.messages.editions(old.key) == [(made[0].position, "old", "{}")]
    assert tx.messages.editions(kept.key) == []
    assert [event.verb for event in tx.journal.trace(old.key)] == ["put", "move"]
    assert tx.journal.trace(key)[0].by == "procedure p"
    assert (again(tx, here).unprocessed, again(tx, there).unprocessed) == (1, 2)
    assert apply(tx, []) == []


def test_a_message_that_is_not_where_it_was_spoils_the_whole(tx: Transaction) -> None:
    here, there = queue(tx, "here"), queue(tx, "there")
    stored = put(tx, here)
    tx.messages.move(stored, here, there)
    with pytest.raises(Stale):
        apply(tx, [Move(stored, here, there, "move", "x", "{}", "me", "{}")])


def test_many_moves_are_what_few_are(tx: Transaction) -> None:
    here, there = queue(tx, "here"), queue(tx, "there")
    olds = [put(tx, here, str(number)) for number in range(150)]
    made = apply(tx, [Move(old, here, there, "move", f"é{old.body}", "{}", "me", "{}") for old in olds])
    assert [found(tx, stored.key) for stored in made] == made
    assert all(stored.sound for stored in made)
    assert (again(tx, here).unprocessed, again(tx, there).unprocessed) == (0, 150)
    assert tx.messages.editions(olds[149].key) == [(made[149].position, "149", "{}")]
    tx.messages.move(made[100], again(tx, there), again(tx, here))
    back = [Move(each, there, here, "move", "x", "{}", "me", "{}") for each in made]
    with pytest.raises(Stale):  # one was moved since
        apply(tx, back)
