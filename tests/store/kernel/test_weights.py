"""How many bytes a queue has: a note that is used as long as nothing else has come."""

from __future__ import annotations

from postroom.room import Postroom
from postroom.store.kernel.transaction import Transaction


def test_a_note_counts_for_the_arrivals_that_it_knows(room: Postroom) -> None:
    room.queues.create("q")
    room.send("q", "12345")
    leased = room.receive("q", lease=True).message
    assert leased is not None
    room.send("q", "üü", delay=3_600)

    def work(tx: Transaction) -> None:
        queue = tx.queues.named("q")
        assert queue is not None
        assert tx.weights.at_most(queue, 2) is None
        assert tx.weights.measured(queue) == 9
        tx.weights.note(queue, 9, 2)
        tx.weights.note(queue, 10, 3)
        assert tx.weights.at_most(queue, 3) == 10
        assert tx.weights.at_most(queue, 2) is None

    room.store.transact("send", work)
