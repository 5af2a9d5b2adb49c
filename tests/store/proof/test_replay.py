"""A journal told from its beginning comes to where everything is."""

from __future__ import annotations

from tests.store.places import put, queue

from postroom.store.kernel.journal import Line
from postroom.store.kernel.message_rows import State
from postroom.store.kernel.queues import Keep
from postroom.store.kernel.transaction import Transaction
from postroom.store.proof.replay import Counts, Place, told


def test_every_verb_of_a_message_is_heard(tx: Transaction) -> None:
    here, there = queue(tx, "here"), queue(tx, "there", keep=Keep.NOTHING)
    taken, moved, reserved, back, aside, gone = (put(tx, here, str(number)) for number in range(6))
    tx.messages.take(here, taken)
    moved = tx.messages.move(moved, here, there)
    tx.messages.reserve(here, reserved)
    tx.messages.reserve(here, back)
    again = tx.messages.find(back.key)
    assert again is not None
    tx.messages.give_back(here, again)
    tx.messages.set_aside(here, aside)
    tx.messages.take(there, moved)
    tx.messages.remove(here, gone, "withdraw")
    known = told(tx.journal.lines())
    assert known.broken == []
    assert known.messages[taken.key].state == State.PROCESSED
    assert known.messages[reserved.key].state == State.RESERVED
    last = tx.messages.last_line(back.key)
    assert known.messages[back.key] == Place(here.id, State.UNPROCESSED, back.position, 4, last or 0, None)
    assert back.number == (4 if tx.session.counts_arrivals else known.came[back.key])
    assert known.messages[aside.key].state == State.SET_ASIDE
    assert {moved.key, gone.key} <= set(known.departed)
    assert (known.counts[here.id], known.counts[there.id]) == (Counts(6, 5, 1), Counts(1, 1, 0))


def test_a_line_that_does_not_follow_is_told() -> None:
    take = Line(1, 1, "take", 7, None, 1, 1, None, "me", None)
    assert [broken.line for broken in told([take]).broken] == [1]
