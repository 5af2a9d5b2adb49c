"""Streams in the store: the newest batch of each, and a line of the journal for each that is done."""

from __future__ import annotations

from postroom.room import Postroom
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.streams import Stream


def test_a_batch_is_pinned_and_done(room: Postroom) -> None:
    first = Stream("Bids", ("Bids", "Asks"), "abc")

    def work(tx: Transaction) -> None:
        tx.streams.put(first)
        tx.streams.put(first._replace(batch=0, version=3, done=False))
        tx.streams.put(Stream("Other", ("Other",), "def"))

    room.store.transact("stream-pin", work)
    assert room.store.read(lambda tx: tx.streams.find("Bids")) == first._replace(batch=0, version=3, done=False)
    pinned = first._replace(batch=0, version=3, done=False)
    room.store.transact("stream", lambda tx: tx.streams.finish(pinned, {"refused": 2}))
    assert room.store.read(lambda tx: tx.streams.find("Bids")) == pinned._replace(done=True)
    told = [each.detail for each in room.journal.after(0) if each.verb == "stream"]
    assert told == [{"stream": "Bids", "batch": 0, "version": 3, "refused": 2}]
    room.store.transact("stream-open", lambda tx: tx.streams.remove("Bids"))
    assert [each.name for each in room.store.read(lambda tx: tx.streams.all())] == ["Other"]
