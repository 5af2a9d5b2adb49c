"""The express lane of PostgreSQL has the effect of the long way, and those who use it do not wait for each other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.conftest import Urls

import postroom
from postroom import faults
from postroom.engine.datasource.tail import Tail
from postroom.errors import ArgumentInvalid, CommitUnknown, MessageCorrupt, StoreStopped, StoreUnavailable
from postroom.limits import FOLD_LINES
from postroom.model.message import Draft, Stored, message_hash
from postroom.room import Postroom
from postroom.store.kernel.journal import put_digest, server_digest
from postroom.store.kernel.message_rows import State
from postroom.store.kernel.queues import Hold
from postroom.store.kernel.transaction import Transaction
from postroom.store.postgres.express import Lanes
from postroom.store.postgres.store import PostgresStore
from postroom.store.upkeep.backup import backup, restore

Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def room(postgres_url: str) -> Iterator[Postroom]:
    with postroom.open(postgres_url) as opened:
        opened.queues.create("q")
        opened.send("q", "first")
        assert body(opened) == "first"
        yield opened
        assert opened.journal.verify().differences == ()


@pytest.fixture
def other(postgres_url: str, room: Postroom) -> Iterator[Connection]:
    """Someone else's transaction."""
    with psycopg.connect(postgres_url) as connection:
        yield connection


def body(room: Postroom, queue: str = "q", wait: float | None = None) -> str | None:
    message = room.receive(queue, wait=wait).message
    return None if message is None else message.body


def under_way(connection: Connection, text: str) -> int:
    """A send that has not committed yet; answers with its line."""
    stop = connection.execute("SELECT postroom_keys(1)").fetchall()[0][0]
    connection.commit()
    key, draft, now = stop - 1, Draft.of(text), 1_000_000
    values = (1, key, now, draft.body, draft.format, draft.properties, message_hash(key, now, None, *draft), "other")
    statement = "SELECT postroom_send(%s, %s, %s, %s, %s, %s, %s, %s, %s, pg_sequence_last_value('queue_changes'))"
    line: int = connection.execute(statement, (*values, put_digest(now, key, 1, "other"))).fetchall()[0][0]
    return line


def counts(room: Postroom) -> tuple[int, int]:
    (count,) = room.queues.accept("q").queues
    return count.unprocessed, count.processed


STEPS = (
    "send send receive many receive segment segment receive send hold send receive release discard receive keep send"
)


def play(room: Postroom, step: str) -> Any:
    if step == "many":
        return len(room.send_many("q", ["x", "y"]).keys)
    if step in ("keep", "discard"):
        return room.queues.set_mode("q", keep_processed=step == "keep")
    if step in ("hold", "release"):
        hold = Hold.OUTPUT if step == "hold" else Hold.NONE
        return room.store.transact("hold", lambda tx: tx.queues.hold(tx.queues.locked(1), hold))
    if step == "send":
        return room.send("q", "one\ntwo", properties={"a": 1}).status
    try:
        received = room.receive("q", segment=step == "segment")
    except postroom.errors.QueueHeld as refusal:
        return refusal.code
    return received.message and received.message.body, received.passed, received.end_of_message


def _page(state: State, tx: Transaction) -> list[Stored]:
    return tx.messages.page(tx.queues.all()[0], state, 0, 100)


def told(room: Postroom) -> list[Any]:
    """What a room comes to, but for keys: both ways take them in blocks of different sizes."""
    lines = [(event.verb, event.source, event.target, event.by, event.detail) for event in room.journal.last(100)]
    rows = [
        (stored.body, stored.properties, stored.processed is None)
        for state in (State.PROCESSED, State.UNPROCESSED)
        for stored in room.store.read(partial(_page, state))
    ]
    return [lines, rows, counts(room), room.journal.verify().differences]


def test_with_and_without_the_express_lane_the_room_is_the_same(urls: Urls) -> None:
    found = []
    for express in (True, False):
        with postroom.open(urls()) as room:
            room.queues.create("q")
            if not express:  # The ignores: taking the lane away is the point of this test.
                room.store.send_one = lambda queue, draft, receipt=None: None  # type: ignore[method-assign]
                room.store.send_some = lambda queue, drafts: None  # type: ignore[method-assign]
                room.store.receive_one = lambda queue: None  # type: ignore[method-assign]
            found.append(([play(room, step) for step in STEPS.split()], told(room)))
    assert found[0] == found[1]


def test_documents_whose_format_nobody_said_are_looked_at_the_long_way(room: Postroom, tmp_path: Path) -> None:
    """In a queue that rules read, they would else be texts that no rule matches."""
    rule = "create rule r for read if (//none) then do enqueue <b/> into read"
    (tmp_path / "p.demaq").write_text(f"create queue read kind basic mode persistent {rule}")
    room.load(tmp_path / "p.demaq")
    room.send_many("read", ["a", "b"])
    room.send_many("read", ["<a/>", "c"])
    assert [message.format.value for message in room.queues.info("read")][2:] == ["xml", "text"]


# --- beside each other ---


def test_a_send_does_not_wait_for_another(room: Postroom, other: Connection) -> None:
    under_way(other, "late")
    room.store.session.connection.execute("SET lock_timeout = '200ms'")  # type: ignore[attr-defined]  # PostgreSQL's
    room.send("q", "early")
    room.send_many("q", ["and", "others"])
    assert counts(room) == (3, 1)
    other.commit()
    assert counts(room) == (4, 1)
    assert [body(room) for _ in range(4)] == ["late", "early", "and", "others"], "in the order of their lines"


def test_a_receive_goes_past_what_another_has_in_hand(room: Postroom, other: Connection) -> None:
    room.send_many("q", ["a", "b", "c"])
    assert other.execute("SELECT body FROM postroom_receive(1, 'other', NULL)").fetchone() == ("a",)
    assert body(room) == "b"
    other.rollback()
    assert [body(room), body(room), body(room)] == ["a", "c", None], "what it had comes to its place again"


def test_a_receive_that_finds_nothing_waits_for_those_under_way(room: Postroom, other: Connection) -> None:
    """Else it would say that there is nothing, though what another had in hand comes back."""
    room.send("q", "a")
    other.execute("SELECT body FROM postroom_receive(1, 'other', NULL)")
    threading.Timer(0.3, other.rollback).start()
    assert body(room) == "a"


def test_whoever_changes_a_queue_has_it_alone(room: Postroom, other: Connection) -> None:
    under_way(other, "late")
    seen: list[int] = []

    def work(tx: Transaction) -> None:
        queue = tx.queues.named("q")
        assert queue is not None
        seen.append(queue.unprocessed)

    threading.Timer(0.3, other.commit).start()
    room.store.transact("hold", work)
    assert seen == [1], "it has waited for the send that was under way"


def test_a_follower_misses_nothing_that_commits_late_with_a_lower_line(room: Postroom, other: Connection) -> None:
    tail = Tail(room.store, "q")
    begin = tail.last(0)
    line = under_way(other, "late")
    room.send("q", "early")
    threading.Timer(0.3, other.commit).start()
    end = tail.last(begin)
    queue = room.store.read(lambda tx: tx.queues.named_to_read("q"))
    assert queue is not None
    found = room.store.read(lambda tx: tx.scans.arrivals(queue, begin, end, 10))
    assert [each.stored.body for each in found] == ["late", "early"]
    assert found[0].after == line


def test_rooms_of_one_database_do_not_wait_for_each_other(room: Postroom, urls: Urls) -> None:
    with postroom.open(urls()) as another:
        another.queues.create("q")
        for place in (room, another):
            place.store.session.connection.execute("SET lock_timeout = '200ms'")  # type: ignore[attr-defined]  # PostgreSQL's

        def work(tx: Transaction) -> None:
            tx.queues.named("q")
            another.send("q", "x")

        room.store.transact("send", work)
        assert body(another) == "x"


def test_threads_of_one_room_do_not_wait_for_each_other(room: Postroom, other: Connection) -> None:
    """One of them waits for someone else's transaction in one queue, and the others go on in another."""
    room.queues.create("r")
    for queue in ("q", "r"):
        room.send(queue, "known")
        assert body(room, queue) == "known"
    other.execute("SELECT postroom_lock(1)")
    waiting = threading.Thread(target=room.send, args=("q", "late"))
    waiting.start()
    for _ in range(200):
        if not room.store._mutex.acquire(blocking=False):
            break
        room.store._mutex.release()
        threading.Event().wait(0.01)
    done = [threading.Thread(target=room.send, args=("r", str(number))) for number in range(4)]
    for thread in done:
        thread.start()
    for thread in done:
        thread.join(5)
    assert not any(thread.is_alive() for thread in done)
    assert waiting.is_alive()
    assert body(room, "r") is not None
    other.rollback()
    waiting.join(10)
    assert counts(room)[0] == 1


def test_when_the_server_has_no_connection_left_threads_take_turns(room: Postroom, postgres_url: str) -> None:
    made: list[int] = []

    def refuse() -> PostgresStore:
        made.append(1)
        raise StoreUnavailable(why="a test")

    assert isinstance(room.store, PostgresStore)
    room.store._lanes = Lanes(refuse)
    threads = [threading.Thread(target=lambda: [room.send("q", str(number)) for number in range(10)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert counts(room)[0] == 40


# --- waking ---


def notified(connection: Connection, act: Callable[[], object]) -> int:
    act()
    return len(list(connection.notifies(timeout=0.2)))


def test_only_those_who_wait_are_woken(room: Postroom, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as listener:
        listener.execute("LISTEN postroom")
        assert notified(listener, lambda: room.send("q", "a")) == 0, "nobody has said that he waits"
        body(room)
        listener.execute("SELECT postroom_wait()")
        assert notified(listener, lambda: room.send("q", "b")) == 1
        assert notified(listener, lambda: room.send("q", "c")) == 0, "the queue was not empty"


def test_a_receiver_that_waits_is_woken_by_an_express_send(room: Postroom, postgres_url: str) -> None:
    found: list[str | None] = []

    def wait() -> None:
        with postroom.open(postgres_url) as mine:
            found.append(body(mine, wait=20))

    thread = threading.Thread(target=wait)
    thread.start()
    for _ in range(200):
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND granted"
        if room.store.session.number(waiting):
            break
        threading.Event().wait(0.02)
    room.send("q", "at last")
    thread.join(4)  # a lost wake-up would take longer
    assert found == ["at last"]


def test_whoever_waits_again_needs_no_new_connection(room: Postroom) -> None:
    assert isinstance(room.store, PostgresStore)
    assert body(room, wait=0.05) is None
    (resting,) = room.store._resting
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND granted"
    assert room.store.session.number(waiting) == 0, "nobody is said to wait"
    assert body(room, wait=0.05) is None
    assert room.store._resting == [resting]
    resting.close()
    assert body(room, wait=0.05) is None, "one that is gone is made anew"
    assert room.store._resting not in ([], [resting])


# --- counts and places ---


def test_counts_are_right_before_and_after_they_are_written_down(room: Postroom) -> None:
    line = room.store.read(lambda tx: tx.journal.newest())
    several = FOLD_LINES // 4
    for number in range(5):
        room.send_many("q", [f"{number} {each}" for each in range(several)])
        assert body(room) is not None
        assert counts(room) == ((several - 1) * (number + 1), 2 + number)
    tallies = room.store.read(lambda tx: tx.session.rows("SELECT upto, arrived, departed FROM tallies"))
    assert len(tallies) == 1
    assert tallies[0][0] > line + FOLD_LINES // 2, "someone has written them down meanwhile"


def test_what_comes_back_is_found_before_the_head(room: Postroom) -> None:
    room.send_many("q", ["a", "b", "c"])
    message = room.store.receive_one(1)
    assert message is not None
    stored = message._stored
    fold = "SELECT postroom_lock(1)"
    room.store.session.connection.execute(fold)  # type: ignore[attr-defined]  # PostgreSQL's
    head = room.store.read(lambda tx: tx.session.value("SELECT max(head) FROM tallies"))
    assert head is not None
    assert head >= stored.position
    room.store.transact("return", lambda tx: tx.messages.untake(tx.queues.locked(1), stored, "a test"))
    assert [body(room) for _ in range(4)] == ["a", "b", "c", None]


def test_a_sweep_and_express_receives_are_counted_together(room: Postroom) -> None:
    room.send_many("q", ["a", "b", "c"])
    assert body(room) == "a"
    room.queues.set_mode("q", keep_processed=False)
    assert counts(room) == (2, 0)
    assert [body(room), body(room)] == ["b", "c"]
    assert counts(room) == (0, 0)


# --- what goes wrong ---


def test_a_damaged_message_is_set_aside_though_it_was_taken(room: Postroom) -> None:
    room.send_many("q", ["a", "b"])
    room.store.transact("send", lambda tx: tx.session.run("UPDATE messages SET body = 'forged' WHERE body = 'a'"))
    with pytest.raises(MessageCorrupt):
        room.receive("q")
    assert body(room) == "b"
    room.store.transact("send", lambda tx: tx.session.run("UPDATE messages SET body = 'a' WHERE body = 'forged'"))


def test_a_line_that_the_server_made_is_verified(room: Postroom) -> None:
    room.send("q", "a")
    assert body(room) == "a"
    lines = room.store.read(lambda tx: list(tx.journal.lines()))
    take = [line for line in lines if line.verb == "take"][-1]
    assert take.digest is not None
    assert len(take.digest) == 9
    said = (take.at, take.verb, take.message, take.prior, take.source, take.target, take.actor)
    assert take.digest == server_digest(*said)
    assert take.sound
    assert not take._replace(message=7).sound


def test_a_connection_lost_in_the_call_leaves_it_unknown(postgres_url: str) -> None:
    room = postroom.open(postgres_url)
    room.queues.create("q")
    for text in ("first", "second"):  # by now it has keys of its own
        room.send("q", text)
        assert body(room) == text
    assert isinstance(room.store, PostgresStore)
    pid = room.store.session.connection.info.backend_pid
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
    with pytest.raises(CommitUnknown):
        room.send("q", "a")
    with pytest.raises(StoreStopped):
        room.send("q", "a")
    with postroom.open(postgres_url) as again:
        assert body(again) in ("a", None)
        assert again.journal.verify().differences == ()


def test_a_text_that_no_server_takes_is_refused_and_the_room_goes_on(room: Postroom) -> None:
    with pytest.raises(ArgumentInvalid):
        room.store.send_one(1, Draft("a\0b", "text", None, "{}"))
    assert room.send("q", "a").status == "00"
    assert body(room) == "a"


@pytest.mark.parametrize("point", ["send.begun", "send.committing"])
def test_a_fault_before_the_call_changes_nothing(room: Postroom, point: str) -> None:
    faults.arm(point, "raise")
    try:
        with pytest.raises(faults.FaultInjected):
            room.send("q", "a")
    finally:
        faults.disarm()
    assert counts(room) == (0, 1)


# --- from one store to the other ---


def test_a_backup_is_a_room_on_sqlite_with_numbers_that_count(room: Postroom, urls: Urls, tmp_path: Path) -> None:
    room.send_many("q", ["a", "b", "c"])
    assert body(room) == "a"
    room.send("q", "d")
    backup(room.store, tmp_path / "copy.db")
    with postroom.open(tmp_path / "copy.db") as copy:
        assert copy.journal.verify().differences == ()
        assert copy.send("q", "e").status == "00"
        rows = copy.store.read(lambda tx: tx.session.rows("SELECT number FROM messages ORDER BY number"))
        assert [row[0] for row in rows] == [1, 2, 3, 4, 5, 6]
        assert [body(copy) for _ in range(4)] == ["b", "c", "d", "e"]
        assert copy.journal.verify().differences == ()
    with postroom.open(urls()) as third:
        restore(third.store, tmp_path / "copy.db")
        third_url = third.store.address
    assert third_url is not None
    with postroom.open(third_url) as third:
        assert third.journal.verify().differences == ()
        third.send("q", "f")
        third.send("q", "g")
        assert [body(third), body(third), body(third)] == ["f", "g", None]
        assert third.journal.verify().differences == ()
