"""Every state change is in the journal, in the same commit; locate and trace are readings of it."""

from __future__ import annotations

import pytest

import postroom
from postroom.errors import ArgumentInvalid, KeyInvalid, MessageGone, MessageUnknown
from postroom.room import Postroom


def test_trace_tells_the_whole_life_of_a_message(room: Postroom) -> None:
    room.queues.create("q")
    key = room.send("q", "a\nb").key
    room.receive("q", segment=True)
    room.receive("q", segment=True)
    assert [event.verb for event in room.trace(key)] == ["put", "segment", "take"]
    first, last = room.trace(key)[0].as_dict(), room.trace(key)[-1].as_dict()
    assert (first["from"], first["to"]) == (None, "q")
    assert (last["from"], last["to"]) == ("q", "q")
    assert set(first) == {"time", "verb", "from", "to", "by", "key", "seq"}


def test_trace_and_locate_answer_after_the_message_is_gone(room: Postroom) -> None:
    room.queues.create("q", keep_processed=False)
    key = room.send("q", "short-lived").key
    assert room.journal.locate(key) == "q"
    room.receive("q")
    assert room.journal.locate(key) is None
    assert [event.verb for event in room.trace(key)] == ["put", "take"]
    with pytest.raises(MessageGone):
        room.show(key)


def test_trace_answers_after_the_processed_chain_was_purged(room: Postroom) -> None:
    room.queues.create("q")
    keys = room.send_many("q", ["a", "b"]).keys
    room.receive("q")
    assert room.queues.set_mode("q", keep_processed=False) == ["q"]
    assert room.queues.accept("q").queues[0].processed == 0
    assert room.journal.locate(keys[0]) is None
    assert room.journal.locate(keys[1]) == "q"
    assert [event.verb for event in room.trace(keys[0])] == ["put", "take"]


def test_the_journal_names_who_did_it(url: str) -> None:
    with postroom.open(url, actor="oscar") as oscar, postroom.open(url, actor="john") as john:
        oscar.queues.create("q")
        key = oscar.send("q", "x").key
        john.receive("q")
        assert [event.by for event in john.trace(key)] == ["oscar", "john"]


def test_unknown_and_malformed_keys_are_told_apart(room: Postroom) -> None:
    room.queues.create("q")
    with pytest.raises(MessageUnknown):
        room.trace("00009.00009")
    with pytest.raises(MessageUnknown):
        room.journal.locate("00009.00009")
    with pytest.raises(MessageUnknown):
        room.show("00009.00009")
    for bad in ("", "1", "00001.1", "00001,00001", "0000a.00001", "00001.000011", "١٢٣٤٥.00001"):
        with pytest.raises(KeyInvalid):
            room.trace(bad)


def test_every_change_of_a_room_appends_to_the_journal(room: Postroom) -> None:
    room.queues.create("q", password="pw")
    room.send("q", "x")
    room.queues.disable("q", password="pw")
    room.queues.enable("q", password="pw")
    room.receive("q")
    room.queues.set_mode("q", keep_processed=False)
    room.queues.remove("q")
    verbs = [event.verb for event in room.journal.last(100)]
    for verb in ("create-queue", "password", "put", "hold", "release", "take", "mode", "purge", "retire-queue"):
        assert verb in verbs, verb


def test_journal_numbers_only_grow_and_pages_follow_each_other(room: Postroom) -> None:
    room.queues.create("q")
    room.send_many("q", ["x"] * 30)
    room.send("q", "y")
    events = room.journal.last(1000)
    numbers = [event.seq for event in events]
    assert numbers == sorted(set(numbers))
    assert [event.seq for event in room.journal.after(numbers[4])] == numbers[5:]
    assert [event.seq for event in room.journal.last(3)] == numbers[-3:]
    for bad in (0, -1, 10**9):
        with pytest.raises(ArgumentInvalid):
            room.journal.last(bad)
