"""Sequences in the store: numbers are given once, and what has come is said in ranges."""

from __future__ import annotations

from functools import partial

import postroom
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.sequences import OutSequence


def _named(tx: Transaction, sequence: OutSequence, name: str) -> None:
    tx.sequences.name(sequence, name)


def _held(tx: Transaction, number: int) -> None:
    tx.sequences.hold("s", number, f"{number}")


def test_numbers_are_given_in_order_and_ended(url: str) -> None:
    with postroom.open(url) as room:
        store = room._parts.store

        def give(messages: list[int]) -> None:
            def work(tx: Transaction) -> None:
                known = tx.sequences.outgoing("q")
                tx.sequences.number(known[-1] if known else tx.sequences.begin("q", "m"), messages)

            store.transact("sequence", work)

        give([7, 9])
        give([8])
        found = store.read(lambda tx: [tx.sequences.numbered(key) for key in (7, 9, 8, 1)])
        assert [None if each is None else each.number for each in found] == [1, 2, 3, None]
        (sequence,) = store.read(lambda tx: tx.sequences.outgoing("q"))
        assert (sequence.upto, sequence.ended, sequence.identifier) == (3, False, None)
        for name in ("a", "b"):
            store.transact("sequence", partial(_named, sequence=sequence, name=name))
        store.transact("sequence", lambda tx: tx.sequences.unnumber(9))
        store.transact("sequence", lambda tx: tx.sequences.end(sequence.id))
        (sequence,) = store.read(lambda tx: tx.sequences.outgoing("q"))
        assert (sequence.identifier, sequence.ended) == ("a", True)
        assert store.read(lambda tx: tx.sequences.pending(sequence.id)) == 2
        store.transact("sequence", lambda tx: tx.sequences.remove(sequence))
        assert store.read(lambda tx: tx.sequences.numbered(7)) is None


def test_what_has_come_is_said_in_ranges(url: str) -> None:
    with postroom.open(url) as room:
        store = room._parts.store
        store.transact("sequence", lambda tx: tx.sequences.accept("s", "e"))
        for number in (4, 3, 6):
            store.transact("sequence", partial(_held, number=number))
        store.transact("sequence", lambda tx: tx.sequences.move("s", 2))
        known = store.read(lambda tx: tx.sequences.incoming("s"))
        assert known is not None
        assert store.read(lambda tx: tx.sequences.ranges(known)) == [(1, 1), (3, 4), (6, 6)]
        assert store.transact("sequence", lambda tx: tx.sequences.release("s", 3)) == "3"
        assert store.read(lambda tx: tx.sequences.held("s")) == [4, 6]
        assert store.read(lambda tx: tx.sequences.count("e")) == 1
