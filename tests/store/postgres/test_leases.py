"""Leases on PostgreSQL share a queue with sends, receives and each other, and are counted from their rows."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from tests.conftest import Urls

import postroom
from postroom.errors import LeaseOver, MessageCorrupt
from postroom.model.message import Draft, message_hash
from postroom.queues.leases.leased import LeasedMessage
from postroom.room import Postroom
from postroom.store.kernel.base import Store
from postroom.store.kernel.journal import put_digest
from postroom.store.postgres.store import PostgresStore
from postroom.store.upkeep.backup import backup, restore

Connection = psycopg.Connection[tuple[Any, ...]]
LEASE = "SELECT body, line FROM postroom_lease(1, 'other', '', 60000000, NULL)"
FOLD = "SELECT postroom_calm(1)"
TALLY = "SELECT arrived, departed, head, low, ends FROM tallies WHERE queue = 1"


@pytest.fixture
def room(postgres_url: str) -> Iterator[Postroom]:
    with postroom.open(postgres_url) as opened:
        opened.queues.create("q")
        opened.send("q", "first")
        lease(opened).done()
        yield opened
        assert opened.journal.verify().differences == ()


@pytest.fixture
def other(postgres_url: str, room: Postroom) -> Iterator[Connection]:
    """Someone else's transaction."""
    with psycopg.connect(postgres_url) as connection:
        yield connection


@pytest.fixture
def alone(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The labels of all that went the long way."""
    labels: list[str] = []
    transact = Store.transact

    def noted(self: Store, label: str, work: Any) -> Any:
        labels.append(label)
        return transact(self, label, work)

    room.receive("q", lease=1)  # whether owners live was looked at just now
    monkeypatch.setattr(Store, "transact", noted)
    monkeypatch.setattr("postroom.queues.leases.leasing.OWNERS_LOOK_SECONDS", 1e9)
    return labels


def lease(room: Postroom) -> LeasedMessage:
    message = room.receive("q", lease=60).message
    assert isinstance(message, LeasedMessage)
    return message


def counts(room: Postroom) -> tuple[int, int, int]:
    (count,) = room.count("q").queues
    return count.unprocessed, count.leased, count.processed


def tally(room: Postroom) -> tuple[Any, ...]:
    (row,) = room.store.read(lambda tx: tx.session.rows(TALLY))
    return row


def fold(room: Postroom) -> None:
    assert isinstance(room.store, PostgresStore)
    room.store.session.connection.execute(FOLD)


# --- one call each, beside each other ---


def test_a_lease_and_its_end_never_have_the_queue_alone(room: Postroom, alone: list[str]) -> None:
    room.send_many("q", [str(number) for number in range(10)])
    for _ in range(3):
        lease(room).done()
    some = room.receive_many("q", count=4, lease=60)
    assert [message.body for message in some] == ["3", "4", "5", "6"]
    room.consumers.done_many(some)
    assert "hand-out" not in alone
    assert "done" not in alone
    assert counts(room) == (3, 0, 8)


def test_a_lease_waits_for_nobody_who_sends_receives_or_leases(room: Postroom, other: Connection) -> None:
    room.send_many("q", ["a", "b", "c", "d"])
    assert other.execute(LEASE).fetchall()[0][0] == "a"
    assert other.execute("SELECT body FROM postroom_receive(1, 'other', NULL)").fetchone() == ("b",)
    assert isinstance(room.store, PostgresStore)
    room.store.session.connection.execute("SET lock_timeout = '200ms'")
    room.send("q", "e")
    mine = room.store.lease_one(1, "", 60_000_000)
    assert mine is not None
    assert mine.stored.body == "c"
    assert room.store.done_one(mine.fence)
    other.rollback()
    lent = room.store.lease_some(1, "", 60_000_000, 10)
    assert lent is not None
    assert [each.stored.body for each in lent] == ["a", "b", "d", "e"], "what it had is in its place again"
    assert room.store.done_some([each.fence for each in lent])


def test_of_two_who_end_one_lease_the_second_is_refused(room: Postroom, other: Connection) -> None:
    room.send_many("q", ["a", "b"])
    first, second = lease(room), lease(room)
    other.execute("SELECT postroom_done(%s, 'other', NULL)", (first.lease,))
    threading.Timer(0.3, other.commit).start()
    with pytest.raises(LeaseOver):
        room.consumers.done_many([second, first])
    assert counts(room) == (0, 1, 2), "all or none"
    second.done()
    with pytest.raises(LeaseOver):
        second.done()


def test_whoever_has_the_queue_alone_waits_for_a_lease_under_way(room: Postroom, other: Connection) -> None:
    room.send("q", "a")
    other.execute(LEASE)
    threading.Timer(0.3, other.commit).start()
    assert room.receive("q", lease=60).message is None, "nothing is said to be there before the other has ended"
    assert counts(room) == (0, 1, 1)


def test_a_lease_that_finds_nothing_waits_for_a_send_under_way(room: Postroom, other: Connection) -> None:
    """It may have asked whether someone waits before the receiver said so: then nobody would be woken by it."""
    stop = other.execute("SELECT postroom_keys(1)").fetchall()[0][0]
    other.commit()
    key, draft, now = stop - 1, Draft.of("late"), 1_000_000
    values = (1, key, now, draft.body, draft.format, draft.properties, message_hash(key, now, None, *draft), "other")
    statement = "SELECT postroom_send(%s, %s, %s, %s, %s, %s, %s, %s, %s, NULL)"
    other.execute(statement, (*values, put_digest(now, key, 1, "other")))
    threading.Timer(0.3, other.commit).start()
    assert lease(room).body == "late"
    held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
    assert room.store.session.number(held) == 0, "and keeps nobody from sending"


@pytest.mark.parametrize("policy", [{"order": "strict"}, {"by": "k"}, {"max_messages": 9}])
def test_an_end_that_others_may_wait_for_goes_the_long_way(url: str, policy: dict[str, Any]) -> None:
    """They are woken by it: the next of its order or key, and a sender that waits for room."""
    with postroom.open(url) as room:
        room.queues.create("q")
        room.consumers.set_policy("q", **policy)
        room.send_many("q", ["1", "2"])
        message = lease(room)
        assert not room.store.done_one(message.lease)
        assert not room.store.done_some([message.lease])
        message.done()
        assert lease(room).body == "2"


def test_a_room_is_closed_though_a_lease_of_it_ends_meanwhile(room: Postroom, other: Connection, urls: Urls) -> None:
    room.send("q", "a")
    url = room.store.address
    assert url is not None
    with postroom.open(url) as holder:
        message = lease(holder)
        other.execute("SELECT postroom_done(%s, 'other', NULL)", (message.lease,))
        threading.Timer(0.3, other.commit).start()
    assert counts(room) == (0, 0, 2)


# --- counts ---


def test_counts_tell_leases_before_and_after_they_are_written_down(room: Postroom) -> None:
    room.send_many("q", ["a", "b", "c"])
    held = lease(room)
    assert counts(room) == (2, 1, 1)
    fold(room)
    assert counts(room) == (2, 1, 1)
    assert tally(room)[:2] == (4, 1), "what is leased is not among the departed of a tally"
    held.done()
    assert counts(room) == (2, 0, 2)
    fold(room)
    assert tally(room)[:2] == (4, 2)
    lease(room).release()
    assert counts(room) == (2, 0, 2)


def test_a_lease_at_an_earlier_place_is_counted(room: Postroom) -> None:
    room.send_many("q", ["a", "b", "c"])
    first, second = lease(room), lease(room)
    second.done()
    fold(room)
    low = tally(room)[3]
    first.release()
    again = lease(room)
    assert again.body == "a"
    assert tally(room)[3] <= low
    assert counts(room) == (1, 1, 2)
    fold(room)
    again.done()
    assert counts(room) == (1, 0, 3)


def test_a_lease_that_ends_before_all_others_is_noticed(room: Postroom) -> None:
    """A tally says up to when no lease ends; one that ends earlier lowers it, however it came to its end."""
    room.send_many("q", ["a", "b", "c", "d"])
    held = room.receive("q", lease=3_000).message
    assert held is not None
    room.send("q", "e")
    fold(room)
    ends = tally(room)[4]
    assert ends
    assert room.store.lease_one(1, "", 1) is not None
    assert tally(room)[4] < ends
    back = lease(room)
    assert back.body == "b", "its lease had ended"
    room.send("q", "f")
    fold(room)
    ends = tally(room)[4]
    held.extend(0.000001)
    assert tally(room)[4] < ends
    assert lease(room).body == "a"


def test_a_room_with_leases_is_copied_and_counted(room: Postroom, urls: Urls, tmp_path: Any) -> None:
    room.send_many("q", ["a", "b", "c"])
    held = lease(room)
    lease(room).done()
    backup(room.store, tmp_path / "copy.db")
    with postroom.open(tmp_path / "copy.db") as copy:
        assert copy.journal.verify().differences == ()
        assert counts(copy) == (1, 1, 2)
    target = urls()
    with postroom.open(target) as third:
        restore(third.store, tmp_path / "copy.db")
    with postroom.open(target) as third:
        assert counts(third) == (1, 1, 2)
        third.consumers.lease(held.lease).done()
        assert third.journal.verify().differences == ()


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_done_in_whatever_order_counts_and_journal_agree(urls: Urls, sqlite_url: str, seed: int) -> None:
    """The same program on both stores: each step by the short way or the long one, counts written down now and then."""
    told = []
    for url in (urls(), sqlite_url):
        chance = random.Random(seed)
        with postroom.open(url) as room:
            room.queues.create("q")
            room.consumers.set_policy("q", attempts=3, dead_letters="dead")
            held: list[LeasedMessage] = []
            told.append([_step(room, chance, number, held) for number in range(150)])
            assert room.journal.verify().differences == ()
    assert told[0] == told[1]


def _step(room: Postroom, chance: random.Random, number: int, held: list[LeasedMessage]) -> Any:
    choice = chance.choice(("send", "send", "many", "lease", "lease", "some", "done", "done", "all", "release", "fail",
                            "receive", "delay", "fold"))  # fmt: skip
    if choice in ("send", "many"):
        room.send_many("q", [f"{number}.{each}" for each in range(1 if choice == "send" else 3)])
    elif choice in ("lease", "some"):
        held += room.receive_many("q", count=1 if choice == "lease" else 3, lease=3_000)
    elif choice == "receive":
        room.receive("q")
    elif choice == "fold":
        if isinstance(room.store, PostgresStore):
            fold(room)
    elif choice == "all":
        room.consumers.done_many(held)
        held.clear()
    elif held:
        message = held.pop(chance.randrange(len(held)))
        if choice == "done":
            message.done()
        elif choice == "fail":
            message.fail("by chance")
        else:
            message.release(delay=3_000 if choice == "delay" else 0)
    return choice, counts(room), sorted(message.body for message in held)


# --- what goes wrong ---


def test_a_damaged_message_among_those_leased_is_set_aside(room: Postroom) -> None:
    room.send_many("q", ["a", "b", "c"])
    room.store.transact("send", lambda tx: tx.session.run("UPDATE messages SET body = 'forged' WHERE body = 'b'"))
    some = room.receive_many("q", count=3, lease=60)
    assert [message.body for message in some] == ["a", "c"]
    with pytest.raises(MessageCorrupt):
        room.receive("q", lease=60)
    assert counts(room) == (0, 2, 1)
    room.store.transact("send", lambda tx: tx.session.run("UPDATE messages SET body = 'b' WHERE body = 'forged'"))


def test_mending_sets_the_counts_of_leases_right(room: Postroom) -> None:
    room.send_many("q", ["a", "b"])
    held = lease(room)
    room.store.transact("send", lambda tx: tx.session.run("UPDATE messages SET state = 1 WHERE body = 'a'"))
    assert room.journal.verify().differences
    room.journal.mend()
    assert room.journal.verify().differences == ()
    assert counts(room) == (1, 1, 1)
    held.done()
