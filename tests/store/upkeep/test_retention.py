"""What a sweep removes on both stores, what it leaves, and what can be asked afterwards."""

from __future__ import annotations

import pytest

import postroom
from postroom.model.key import key_number, key_text
from postroom.model.message import Draft
from postroom.room import Postroom
from postroom.store.kernel.batch import Batch, Places, Put, Reset, Take
from postroom.store.kernel.queues import Keep, Queue
from postroom.store.kernel.slices import Member
from postroom.store.kernel.transaction import Transaction


def queue(room: Postroom, name: str, keep: int = Keep.SLICED) -> None:
    room.store.transact("create-queue", lambda tx: tx.queues.create(name, "rules", path=name, keep=keep))


def locked(tx: Transaction, name: str) -> Queue:
    found = tx.queues.named(name)
    assert found is not None
    return found


def put(room: Postroom, name: str, body: str, value: str | None = None) -> str:
    def work(tx: Transaction) -> int:
        places = Places(((tx.slices.slicing("s"), value),), ((tx.slices.index("i"), value),)) if value else Places()
        return Batch(tx).write([Put(locked(tx, name), Draft.of(body), None, "r", places)], 0)[0]

    return key_text(room.store.transact("step", work))


def take_all(room: Postroom, name: str, *, sliced: bool = True) -> None:
    def work(tx: Transaction) -> None:
        found = locked(tx, name)
        Batch(tx).write([Take(found, each, sliced) for each in tx.messages.between(found, 0, 2**62)], 0)

    room.store.transact("step", work)


def reset(room: Postroom, value: str) -> None:
    def work(tx: Transaction) -> None:
        Batch(tx).write([Reset(tx.slices.slicing("s"), value, "s", "r")], tx.journal.newest())

    room.store.transact("step", work)


def sweep(room: Postroom, *unsliced: str, limit: int = 100) -> int:
    def work(tx: Transaction) -> int:
        return tx.retention.sweep([locked(tx, name) for name in unsliced], limit)

    return room.store.transact("sweep", work)


def counts(room: Postroom, name: str) -> tuple[int, int]:
    count = room.queues.accept(name).queues[0]
    return count.unprocessed, count.processed


def rows(room: Postroom, table: str) -> int:
    statements = {
        "spent": "SELECT count(*) FROM spent",
        "entries": "SELECT count(*) FROM entries",
        "slices": "SELECT count(*) FROM slices",
    }
    found = room.store.read(lambda tx: tx.session.row(statements[table]))
    assert found is not None
    return int(found[0])


def test_a_sweep_removes_what_is_processed_and_held_by_nothing(room: Postroom) -> None:
    queue(room, "q")
    put(room, "q", "held", "k")
    free = put(room, "q", "free")
    take_all(room, "q")
    put(room, "q", "waiting")
    assert sweep(room) == 1
    assert counts(room, "q") == (1, 1)
    with pytest.raises(postroom.errors.MessageGone):
        room.show(free)
    reset(room, "k")
    assert sweep(room) == 1
    assert sweep(room) == 0
    assert counts(room, "q") == (1, 0)
    assert [message.body for message in room.queues.info("q")] == ["waiting"]


def test_a_swept_message_can_still_be_traced_and_leaves_no_row_behind(room: Postroom) -> None:
    queue(room, "q")
    key = put(room, "q", "m", "k")
    take_all(room, "q")
    reset(room, "k")
    assert (rows(room, "spent"), rows(room, "entries"), rows(room, "slices")) == (1, 1, 0)
    assert sweep(room) == 1
    assert [event.verb for event in room.trace(key)] == ["put", "take"]
    assert (rows(room, "spent"), rows(room, "entries"), rows(room, "slices")) == (0, 0, 0)
    last = room.journal.last(1)[0]
    assert (last.verb, last.source, last.detail) == ("sweep", "q", {"messages": 1, "keys": [[key_number(key)] * 2]})


def test_of_a_queue_without_slices_every_processed_message_goes(room: Postroom) -> None:
    queue(room, "q")
    for number in range(5):
        put(room, "q", str(number))
    take_all(room, "q", sliced=False)
    put(room, "q", "waiting")
    assert sweep(room) == 0
    assert sweep(room, "q") == 5
    assert counts(room, "q") == (1, 0)


def test_a_sweep_takes_no_more_than_its_limit_from_all_queues_together(room: Postroom) -> None:
    for name in ("q", "p"):
        queue(room, name)
        for number in range(3):
            put(room, name, str(number))
    take_all(room, "q")
    take_all(room, "p", sliced=False)
    assert [sweep(room, "p", limit=4) for _ in range(3)] == [4, 2, 0]
    assert (counts(room, "q"), counts(room, "p")) == ((0, 0), (0, 0))


def test_a_message_that_was_received_and_noted_goes_once(room: Postroom) -> None:
    queue(room, "q")
    put(room, "q", "1")
    assert room.receive("q").message is not None
    assert sweep(room, "q") == 1
    assert counts(room, "q") == (0, 0)


def test_notes_of_messages_that_have_gone_another_way_are_forgotten(room: Postroom) -> None:
    queue(room, "q")
    put(room, "q", "1")
    take_all(room, "q")
    room.store.transact("mode", lambda tx: tx.messages.purge_processed(locked(tx, "q")))
    assert rows(room, "spent") == 1
    assert sweep(room) == 0
    assert rows(room, "spent") == 0
    assert counts(room, "q") == (0, 0)


def test_a_message_that_a_slice_took_hold_of_again_stays(room: Postroom) -> None:
    queue(room, "q")
    key = key_number(put(room, "q", "1"))
    take_all(room, "q")

    def hold(tx: Transaction) -> None:
        stored = tx.messages.find(key)
        assert stored is not None
        tx.slices.add([Member(tx.slices.slicing("s"), "k", stored.position, key)], [])

    room.store.transact("load", hold)
    assert sweep(room, "q") == 0
    reset(room, "k")
    assert sweep(room) == 1


def test_the_processed_messages_of_a_queue_are_told_by_key(room: Postroom) -> None:
    queue(room, "q")
    keys = [key_number(put(room, "q", str(number))) for number in range(3)]
    take_all(room, "q")
    put(room, "q", "waiting")
    assert sorted(room.store.transact("load", lambda tx: list(tx.retention.processed(locked(tx, "q"))))) == keys
