"""A send on PostgreSQL looks at its queue once, and again when the number of changes is another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import postroom
from postroom.errors import QueueHeld
from postroom.room import Postroom
from postroom.store.kernel.base import Store
from postroom.store.kernel.queues import Hold
from postroom.store.kernel.transaction import Transaction

ONE = "SELECT postroom_send(1, 999, 1, 'x', 'text', '{}', '', 'someone', '', %s)"
MANY = "SELECT postroom_send_many(1, '{999}', 1, '{x}', '{text}', '{x}', ARRAY[''::bytea], 'x', ARRAY[''::bytea], %s)"
NUMBER = "SELECT pg_sequence_last_value('queue_changes')"

sends = pytest.mark.parametrize("statement", [ONE, MANY], ids=["one", "many"])


@pytest.fixture
def room(postgres_url: str) -> Iterator[Postroom]:
    with postroom.open(postgres_url) as opened:
        opened.queues.create("q")
        opened.send_many("q", ["a", "b", "c"])
        yield opened
        assert opened.journal.verify().differences == ()


@pytest.fixture
def other(postgres_url: str, room: Postroom) -> Iterator[Postroom]:
    """The room in another process, as far as the server knows; it has sent, so it knows the queue."""
    with postroom.open(postgres_url) as opened:
        for body in "de":
            opened.send("q", body)
        yield opened


def value(room: Postroom, statement: str, *values: Any) -> Any:
    cursor = room.store.session.connection.execute(statement, values)  # type: ignore[attr-defined]  # PostgreSQL's
    return cursor.fetchone()[0]


def answer(room: Postroom, statement: str, seen: int | None) -> int | None:
    """What a send is told that is then taken back."""
    with room.store.session.connection.transaction(force_rollback=True):  # type: ignore[attr-defined]  # PostgreSQL's
        told: int | None = value(room, statement, seen)
    return told


@sends
def test_a_send_that_has_not_looked_is_told_under_which_number_it_did(room: Postroom, statement: str) -> None:
    number = value(room, NUMBER)
    assert answer(room, statement, None) == -number
    assert answer(room, statement, number - 1) == -number
    line = answer(room, statement, number)
    assert line is not None
    assert line > 0, "nothing has changed since"


def _command(tx: Transaction) -> None:
    tx.queues.evolve(tx.queues.to_read(1), path="q", ordinal=0, command="true")


def _segment(room: Postroom) -> None:
    room.receive("q")
    room.send("q", "one\ntwo")
    while room.receive("q", segment=True).end_of_message:
        pass


def _hold(room: Postroom, hold: Hold) -> None:
    room.store.transact("hold", lambda tx: tx.queues.hold(tx.queues.locked(1), hold))


CLOSES: dict[str, Callable[[Postroom], object]] = {
    "held": lambda room: _hold(room, Hold.FULL),
    "retired": lambda room: room.store.transact("x", lambda tx: tx.queues.retire(tx.queues.to_read(1))),
    "limited": lambda room: room.consumers.set_policy("q", max_messages=100),
    "read in segments": _segment,
    "a command": lambda room: room.store.transact("x", _command),
}


@sends
@pytest.mark.parametrize("name", CLOSES)
def test_whatever_closes_a_queue_is_seen_at_once(room: Postroom, name: str, statement: str) -> None:
    number = value(room, NUMBER)
    CLOSES[name](room)
    assert value(room, NUMBER) > number
    assert answer(room, statement, number) is None


@sends
def test_a_queue_that_admits_what_enters_it_is_seen_at_once(room: Postroom, statement: str) -> None:
    number = value(room, NUMBER)
    change = "UPDATE queues SET door = %s WHERE id = 1 RETURNING door"
    assert value(room, change, 1) == 1
    assert answer(room, statement, number) is None
    assert value(room, change, 0) == 0


@sends
def test_what_does_not_concern_a_send_is_not_looked_at(room: Postroom, statement: str) -> None:
    number = value(room, NUMBER)
    room.send("q", "urgent", priority=9)
    assert room.receive("q").message is not None
    assert room.receive("q", lease=60).message is not None
    line = answer(room, statement, number)
    assert line is not None
    assert line > 0


@sends
def test_nobody_sends_while_a_change_is_under_way(room: Postroom, postgres_url: str, statement: str) -> None:
    number = value(room, NUMBER)
    with psycopg.connect(postgres_url) as changing:
        changing.execute("UPDATE queues SET hold = 2 WHERE id = 1")
        value(room, "SELECT set_config('lock_timeout', '200ms', false)")
        for seen in (number, value(room, NUMBER)):
            with pytest.raises(psycopg.errors.LockNotAvailable):
                answer(room, statement, seen)
        changing.rollback()
    assert answer(room, statement, number) == -value(room, NUMBER), "it has to look again, and finds nothing"


def test_a_change_by_another_is_seen_and_forgotten(
    room: Postroom, other: Postroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    _hold(room, Hold.FULL)
    with pytest.raises(QueueHeld):
        other.send("q", "late")
    with pytest.raises(QueueHeld):
        other.send_many("q", ["late", "later"])
    _hold(room, Hold.NONE)
    with monkeypatch.context() as patch:
        patch.setattr(Store, "transact", lambda *_: pytest.fail("the long way"))
        other.send("q", "f")
        other.send_many("q", ["g", "h"])
    assert [message.body for message in room.queues.info("q")] == list("abcdefgh")


def test_a_room_that_is_restored_has_changed(postgres_url: str, tmp_path: Path) -> None:
    with postroom.open(postgres_url) as room:
        room.queues.create("q")
        room.operations.backup(tmp_path / "copy.db")
        number = value(room, NUMBER)
        room.operations.restore(tmp_path / "copy.db", replace=True)
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute(NUMBER).fetchall()[0][0] > number
