"""A queue on PostgreSQL that is noted as calm: calls look at less, and whatever ends the calm is seen at once."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

import postroom
from postroom.limits import CALM_LOOKS
from postroom.model.message import Stored
from postroom.queues.leases.leased import LeasedMessage
from postroom.room import Postroom
from postroom.store.kernel import message_rows
from postroom.store.kernel.base import Store
from postroom.store.kernel.owner import process_token
from postroom.store.kernel.queues import Hold
from postroom.store.kernel.transaction import Transaction

EVER = 2**63 - 1
CALM = "SELECT calm FROM tallies WHERE queue = 1"
PLANNED = """
SELECT proname FROM pg_proc WHERE proname LIKE 'postroom%' AND proconfig @> ARRAY['plan_cache_mode=force_generic_plan']
"""
TRIGGERS = "SELECT tgname FROM pg_trigger WHERE tgrelid = 'messages'::regclass AND tgname LIKE '%select'"


@pytest.fixture
def room(postgres_url: str) -> Iterator[Postroom]:
    with postroom.open(postgres_url) as opened:
        opened.queues.create("q")
        opened.send_many("q", ["a", "b", "c"])
        assert opened.receive("q").message is not None
        yield opened
        assert opened.journal.verify().differences == ()


def run(room: Postroom, statement: str) -> list[tuple[Any, ...]]:
    cursor = room.store.session.connection.execute(statement)  # type: ignore[attr-defined]  # PostgreSQL's
    rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def calm(room: Postroom) -> int:
    """Up to when the queue is calm, noted now."""
    run(room, "SELECT postroom_calm(1)")
    return noted(room)


def noted(room: Postroom) -> int:
    ((until,),) = run(room, CALM)
    return int(until)


def taken(room: Postroom, at: int | None = None) -> str | None:
    """What the short way hands out at a moment; None if it leaves that to the long way."""
    ((body,),) = run(room, f"SELECT body FROM postroom_receive(1, 'someone', {'NULL' if at is None else at})")
    return None if body is None else str(body)


def test_a_queue_with_nothing_special_is_calm_for_ever(room: Postroom) -> None:
    assert calm(room) == EVER
    assert taken(room) == "b"
    room.send("q", "d")
    assert noted(room) == EVER, "neither a receive nor a send ends it"
    assert [room.receive("q").message.body for _ in range(2)] == ["c", "d"]  # type: ignore[union-attr]


def test_it_is_noted_after_a_few_looks(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    room.send_many("q", ["x"] * (2 * CALM_LOOKS))
    assert room.receive("q", lease=60).message is not None
    assert noted(room) == 0
    for _ in range(CALM_LOOKS):
        assert room.receive("q").message is not None
    assert noted(room) > 0
    with monkeypatch.context() as patch:
        patch.setattr(Store, "transact", lambda *_: pytest.fail("the long way"))
        assert room.receive("q").message is not None
        assert room.receive("q", lease=60).message is not None


# --- what ends it ---


def _hold(room: Postroom) -> None:
    room.store.transact("hold", lambda tx: tx.queues.hold(tx.queues.locked(1), Hold.FULL))


def _describe(room: Postroom, policy: str) -> None:
    """A description changes what it has made without having the queue alone."""
    room.store.transact("policy", lambda tx: tx.policies.set(tx.queues.to_read(1), _policy(tx, policy)))


def _policy(tx: Transaction, order: str) -> Any:
    return tx.policies.of(tx.queues.to_read(1))._replace(order=order)


def _hand_out(tx: Transaction) -> None:
    queue = tx.queues.locked(1)
    stored = tx.messages.head(queue)
    assert stored is not None
    tx.messages.take(queue, stored)
    tx.handouts.add(queue, stored, process_token())


def _segment(room: Postroom) -> None:
    room.send("q", "one\ntwo")
    assert [room.receive("q").message is None for _ in range(2)] == [False, False]
    assert not room.receive("q", segment=True).end_of_message


ENDS: dict[str, Callable[[Postroom], object]] = {
    "held": _hold,
    "retired": lambda room: room.store.transact("x", lambda tx: tx.queues.retire(tx.queues.to_read(1))),
    "ordered": lambda room: room.consumers.set_policy("q", order="strict"),
    "described": lambda room: _describe(room, "strict"),
    "limited": lambda room: room.consumers.set_policy("q", max_messages=100),
    "discarding": lambda room: room.queues.set_mode("q", keep_processed=False),
    "urgent": lambda room: room.send("q", "urgent", priority=9),
    "segments": _segment,
    "handed out": lambda room: room.store.transact("x", _hand_out),
}


@pytest.mark.parametrize("name", ENDS)
def test_whatever_changes_a_queue_ends_its_calm(room: Postroom, name: str) -> None:
    assert calm(room) == EVER
    ENDS[name](room)
    assert noted(room) == 0
    if name != "limited":  # whose messages are received in the short way, too
        assert taken(room) is None
        assert calm(room) == 0
        assert taken(room) is None


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO policies (queue, policy, ordered, limited) VALUES (1, '{}', 1, 0)",
        "UPDATE queues SET hold = 2 WHERE id = 1",
        "UPDATE queues SET keep = 0 WHERE id = 1",
    ],
)
def test_nobody_notes_calm_who_does_not_see_a_change_that_is_under_way(
    room: Postroom, postgres_url: str, change: str
) -> None:
    with psycopg.connect(postgres_url) as other:
        other.execute(change.encode())
        run(room, "SELECT set_config('lock_timeout', '200ms', false)")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            calm(room)
        other.rollback()
        assert calm(room) == EVER
        other.execute(change.encode())
        other.rollback()
        assert noted(room) == EVER


# --- what ends it later ---


def test_a_message_that_is_due_later_ends_the_calm_when_it_is_due(room: Postroom) -> None:
    calm(room)
    room.send("q", "later", delay=3_000)
    assert noted(room) == 0
    due = calm(room)
    assert 0 < due < EVER
    assert taken(room, due - 1) == "b"
    assert taken(room, due) is None, "it may come before others"


def test_a_message_that_expires_ends_the_calm_when_it_does(room: Postroom) -> None:
    room.send("q", "short", expires=3_000)
    expires = calm(room)
    assert 0 < expires < EVER
    assert taken(room, expires - 1) == "b"
    assert taken(room, expires) is None


@pytest.mark.parametrize("many", [False, True])
def test_a_lease_ends_the_calm_when_it_is_over(room: Postroom, many: bool) -> None:
    room.receive("q", lease=60).message.done()  # type: ignore[union-attr]  # the first one goes the long way
    room.send("q", "d")
    assert calm(room) == EVER
    some = room.receive_many("q", count=1, lease=3_000) if many else [room.receive("q", lease=3_000).message]
    message = some[0]
    assert isinstance(message, LeasedMessage)
    until = noted(room)
    assert 0 < until < EVER
    assert taken(room, until) is None, "that lease is over"
    assert taken(room, until - 1) == "d"
    room.send("q", "e")
    assert room.receive("q", lease=6_000).message is not None
    assert noted(room) == until, "a later end changes nothing"
    message.extend(100)
    assert noted(room) < until, "a sooner one does"


def test_the_end_of_a_lease_is_for_calm_queues_as_for_others(room: Postroom) -> None:
    for wanted in (False, True):
        message = room.receive("q", lease=60).message
        assert isinstance(message, LeasedMessage)
        if wanted:
            assert calm(room) > 0
        message.done()
    assert room.count("q").queues[0].processed == 3


# --- plans, triggers ---


def test_the_commonest_calls_are_planned_once(room: Postroom) -> None:
    """With many messages their plans would be made in every call: it would look cheaper than one for all values."""
    calls = {
        "send_many",
        "receive",
        "lease",
        "lease_many",
        "done",
        "done_many",
        "extend",
        "fold",
        "tally",
        "wake",
    }
    assert {f"postroom_{call}" for call in calls} <= {name for (name,) in run(room, PLANNED)}


def test_who_brings_a_message_back_sets_a_column_that_its_trigger_looks_at() -> None:
    """A condition would be read from its text in every receive."""
    updates = [
        " ".join(value.split())
        for value in vars(message_rows).values()
        if isinstance(value, str) and value.lstrip().startswith("UPDATE messages")
    ]
    assert len(updates) > 10
    for update in updates:
        columns = {
            pair.group(1): pair.group(2) for pair in re.finditer(r"(\w+) = ([-?\w]+)", update.split(" WHERE ")[0])
        }
        waits = columns.get("state", "?" if "position" in columns else "none") in ("1", "?")
        assert not waits or columns.keys() & {"queue", "number", "due"}, update


def test_what_was_reserved_and_is_given_back_is_found_again(room: Postroom) -> None:
    def reserve(tx: Transaction) -> Stored:
        queue = tx.queues.locked(1)
        stored = tx.messages.head(queue)
        assert stored is not None
        tx.messages.reserve(queue, stored)
        return stored._replace(last=tx.session.number("SELECT last FROM messages WHERE key = ?", (stored.key,)))

    stored = room.store.transact("x", reserve)
    assert room.receive("q").message is not None
    calm(room)
    room.store.transact("x", lambda tx: tx.messages.give_back(tx.queues.locked(1), stored))
    calm(room)
    assert taken(room) == "b"


def test_what_a_queue_has_not_kept_is_found_again_when_it_comes_back(room: Postroom) -> None:
    room.queues.set_mode("q", keep_processed=False)

    def take(tx: Transaction) -> Stored:
        queue = tx.queues.locked(1)
        stored = tx.messages.head(queue)
        assert stored is not None
        tx.messages.take(queue, stored)
        return stored

    stored = room.store.transact("x", take)
    room.send("q", "d")
    calm(room)  # nothing waits before the one behind it
    room.store.transact("x", lambda tx: tx.messages.untake(tx.queues.locked(1), stored, "not read"))
    calm(room)
    lent = room.store.lease_one(1, process_token(), 60_000_000)
    assert lent is not None
    assert lent.stored.body == "b"


def test_triggers_of_selectors_are_made_for_the_first_who_asks(room: Postroom, postgres_url: str) -> None:
    room.queues.create("r")
    for queue in "qr":
        room.send_many(queue, ["1", "2"], properties={"n": 1})
    assert run(room, TRIGGERS) == []
    bodies: list[str] = []
    ready = threading.Barrier(2)

    def ask(queue: str) -> None:
        with postroom.open(postgres_url) as mine:
            ready.wait()
            message = mine.receive(queue, where="n = 1").message
            assert message is not None
            bodies.append(message.body)

    both = [threading.Thread(target=ask, args=(queue,)) for queue in "qr"]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(60)
    assert bodies == ["1", "1"]
    assert len(run(room, TRIGGERS)) == 3
    room.send("q", "3", properties={"n": 1})
    calm(room)
    assert [taken(room) for _ in range(3)] == ["b", "c", "2"]
    message = room.receive("q", where="n = 1").message
    assert message is not None
    assert message.body == "3"
