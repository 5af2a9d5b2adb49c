"""The loop around a transaction: tried again after a conflict, prepared before it, undone by an error."""

from __future__ import annotations

from threading import Event, Thread

import pytest
from tests.store.places import put, queue

from postroom.errors import RoomReentered, StoreBusy
from postroom.limits import CONFLICT_RETRIES_MAX
from postroom.store.kernel.base import Conflict, Store, Unprepared
from postroom.store.kernel.transaction import Transaction


def test_work_is_done_again_after_a_conflict_and_given_up_in_the_end(store: Store) -> None:
    tries: list[int] = []

    def work(tx: Transaction) -> int:
        tries.append(tx.now)
        if len(tries) < 3:
            raise Conflict("in the way")
        return len(tries)

    assert store.transact("send", work) == 3
    with pytest.raises(StoreBusy, match="always in the way"):
        store.transact("send", refuse)
    with pytest.raises(StoreBusy, match="always in the way"):
        store.read(refuse)


def refuse(tx: Transaction) -> None:
    raise Conflict("always in the way")


def test_what_must_be_worked_out_first_is_worked_out_outside(store: Store) -> None:
    ready: list[str] = []

    def work(tx: Transaction) -> str:
        if not ready:
            raise Unprepared(lambda: ready.append(store.read(lambda inner: "outside")))
        return ready[0]

    assert store.transact("send", work) == "outside"

    def never(tx: Transaction) -> None:
        raise Unprepared(lambda: ready.append("again"))

    with pytest.raises(StoreBusy):
        store.read(never)
    assert len(ready) == 1 + CONFLICT_RETRIES_MAX


def test_an_error_undoes_all_and_the_store_goes_on(store: Store) -> None:
    def work(tx: Transaction) -> None:
        put(tx, queue(tx, "undone"))
        raise KeyError("on purpose")

    with pytest.raises(KeyError, match="on purpose"):
        store.transact("send", work)
    assert store.read(lambda tx: tx.queues.named_to_read("undone")) is None


def test_nothing_enters_in_the_middle_of_a_call(store: Store) -> None:
    with pytest.raises(RoomReentered):
        store.transact("send", lambda tx: store.read(lambda inner: None))
    assert store.stopped is False


def test_someone_else_acts_for_a_while(store: Store) -> None:
    with store.acting("ann"):
        assert store.actor == "ann"
    assert store.actor == "tester"


def test_each_thread_acts_for_someone_and_none_waits_for_it(store: Store) -> None:
    inside, seen = Event(), []

    def look() -> None:
        inside.wait(10)
        seen.append(store.read(lambda tx: tx.journal.actor))

    other = Thread(target=look)
    other.start()
    with store.acting("ann"):
        inside.set()
        other.join(10)
        seen.append(store.read(lambda tx: tx.journal.actor))
    assert seen == ["tester", "ann"]
