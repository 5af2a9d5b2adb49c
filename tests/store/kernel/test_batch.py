"""Many changes in one commit, on both stores: the journal, keys and counts are those of one change after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from postroom.errors import StoreCorrupt
from postroom.model.key import key_text
from postroom.model.message import Draft, Stored
from postroom.room import Postroom
from postroom.store.kernel.batch import Batch, Change, Places, Put, Reset, Stale, Take, admit_nothing
from postroom.store.kernel.queues import Keep, Queue
from postroom.store.kernel.transaction import Transaction

Make = Callable[[Transaction, Callable[[str], Queue]], Sequence[Change]]


def queues(room: Postroom, *names: str, keep: int = Keep.SLICED) -> None:
    def work(tx: Transaction) -> None:
        for name in names:
            tx.queues.create(name, "rules", path=name, keep=keep)

    room.store.transact("create-queue", work)


def write(room: Postroom, make: Make, snapshot: int | None = None) -> list[int]:
    """Let ``make`` say the changes, with each queue locked and read once."""

    def work(tx: Transaction) -> list[int]:
        known: dict[str, Queue] = {}

        def queue(name: str) -> Queue:
            if name not in known:
                found = tx.queues.named(name)
                assert found is not None
                known[name] = found
            return known[name]

        newest = tx.journal.newest()
        changes = make(tx, queue)
        return list(Batch(tx).write(changes, newest if snapshot is None else snapshot))

    return room.store.transact("step", work)


def draft(body: str, **properties: Any) -> Draft:
    return Draft.of(body, properties=properties or None)


def head(tx: Transaction, queue: Queue) -> Stored:
    found = tx.messages.head(queue)
    assert found is not None
    return found


def counts(room: Postroom) -> dict[str, tuple[int, int]]:
    return {each.queue: (each.unprocessed, each.processed) for each in room.queues.accept().queues}


def in_slice(room: Postroom, slicing: str, value: str) -> list[str]:
    found = room.store.read(lambda tx: tx.slices.slice(tx.slices.ids("slicing")[slicing], value))
    return [each.body for each in found]


def test_the_journal_reads_as_if_the_changes_came_one_after_another(room: Postroom) -> None:
    queues(room, "a", "b")
    sent = room.send_many("a", ["1", "2"]).keys
    before = room.journal.last(1)[0].seq

    def make(tx: Transaction, queue: Callable[[str], Queue]) -> list[Change]:
        first, second = tx.messages.between(queue("a"), 0, 2**62)
        slicing = tx.slices.slicing("s")
        return [
            Take(queue("a"), first, True),
            Put(queue("b"), draft("3"), first.key, "rule one"),
            Reset(slicing, "k", "s", "rule one"),
            Take(queue("a"), second, True),
            Put(queue("a"), draft("4"), second.key, "rule two"),
        ]

    third, fourth = map(key_text, write(room, make))
    lines = [
        (each.verb, each.key, each.source, each.target, each.by, each.detail) for each in room.journal.after(before)
    ]
    actor = lines[0][4]
    assert lines == [
        ("take", sent[0], "a", "a", actor, None),
        ("put", third, None, "b", "rule one", None),
        ("reset", None, None, None, "rule one", {"slicing": "s", "slicekey": "k"}),
        ("take", sent[1], "a", "a", actor, None),
        ("put", fourth, None, "a", "rule two", None),
    ]
    assert [each.verb for each in room.trace(sent[0])] == ["put", "take"]
    assert room.show(third).cause == sent[0]
    assert room.show(fourth).cause == sent[1]


def test_keys_are_in_a_row_and_messages_are_sound_and_in_their_order(room: Postroom) -> None:
    queues(room, "a", "b")
    keys = write(
        room,
        lambda tx, queue: [
            Put(queue("ab"[number % 2]), draft(str(number), n=number), None, "rule r") for number in range(9)
        ],
    )
    assert keys == list(range(keys[0], keys[0] + 9))
    assert [message.body for message in room.queues.info("a")] == ["0", "2", "4", "6", "8"]
    assert [message.properties for message in room.queues.info("b")] == [{"n": number} for number in (1, 3, 5, 7)]
    stored = room.store.read(lambda tx: tx.slices.queue("a"))
    assert [each.number for each in stored] == (
        [1, 2, 3, 4, 5] if room.store.session.counts_arrivals else [each.position for each in stored]
    )
    assert all(each.sound for each in stored)
    assert [room.receive("b").message.body for _ in range(4)] == ["1", "3", "5", "7"]  # type: ignore[union-attr]  # there is one


def test_counts_follow_what_came_and_went_in_the_same_commit(room: Postroom) -> None:
    queues(room, "a")
    queues(room, "gone", keep=Keep.NOTHING)
    room.send_many("a", ["1", "2", "3"])
    room.send("gone", "4")

    def make(tx: Transaction, queue: Callable[[str], Queue]) -> list[Change]:
        first, second, _ = tx.messages.between(queue("a"), 0, 2**62)
        return [
            Take(queue("a"), first, False),
            Put(queue("a"), draft("5"), first.key, "rule r"),
            Take(queue("a"), second, False),
            Take(queue("gone"), head(tx, queue("gone")), False),
        ]

    write(room, make)
    assert counts(room) == {"a": (2, 2), "gone": (0, 0)}
    assert [message.body for message in room.queues.info("a")] == ["3", "5"]
    assert [message.body for message in room.queues.history("a")] == ["1", "2"]


def test_a_message_that_is_not_kept_leaves_and_can_still_be_traced(room: Postroom) -> None:
    queues(room, "gone", keep=Keep.NOTHING)
    key = room.send("gone", "1").key
    write(room, lambda tx, queue: [Take(queue("gone"), head(tx, queue("gone")), False)])
    assert [each.verb for each in room.trace(key)] == ["put", "take"]
    assert room.trace(key)[-1].target is None
    assert list(room.queues.history("gone")) == []


@pytest.mark.parametrize("keep", [Keep.SLICED, Keep.NOTHING])
def test_a_message_that_someone_else_has_taken_makes_all_of_it_stale(room: Postroom, keep: Keep) -> None:
    queues(room, "a", "b", keep=keep)
    room.send_many("a", ["1", "2"])

    def claim(tx: Transaction) -> list[Stored]:
        queue = tx.queues.named("a")
        assert queue is not None
        return tx.messages.between(queue, 0, 2**62)

    first, second = room.store.transact("claim", claim)
    assert room.receive("a").message is not None
    before = len(room.journal.last(1000))
    with pytest.raises(Stale):
        write(
            room,
            lambda tx, queue: [
                Take(queue("a"), second, False),
                Put(queue("b"), draft("never"), second.key, "rule r"),
                Take(queue("a"), first, False),
            ],
        )
    assert list(room.queues.info("b")) == []
    assert [message.body for message in room.queues.info("a")] == ["2"]
    assert len(room.journal.last(1000)) == before


def test_a_message_enters_its_slices_and_indexes_with_its_position(room: Postroom) -> None:
    queues(room, "a")

    def make(tx: Transaction, queue: Callable[[str], Queue]) -> list[Change]:
        places = Places(((tx.slices.slicing("s"), "k"),), ((tx.slices.index("i"), "v"), (tx.slices.index("i"), "w")))
        return [Put(queue("a"), draft("1"), None, "r", places), Put(queue("a"), draft("2"), None, "r", places)]

    keys = write(room, make)
    assert in_slice(room, "s", "k") == ["1", "2"]
    values = room.store.read(lambda tx: tx.slices.values(keys))
    assert [[value for _, value in each] for each in values] == [["v", "w"], ["v", "w"]]
    (stored, _), positions = (
        room.store.read(lambda tx: tx.slices.queue("a")),
        room.store.read(lambda tx: tx.session.rows("SELECT position FROM slices ORDER BY position")),
    )
    assert positions[0] == (stored.position,)


def test_a_reset_inside_of_a_batch_counts_in_the_order_of_the_changes(room: Postroom) -> None:
    queues(room, "a")

    def make(tx: Transaction, queue: Callable[[str], Queue]) -> list[Change]:
        slicing = tx.slices.slicing("s")

        def put(body: str, value: str) -> Put:
            return Put(queue("a"), draft(body), None, "r", Places(((slicing, value),)))

        return [
            put("before", "k"),
            put("other", "o"),
            Reset(slicing, "k", "s", "r"),
            put("between", "k"),
            Reset(slicing, "k", "s", "r"),
            put("after", "k"),
        ]

    write(room, make)
    assert in_slice(room, "s", "k") == ["after"]
    assert in_slice(room, "s", "o") == ["other"]


def test_a_reset_frees_what_stood_there_at_its_snapshot_and_not_what_came_since(room: Postroom) -> None:
    queues(room, "a")

    def put(body: str) -> Make:
        return lambda tx, queue: [Put(queue("a"), draft(body), None, "r", Places(((tx.slices.slicing("s"), "k"),)))]

    write(room, put("old"))
    snapshot = room.store.read(lambda tx: tx.journal.newest())
    write(room, put("meanwhile"))
    write(room, lambda tx, _: [Reset(tx.slices.slicing("s"), "k", "s", "r")], snapshot)
    assert in_slice(room, "s", "k") == ["meanwhile"]


def test_a_taken_message_is_spent_only_if_no_slice_holds_it_at_the_end(room: Postroom) -> None:
    queues(room, "a")

    def two(tx: Transaction, queue: Callable[[str], Queue]) -> list[Change]:
        place = Places(((tx.slices.slicing("s"), "k"),))
        return [Put(queue("a"), draft("held"), None, "r", place), Put(queue("a"), draft("free"), None, "r")]

    held, free = write(room, two)

    def taken(tx: Transaction, queue: Callable[[str], Queue]) -> list[Change]:
        return [Take(queue("a"), each, True) for each in tx.messages.between(queue("a"), 0, 2**62)]

    write(room, taken)
    assert spent(room) == [free]
    write(room, lambda tx, _: [Reset(tx.slices.slicing("s"), "k", "s", "r")])
    assert spent(room) == [held, free]


def spent(room: Postroom) -> list[int]:
    return [row[0] for row in room.store.read(lambda tx: tx.session.rows("SELECT message FROM spent ORDER BY 1"))]


def test_a_message_that_is_to_go_on_later_has_a_timer_with_its_key(room: Postroom) -> None:
    queues(room, "a")
    first, second = write(
        room,
        lambda tx, queue: [
            Put(queue("a"), draft("1"), None, "r", due=tx.now - 5),
            Put(queue("a"), draft("2"), None, "r", due=tx.now - 9),
            Put(queue("a"), draft("3"), None, "r"),
        ],
    )[:2]
    due = room.store.read(lambda tx: tx.timers.due("echo", 10))
    assert [(timer.kind, timer.payload) for timer in due] == [
        ("echo", {"message": second}),
        ("echo", {"message": first}),
    ]


def test_nothing_to_do_changes_nothing(room: Postroom) -> None:
    before = len(room.journal.last(1000))
    assert write(room, lambda *_: []) == []
    assert len(room.journal.last(1000)) == before


def test_a_queue_with_a_door_that_nobody_opens_lets_nothing_in(room: Postroom) -> None:
    room.queues.create("a")

    def work(tx: Transaction) -> None:
        queue = tx.queues.named("a")
        assert queue is not None
        admit_nothing(tx, queue, [Draft.of("x")])

    with pytest.raises(StoreCorrupt, match="a needs checks that are not available here"):
        room.store.transact("send", work)


def test_a_batch_wakes_whoever_waits_for_a_queue_that_it_fills(room: Postroom) -> None:
    queues(room, "a")
    with room.store.waiter() as waiter:
        write(room, lambda _, queue: [Put(queue("a"), draft("1"), None, "r")])
        assert waiter.wait(5)


@pytest.mark.parametrize("keep", list(Keep))
def test_many_changes_are_what_few_are(room: Postroom, keep: Keep) -> None:
    """Databases take many rows in another way than a few; what one of them misses must show all the same."""
    queues(room, "a", "b", keep=keep)
    said = [*"0123456789", "tab\there", "line\nbreak", r"back\slash \N", "ümlaut ☃", "", '"quoted"', "'", "\\."]
    said *= 8  # more than one statement has, and not a multiple of it
    sent = room.send_many("a", said).keys

    def make(tx: Transaction, queue: Callable[[str], Queue]) -> list[Change]:
        changes: list[Change] = []
        for stored in tx.messages.between(queue("a"), 0, 2**62):
            changes.append(Take(queue("a"), stored, True))
            changes.append(Put(queue("b"), draft(stored.body, n=1), stored.key, "rule r"))
        return changes

    taken = room.store.read(lambda tx: make(tx, lambda name: _named(tx, name)))
    write(room, make)
    assert [message.body for message in room.queues.info("b")] == said
    assert [message.cause for message in room.queues.info("b")] == list(sent)
    assert not any(message.corrupt for message in room.queues.info("b"))
    kept = len(said) if keep else 0
    assert counts(room) == {"a": (0, kept), "b": (len(said), 0)}
    assert len(room.queues.history("a").messages) == kept
    assert room.engine.sweep() == (len(said) if keep == Keep.SLICED else 0)
    for key in sent:
        assert [event.verb for event in room.trace(key)][:2] == ["put", "take"]
    assert room.journal.verify().differences == ()
    with pytest.raises(Stale):
        write(room, lambda tx, queue: [each for each in taken if isinstance(each, Take)])


@pytest.mark.parametrize("place", [0, 63, 64, 99])
def test_one_of_many_that_is_gone_makes_all_of_them_stale(room: Postroom, place: int) -> None:
    queues(room, "a", keep=Keep.ALL)
    room.send_many("a", map(str, range(100)))
    taken = room.store.read(lambda tx: tx.messages.between(_named(tx, "a"), 0, 2**62))
    write(room, lambda tx, queue: [Take(queue("a"), taken[place], False)])
    with pytest.raises(Stale):
        write(room, lambda tx, queue: [Take(queue("a"), stored, False) for stored in taken])
    assert counts(room) == {"a": (99, 1)}


def test_what_passes_a_queue_stands_in_the_journal_where_it_came(room: Postroom) -> None:
    queues(room, "a", "b", keep=Keep.ALL)

    def work(tx: Transaction) -> None:
        a, b, batch = tx.queues.named("a"), tx.queues.named("b"), Batch(tx)
        assert a is not None
        assert b is not None
        batch.reserve(5, 3)
        batch.put(a, "first", "text", None, "{}", None, "arc x", passed=True)
        batch.put(b, "second", "text", None, "{}", None, "arc y")
        batch.put(b, "third", "text", None, "{}", None, "arc y", passed=True)
        batch.finish(0)

    room.store.transact("step", work)
    told = [(event.verb, event.by) for event in room.journal.last(5)]
    assert sorted(told) == [("put", "arc x"), ("put", "arc y"), ("put", "arc y"), ("take", "arc x"), ("take", "arc y")]
    assert counts(room) == {"a": (0, 1), "b": (1, 1)}
    assert room.journal.verify().differences == ()


def _named(tx: Transaction, name: str) -> Queue:
    found = tx.queues.named_to_read(name)
    assert found is not None
    return found
