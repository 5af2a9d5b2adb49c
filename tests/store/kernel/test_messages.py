"""What both stores must do with messages: put, take, move, read, count, and never half of it."""

from __future__ import annotations

import threading

import pytest
from tests.store import places

import postroom
from postroom import faults
from postroom.errors import CommitUnknown, RoomForked, StoreCorrupt, StoreStopped
from postroom.model.key import key_number
from postroom.model.message import Draft, Stored
from postroom.room import Postroom
from postroom.store.kernel.message_rows import State
from postroom.store.kernel.queues import Keep, Queue
from postroom.store.kernel.transaction import Transaction


def find_queue(tx: Transaction, name: str) -> Queue:
    queue = tx.queues.named(name)
    assert queue is not None
    return queue


def put(room: Postroom, queue: str, body: str) -> int:
    def work(tx: Transaction) -> int:
        return tx.messages.put(find_queue(tx, queue), Draft.of(body))

    return room.store.transact("send", work)


def stored(tx: Transaction, key: int) -> Stored:
    found = tx.messages.find(key)
    assert found is not None
    return found


def test_a_message_comes_back_as_it_was_sent(room: Postroom) -> None:
    room.queues.create("q")
    sent = room.send(
        "q", "<a>é\U0001f4ee</a>", format="xml", properties={"n": 1, "s": "x", "b": True, "f": 1.5, "none": None}
    )
    message = room.show(sent.key)
    assert (message.body, message.format, message.queue) == ("<a>é\U0001f4ee</a>", "xml", "q")
    assert message.properties == {"n": 1, "s": "x", "b": True, "f": 1.5, "none": None}
    assert message.processed is None
    assert message.cause is None


def test_messages_leave_in_the_order_they_came(room: Postroom) -> None:
    room.queues.create("q")
    for number in range(30):
        room.send("q", str(number))
    room.send_many("q", [str(number) for number in range(30, 60)])
    bodies = []
    while received := room.receive("q"):
        assert received.message is not None
        bodies.append(received.message.body)
    assert bodies == [str(number) for number in range(60)]
    assert [message.body for message in room.queues.history("q")] == bodies


def test_keys_grow_and_never_repeat_over_rooms_and_reopenings(url: str) -> None:
    keys: list[str] = []
    with postroom.open(url) as first:
        first.queues.create("q")
        with postroom.open(url) as second:
            for _ in range(20):
                keys += [first.send("q", "a").key, second.send("q", "b").key]
            keys += second.send_many("q", ["c"] * 50).keys
    with postroom.open(url) as third:
        keys.append(third.send("q", "d").key)
    assert len(set(keys)) == len(keys)


def test_a_batch_has_its_keys_in_a_row_and_an_empty_one_changes_nothing(room: Postroom) -> None:
    room.queues.create("q")
    sent = room.send_many("q", ["a", "b", "c"])
    numbers = [key_number(key) for key in sent.keys]
    assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2]
    assert list(room.send_many("q", []).keys) == []
    assert room.queues.accept("q").queues[0].unprocessed == 3


@pytest.mark.parametrize("types", [(None,), (None, "T")])
def test_many_that_are_alike_are_stored_as_those_that_differ(tx: Transaction, types: tuple[str | None, ...]) -> None:
    queue = places.queue(tx, "q")
    said = ["", "plain", "ümlaut ☃", "'", "line\nbreak", "𝔘", "x" * 5_000] * 20
    drafts = [Draft(body, "text", types[n % len(types)], '{"n":1}') for n, body in enumerate(said)]
    before = tx.messages.put_many(queue, drafts[:3], cause=7)
    keys = [*before, *tx.messages.put_many(queue, drafts[3:], cause=7)]
    found = [stored(tx, key) for key in keys]
    assert [(each.body, each.format, each.type, each.properties) for each in found] == [tuple(each) for each in drafts]
    assert all(each.sound and each.cause == 7 and each.created == tx.now for each in found)
    assert [each.key for each in tx.messages.between(queue, 0, 2**62)] == keys
    numbers = range(1, len(keys) + 1) if tx.session.counts_arrivals else [each.position for each in found]
    assert [each.number for each in found] == list(numbers)
    assert [event.seq for key in keys for event in tx.journal.trace(key)] == [each.position for each in found]
    assert all(line.sound for line in tx.journal.lines())


def test_a_batch_with_one_bad_body_sends_none(room: Postroom) -> None:
    room.queues.create("q")
    with pytest.raises(postroom.errors.XmlMalformed):
        room.send_many("q", ["<a/>", "<b>"], format="xml")
    assert room.queues.accept("q").queues[0].unprocessed == 0


def test_move_is_one_step_and_the_journal_says_from_where_to_where(room: Postroom) -> None:
    room.queues.create("from")
    room.queues.create("to")
    put(room, "to", "earlier")
    key = put(room, "from", "letter")

    def work(tx: Transaction) -> None:
        tx.messages.move(stored(tx, key), find_queue(tx, "from"), find_queue(tx, "to"))

    room.store.transact("send", work)
    counts = {count.queue: count.unprocessed for count in room.queues.accept().queues}
    assert counts == {"from": 0, "to": 2}
    assert [message.body for message in room.queues.info("to")] == ["earlier", "letter"]
    last = room.store.read(lambda tx: tx.journal.trace(key))[-1]
    assert (last.verb, last.source, last.target) == ("move", "from", "to")


def test_an_error_in_the_middle_of_a_transaction_undoes_all_of_it(room: Postroom) -> None:
    room.queues.create("q")

    def work(tx: Transaction) -> None:
        tx.messages.put(find_queue(tx, "q"), Draft.of("lost"))
        raise ValueError("after the put")

    before = len(room.journal.last(1000))
    with pytest.raises(ValueError, match="after the put"):
        room.store.transact("send", work)
    assert room.queues.accept("q").queues[0].unprocessed == 0
    assert list(room.queues.info("q")) == []
    assert len(room.journal.last(1000)) == before
    assert room.send("q", "kept").key


def test_counts_always_equal_what_is_stored(room: Postroom) -> None:
    room.queues.create("q")
    room.send_many("q", [str(number) for number in range(20)])
    for _ in range(7):
        room.receive("q")

    def stored_counts(tx: Transaction) -> tuple[int, int]:
        queue = find_queue(tx, "q")
        waiting, done = (tx.messages.page(queue, state, 0, 100) for state in (State.UNPROCESSED, State.PROCESSED))
        return len(waiting), len(done)

    count = room.queues.accept("q").queues[0]
    assert (count.unprocessed, count.processed) == (13, 7)
    assert room.store.transact("mode", stored_counts) == (13, 7)


def test_a_read_sees_one_picture_while_others_write(url: str) -> None:
    with postroom.open(url) as reader, postroom.open(url) as writer:
        writer.queues.create("q")
        writer.send("q", "one")

        def work(tx: Transaction) -> tuple[int, int]:
            first = tx.queues.named_to_read("q")
            writer.send("q", "two")
            second = tx.queues.named_to_read("q")
            assert first is not None
            assert second is not None
            return first.unprocessed, second.unprocessed

        assert reader.store.read(work) == (1, 1)
        assert reader.queues.accept("q").queues[0].unprocessed == 2


def test_an_unconfirmed_commit_is_unknown_and_the_room_takes_no_more_work(url: str) -> None:
    with postroom.open(url) as room:
        room.queues.create("q")
        faults.arm("send.committed", "raise")
        with pytest.raises(CommitUnknown) as caught:
            room.send("q", "perhaps", idempotency_key="k")
        assert caught.value.happened == "unknown"
        with pytest.raises(StoreStopped):
            room.send("q", "next")
    with postroom.open(url) as again:
        settled = again.send("q", "perhaps", idempotency_key="k")
        assert [message.body for message in again.queues.info("q")] == ["perhaps"]
        assert again.show(settled.key).body == "perhaps"


def test_an_error_before_the_commit_says_that_nothing_happened(room: Postroom) -> None:
    room.queues.create("q")
    faults.arm("send.committing", "raise")
    with pytest.raises(faults.FaultInjected):
        room.send("q", "never")
    assert room.queues.accept("q").queues[0].unprocessed == 0
    assert room.send("q", "after").key


def test_an_idempotency_key_sends_once_even_from_many_rooms_at_once(url: str) -> None:
    with postroom.open(url) as room:
        room.queues.create("q")
    keys: list[str] = []

    def send() -> None:
        with postroom.open(url) as mine:
            for number in range(5):
                keys.append(mine.send("q", "body", idempotency_key=f"k{number}").key)

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(keys) == 20
    assert len(set(keys)) == 5
    with postroom.open(url) as room:
        assert room.queues.accept("q").queues[0].unprocessed == 5


def test_threads_may_share_one_room(room: Postroom) -> None:
    room.queues.create("q")

    def send(name: str) -> None:
        for number in range(25):
            room.send("q", f"{name}{number}")

    threads = [threading.Thread(target=send, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bodies = [message.body for message in room.queues.info("q")]
    assert len(bodies) == 100
    for name in "abcd":
        assert [body for body in bodies if body[0] == name] == [f"{name}{number}" for number in range(25)]


def test_a_room_says_so_when_it_is_used_in_a_forked_child(url: str) -> None:
    with postroom.open(url) as room:
        room.queues.create("q")
        room.store._forked()  # what a fork does in the child; a real fork of a threaded test run may hang
        with pytest.raises(RoomForked):
            room.send("q", "from a child")
        room.store._unusable = None


# --- the verbs themselves: each is a row, a line and a change of counts ---


def test_what_is_created_edited_moved_and_let_go_is_told_and_counted(tx: Transaction) -> None:
    here, there = places.queue(tx, "here"), places.queue(tx, "there")
    first, second = tx.messages.create(here, [(key, "NOTE", "{}", "{}") for key in tx.keys.take(2)], cause=None)
    assert (first, second) == (places.found(tx, first.key), places.found(tx, second.key))
    assert tx.messages.create(here, []) == []
    edited = tx.messages.edit(here, first, '{"a":1}', '{"p":1}', {"fields": ["a"]})
    assert edited == places.found(tx, first.key)
    assert edited.sound
    assert edited.number == (3 if tx.session.counts_arrivals else edited.position), "the newest of its queue"
    assert tx.messages.editions(first.key) == [(edited.position, "{}", "{}")]
    moved = tx.messages.move(edited, here, there, "ship", {"to": "there"}, '{"p":2}')
    assert moved == places.found(tx, first.key)
    assert moved.sound
    tx.messages.let_go(there, moved, "handed-over")
    assert tx.messages.find(first.key) is None
    assert [event.verb for event in tx.journal.trace(first.key)] == ["create", "modify", "ship", "handed-over"]
    now = places.again(tx, here)
    assert (now.arrivals, now.unprocessed) == (3, 1)
    assert places.again(tx, there).unprocessed == 0


@pytest.mark.parametrize("keep", list(Keep))
def test_a_reserved_message_keeps_its_place_until_it_is_taken_or_given_back(tx: Transaction, keep: Keep) -> None:
    place = places.queue(tx, "q", keep=keep)
    first, other = places.put(tx, place, "a"), places.put(tx, place, "b")
    tx.messages.reserve(place, first)
    assert tx.messages.is_reserved(first.key)
    assert (tx.messages.state(first.key), tx.messages.state(other.key)) == (State.RESERVED, State.UNPROCESSED)
    assert tx.messages.between(place, 0, 2**62) == [other]
    tx.messages.give_back(place, places.found(tx, first.key))
    assert [message.key for message in tx.messages.between(place, 0, 2**62)] == [first.key, other.key]
    tx.messages.reserve(place, places.found(tx, first.key))
    tx.messages.take_reserved(place, places.found(tx, first.key))
    assert tx.messages.is_reserved(first.key) is False
    assert tx.messages.state(first.key) == (State.PROCESSED if keep else None)
    assert (tx.messages.find(first.key) is not None) == bool(keep)
    now = places.again(tx, place)
    assert (now.unprocessed, now.processed) == (1, int(bool(keep)))


def test_outlines_have_sizes_for_bodies_and_pages_go_on_behind_a_position(tx: Transaction) -> None:
    place = places.queue(tx, "q")
    some = [places.put(tx, place, body) for body in ("a", "é", "xyz")]
    outlines = tx.messages.outlines(place, 0, 2**62)
    assert [(outline.body, size) for outline, size in outlines] == [("", 1), ("", 2), ("", 3)]
    assert [outline.key for outline, _ in outlines] == [message.key for message in some]
    assert tx.messages.page(place, State.UNPROCESSED, some[0].position, 1) == [some[1]]
    assert tx.messages.next_of("q", some[1].position, 9) == [some[2]]
    assert tx.messages.next_of("none", 0, 9) == []
    assert tx.messages.positions(place, 0, 2) == [message.position for message in some[:2]]
    assert tx.messages.find_many([some[0].key, 999_999_999]) == {some[0].key: some[0]}
    assert tx.messages.find_many([]) == {}


def test_a_row_that_says_otherwise_than_its_index_is_damage(tx: Transaction) -> None:
    place = places.queue(tx, "q")
    message = places.put(tx, place)
    tx.session.run("UPDATE messages SET processed = 1 WHERE key = ?", (message.key,))
    with pytest.raises(StoreCorrupt, match="is processed"):
        tx.messages.between(place, 0, 2**62)
    with pytest.raises(StoreCorrupt, match="is processed"):
        tx.messages.next_of("q", 0, 9)
    tx.session.run("UPDATE messages SET processed = NULL, number = 9 WHERE key = ?", (message.key,))
    if not tx.session.counts_arrivals:
        assert tx.messages.head(place) is not None, "numbers without gaps alone tell whether one was passed over"
        return
    with pytest.raises(StoreCorrupt, match="the order of q"):
        tx.messages.head(place)
