"""Slices and indexes on both stores: who stands where, in which order, what a reset frees, what may be spent."""

from __future__ import annotations

from collections.abc import Sequence

from postroom.model.message import Draft, Stored
from postroom.room import Postroom
from postroom.store.kernel.queues import Keep, Queue
from postroom.store.kernel.slices import Member
from postroom.store.kernel.transaction import Transaction

FAR = 2**62  # behind every position


def locked(tx: Transaction, name: str) -> Queue:
    queue = tx.queues.named(name)
    assert queue is not None
    return queue


def sliced_queue(room: Postroom, name: str = "q") -> None:
    room.store.transact("create-queue", lambda tx: tx.queues.create(name, "rules", path=name, keep=Keep.SLICED))


def put(room: Postroom, bodies: Sequence[str], *, slicing: str, value: str, queue: str = "q") -> list[int]:
    """Messages that stand in one slice and, under the same value, in an index of the same name."""

    def work(tx: Transaction) -> list[int]:
        keys = list(tx.messages.put_many(locked(tx, queue), [Draft.of(body) for body in bodies]))
        stored = [tx.messages.find(key) for key in keys]
        places = [(each.position, each.key) for each in stored if each is not None]
        tx.slices.add(
            [Member(tx.slices.slicing(slicing), value, *place) for place in places],
            [Member(tx.slices.index(slicing), value, *place) for place in places],
        )
        return keys

    return room.store.transact("send-many", work)


def take(room: Postroom, keys: Sequence[int]) -> None:
    def work(tx: Transaction) -> None:
        for key in keys:
            stored = tx.messages.find(key)
            assert stored is not None
            tx.messages.take(locked(tx, stored.queue), stored)

    room.store.transact("receive", work)


def bodies(found: Sequence[Stored]) -> list[str]:
    return [each.body for each in found]


def in_slice(room: Postroom, slicing: str, value: str) -> list[str]:
    return bodies(room.store.read(lambda tx: tx.slices.slice(tx.slices.ids("slicing")[slicing], value)))


def reset(room: Postroom, slicing: str, value: str, until: int = FAR) -> None:
    room.store.transact("step", lambda tx: tx.slices.reset(tx.slices.slicing(slicing), value, until))


def spent(room: Postroom) -> list[int]:
    return sorted(row[0] for row in room.store.read(lambda tx: tx.session.rows("SELECT message FROM spent")))


def test_a_name_has_one_number_for_each_kind_and_keeps_it(room: Postroom) -> None:
    def work(tx: Transaction) -> list[int]:
        return [tx.slices.slicing("a"), tx.slices.slicing("b"), tx.slices.index("a"), tx.slices.slicing("a")]

    first, second, index, again = room.store.transact("load", work)
    assert first == again
    assert len({first, second, index}) == 3
    assert room.store.read(lambda tx: tx.slices.ids("slicing")) == {"a": first, "b": second}
    assert room.store.read(lambda tx: tx.slices.ids("index")) == {"a": index}
    assert room.store.transact("load", work) == [first, second, index, again]


def test_a_slice_is_in_the_order_of_arrival_over_all_its_queues(room: Postroom) -> None:
    sliced_queue(room)
    sliced_queue(room, "p")
    put(room, ["1"], slicing="s", value="k")
    put(room, ["2", "3"], slicing="s", value="k", queue="p")
    put(room, ["4"], slicing="s", value="k")
    put(room, ["other"], slicing="s", value="K")
    assert in_slice(room, "s", "k") == ["1", "2", "3", "4"]
    assert in_slice(room, "s", "nobody") == []


def test_processed_messages_stay_in_their_slice_and_their_index(room: Postroom) -> None:
    sliced_queue(room)
    keys = put(room, ["1", "2", "3"], slicing="s", value="k")
    take(room, keys[:2])
    assert in_slice(room, "s", "k") == ["1", "2", "3"]
    found = room.store.read(lambda tx: tx.slices.indexed([(tx.slices.ids("index")["s"], "k")]))
    assert [bodies(each) for each in found] == [["1", "2", "3"]]


def test_many_slices_are_answered_in_the_order_of_the_question(room: Postroom) -> None:
    sliced_queue(room)
    put(room, ["1"], slicing="s", value="a")
    put(room, ["2", "3"], slicing="t", value="b")

    def work(tx: Transaction) -> list[list[Stored]]:
        ids = tx.slices.ids("slicing")
        return tx.slices.slices([(ids["t"], "b"), (ids["s"], "none"), (ids["s"], "a"), (ids["t"], "b")])

    assert [bodies(each) for each in room.store.read(work)] == [["2", "3"], [], ["1"], ["2", "3"]]
    assert room.store.read(lambda tx: tx.slices.slices([])) == []


def test_values_keep_case_blanks_and_every_character(room: Postroom) -> None:
    sliced_queue(room)
    for value in ("", " ", "a", "A", "ä", "a\u0308", "'; DROP", "\U0001f4ee", "%", "10", "9"):
        put(room, [f"<{value}>"], slicing="s", value=value)
        assert in_slice(room, "s", value) == [f"<{value}>"]


def test_where_a_message_stands_is_told_for_many_at_once(room: Postroom) -> None:
    sliced_queue(room)
    first, second = put(room, ["1", "2"], slicing="s", value="k")
    ids = room.store.read(lambda tx: tx.slices.ids("index"))
    found = room.store.read(lambda tx: tx.slices.values([second, 7, first]))
    assert found == [[(ids["s"], "k")], [], [(ids["s"], "k")]]


def test_what_holds_a_message_is_told_by_name(room: Postroom) -> None:
    sliced_queue(room)
    (key,) = put(room, ["1"], slicing="t", value="b")

    def work(tx: Transaction) -> None:
        stored = tx.messages.find(key)
        assert stored is not None
        tx.slices.add([Member(tx.slices.slicing("s"), "a", stored.position, key)], [])

    room.store.transact("send", work)
    assert room.store.read(lambda tx: tx.slices.holds(key)) == [("s", "a"), ("t", "b")]
    assert room.store.transact("mode", lambda tx: tx.slices.held_in(locked(tx, "q"))) == 1
    assert room.store.read(lambda tx: tx.slices.used(tx.slices.ids("slicing")["s"])) == "a"
    reset(room, "s", "a")
    assert room.store.read(lambda tx: tx.slices.holds(key)) == [("t", "b")]
    assert room.store.read(lambda tx: tx.slices.used(tx.slices.ids("slicing")["s"])) is None


def test_a_reset_frees_what_came_up_to_a_position_and_no_other_slice(room: Postroom) -> None:
    sliced_queue(room)
    put(room, ["1", "2"], slicing="s", value="k")
    until = room.store.read(lambda tx: tx.journal.newest())
    put(room, ["3"], slicing="s", value="k")
    put(room, ["4"], slicing="s", value="other")
    reset(room, "s", "k", until)
    assert in_slice(room, "s", "k") == ["3"]
    assert in_slice(room, "s", "other") == ["4"]
    reset(room, "s", "k", until)
    assert in_slice(room, "s", "k") == ["3"]


def test_only_what_is_processed_and_held_by_nothing_is_noted_as_spent(room: Postroom) -> None:
    sliced_queue(room)
    waiting, done, held = put(room, ["1", "2", "3"], slicing="s", value="k")
    take(room, [done, held])

    def hold(tx: Transaction) -> None:
        stored = tx.messages.find(held)
        assert stored is not None
        tx.slices.add([Member(tx.slices.slicing("t"), "x", stored.position, held)], [])

    room.store.transact("send", hold)
    assert spent(room) == []
    reset(room, "s", "k")
    assert spent(room) == [done]
    take(room, [waiting])
    assert spent(room) == sorted([waiting, done])
    reset(room, "t", "x")
    assert spent(room) == sorted([waiting, done, held])


def test_a_slicing_that_is_emptied_frees_its_messages_and_an_index_frees_none(room: Postroom) -> None:
    sliced_queue(room)
    keys = put(room, ["1", "2"], slicing="s", value="k")
    take(room, keys)
    room.store.transact("load", lambda tx: tx.slices.empty_index(tx.slices.index("s")))
    assert spent(room) == []
    assert room.store.read(lambda tx: tx.slices.values(keys)) == [[], []]
    room.store.transact("load", lambda tx: tx.slices.empty_slicing(tx.slices.slicing("s")))
    assert spent(room) == sorted(keys)
    assert in_slice(room, "s", "k") == []


def test_a_queue_is_read_whole_in_the_order_of_arrival_and_without_what_is_set_aside(room: Postroom) -> None:
    sliced_queue(room)
    keys = put(room, ["1", "2", "3", "4"], slicing="s", value="k")
    take(room, keys[1:2])

    def spoil(tx: Transaction) -> None:
        stored = tx.messages.find(keys[2])
        assert stored is not None
        tx.messages.set_aside(locked(tx, "q"), stored)

    room.store.transact("receive", spoil)
    assert bodies(room.store.read(lambda tx: tx.slices.queue("q"))) == ["1", "2", "4"]
    assert in_slice(room, "s", "k") == ["1", "2", "4"]
    assert room.store.read(lambda tx: tx.slices.queue("nowhere")) == []


# --- the seam to the driver --------------------------------------------------------------------------------------


def test_one_question_with_many_values_has_one_answer_for_each(room: Postroom) -> None:
    def work(tx: Transaction) -> list[list[tuple[object, ...]]]:
        return tx.session.each("SELECT value FROM counters WHERE name = ?", [("catalog",), ("no",), ("catalog",)])

    assert room.store.read(work) == [[(0,)], [], [(0,)]]
    assert room.store.read(lambda tx: tx.session.each("SELECT value FROM counters WHERE name = ?", [])) == []


def test_many_changes_are_counted_by_the_rows_that_changed(room: Postroom) -> None:
    def work(tx: Transaction) -> list[int]:
        many = tx.session.many
        return [
            many("INSERT INTO spent (message) VALUES (?)", [(1,), (2,), (3,)]),
            many("INSERT INTO spent (message) VALUES (?) ON CONFLICT (message) DO NOTHING", [(3,), (4,)]),
            many("DELETE FROM spent WHERE message = ?", iter([(1,), (9,), (4,)])),
            many("DELETE FROM spent WHERE message = ?", []),
        ]

    assert room.store.transact("sweep", work) == [3, 1, 2, 0]
    assert spent(room) == [2, 3]
