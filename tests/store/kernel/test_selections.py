"""Entries of properties: they are what a look at all messages would find, whatever has changed them."""

from __future__ import annotations

import random
from typing import Any

import pytest

import postroom
from postroom.room import Postroom
from postroom.store.kernel.message_rows import State
from postroom.store.kernel.selections import Span
from postroom.store.kernel.transaction import Transaction


def entries(tx: Transaction) -> set[tuple[str, int]]:
    queue = tx.queues.named_to_read("q")
    assert queue is not None
    return {("n", each.message) for each in tx.selections.candidates(queue, Span("n"))}


def waiting(tx: Transaction) -> set[tuple[str, int]]:
    queue = tx.queues.named_to_read("q")
    assert queue is not None
    page = tx.messages.page(queue, State.UNPROCESSED, 0, 1_000)
    return {("n", stored.key) for stored in page if stored.properties != "{}"}


def end(dice: random.Random, message: Any) -> None:
    how = dice.randrange(3)
    message.fail("no", final=True) if how == 2 else message.release() if how else message.done()


def test_entries_follow_every_change_of_messages(room: Postroom) -> None:
    room.queues.create("q")
    room.queues.create("other")
    dice = random.Random(3)
    held: list[Any] = []
    assert not room.receive("q", where="n = 'none'")
    for n in range(120):
        draw = dice.randrange(10)
        properties = {} if n % 3 else {"n": n}
        if draw < 3:
            options: Any = dice.choice([{}, {"priority": 3}, {"delay": 0.001}, {"expires": 3_600}])
            room.send("q", str(n), properties=properties, **options)
        elif draw == 3:
            room.send_many("q", ["a", "b"], properties=properties)
        elif draw == 4:
            room.receive("q")
        elif draw == 5:
            held += room.receive_many("q", count=2)
        elif draw == 6 and held:
            end(dice, held.pop())
        elif draw in (7, 8):
            source, target = ("q", "other") if draw == 7 else ("other", "q")
            room.consumers.move(source, to=target, limit=1)
        else:
            room.queues.set_mode("q", keep_processed=bool(n % 2))
        room.store.read(_compare)


def _compare(tx: Transaction) -> None:
    assert entries(tx) == waiting(tx)


def test_spans_are_counted_and_come_in_order(room: Postroom) -> None:
    room.queues.create("q")
    room.send("q", "1", properties={"n": 5})
    room.send("q", "2", properties={"n": 7}, priority=9)
    room.send("q", "3", properties={"n": "6"})
    assert not room.receive("q", where="n = 'none'")

    def look(tx: Transaction) -> None:
        queue = tx.queues.named_to_read("q")
        assert queue is not None
        assert tx.selections.names(queue) == {"n"}
        assert tx.selections.count(queue, Span("n", 5.0, 6.5), 10) == 2
        assert tx.selections.count(queue, Span("n"), 2) == 2
        assert tx.selections.count(queue, Span("n", "6", "6"), 10) == 1
        by_page = [list(tx.selections.candidates(queue, Span("n", 0.0, 9.0), size)) for size in (1, 2, 100)]
        assert by_page[0] == by_page[1] == by_page[2]
        assert [each.rank for each in by_page[0]] == [-9, 0, 0]

    room.store.read(look)


TRIGGERS = "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'messages'"


def triggers(tx: Transaction) -> int:
    return tx.session.number(TRIGGERS)


def test_on_sqlite_nobody_pays_for_selectors_before_someone_selects(sqlite_url: str) -> None:
    with postroom.open(sqlite_url) as room, postroom.open(sqlite_url) as other:
        room.queues.create("q")
        other.send("q", "before", properties={"n": 1})
        assert room.store.read(triggers) == 0
        assert not room.receive("q", where="n = 2")
        assert other.store.read(triggers) == 3
        other.send("q", "after", properties={"n": 2})  # by statements that were prepared before
        assert room.receive("q", where="n = 2").message.body == "after"  # type: ignore[union-attr]  # there is one
        assert not room.receive("q", where="m = 1")
        room.store.read(_compare)


def test_a_select_that_does_not_happen_leaves_no_triggers(sqlite_url: str) -> None:
    class Never(Exception):
        pass

    def ask(tx: Transaction) -> None:
        queue = tx.queues.named_to_read("q")
        assert queue is not None
        assert tx.selections.ask(queue, ["n"]) == {"n"}
        assert triggers(tx) == 3
        raise Never

    with postroom.open(sqlite_url) as room:
        room.queues.create("q")
        with pytest.raises(Never):
            room.store.transact("receive", ask)
        assert room.store.read(triggers) == 0
        room.send("q", "1", properties={"n": 1})
        assert room.receive("q", where="n = 1").message is not None
