"""PostgreSQL alone: lost connections, other people's locks, what an error may say."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep

import psycopg
import pytest

import postroom
from postroom.errors import (
    CommitUnknown,
    QueueUnknown,
    RoomMissing,
    StoreBusy,
    StoreNewer,
    StoreStopped,
    StoreUnavailable,
    UrlInvalid,
)
from postroom.room import Postroom
from postroom.store.kernel.transaction import Transaction
from postroom.store.postgres.store import PostgresStore
from postroom.store.urls import public_url


@pytest.fixture
def room(postgres_url: str) -> Iterator[Postroom]:
    with postroom.open(postgres_url) as opened:
        opened.queues.create("q")
        yield opened


def backend(room: Postroom) -> int:
    assert isinstance(room.store, PostgresStore)
    return room.store.session.connection.info.backend_pid


def terminate(postgres_url: str, pid: int) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))


def test_a_connection_lost_between_transactions_changes_nothing(room: Postroom, postgres_url: str) -> None:
    terminate(postgres_url, backend(room))
    with pytest.raises(StoreUnavailable) as caught:
        room.send("q", "x")
    assert caught.value.happened == "no"
    with pytest.raises(StoreStopped):
        room.send("q", "x")
    with postroom.open(postgres_url) as again:
        assert again.queues.accept("q").queues[0].unprocessed == 0


def test_a_connection_lost_inside_a_transaction_undoes_it(room: Postroom, postgres_url: str) -> None:
    def work(tx: Transaction) -> None:
        tx.journal.add("note")
        terminate(postgres_url, backend(room))
        tx.journal.add("note")

    with pytest.raises(StoreUnavailable):
        room.store.transact("send", work)
    with postroom.open(postgres_url) as again:
        assert "note" not in [event.verb for event in again.journal.last(50)]


def test_a_connection_lost_at_the_commit_is_unknown(room: Postroom, postgres_url: str) -> None:
    def work(tx: Transaction) -> None:
        tx.journal.add("note")
        terminate(postgres_url, backend(room))

    with pytest.raises(CommitUnknown) as caught:
        room.store.transact("send", work)
    assert caught.value.happened == "unknown"


def test_a_lock_held_by_others_is_a_typed_refusal(room: Postroom, postgres_url: str) -> None:
    assert isinstance(room.store, PostgresStore)
    room.store.session.connection.execute("SET lock_timeout = '100ms'")
    with psycopg.connect(postgres_url) as other:
        other.execute("SELECT postroom_lock(id) FROM queues")
        with pytest.raises(StoreBusy):
            room.send("q", "x")
    assert room.send("q", "x").status == "00"


def test_two_transactions_that_wait_for_each_other_are_both_done_in_the_end(postgres_url: str) -> None:
    with postroom.open(postgres_url) as room:
        room.queues.create("a")
        room.queues.create("b")

    def send(first: str, second: str) -> None:
        with postroom.open(postgres_url) as mine:
            for _ in range(15):
                mine.queues.distribute([first, second], "x")

    threads = [threading.Thread(target=send, args=names) for names in (("a", "b"), ("b", "a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with postroom.open(postgres_url) as room:
        assert [count.unprocessed for count in room.queues.accept().queues] == [30, 30]


def test_a_missing_room_and_one_from_the_future(empty_postgres_url: str) -> None:
    with pytest.raises(RoomMissing) as caught:
        postroom.open(empty_postgres_url, create=False)
    assert "postgresql://" in str(caught.value)
    postroom.open(empty_postgres_url).close()
    with psycopg.connect(empty_postgres_url, autocommit=True) as connection:
        connection.execute("INSERT INTO postroom_schema VALUES (999)")
    with pytest.raises(StoreNewer):
        postroom.open(empty_postgres_url)


def test_no_error_shows_a_password() -> None:
    assert public_url("postgresql://ann:s3cret@host:5/db?password=s3cret") == "postgresql://ann@host:5/db"
    assert public_url("postgresql://host/db") == "postgresql://host/db"
    with pytest.raises(StoreUnavailable) as caught:
        postroom.open("postgresql://ann:s3cret@127.0.0.1:1/none")
    assert "s3cret" not in str(caught.value)
    with pytest.raises(StoreUnavailable) as caught:
        postroom.open("postgresql://ann:s3cret%zz@127.0.0.1:1/none")
    assert "s3cret" not in str(caught.value)


def test_commits_are_durable_whatever_the_servers_default(room: Postroom) -> None:
    assert isinstance(room.store, PostgresStore)
    assert room.store.session.connection.execute("SHOW synchronous_commit").fetchone() == ("on",)


def test_a_send_that_waited_for_a_load_does_not_land_in_a_retired_queue(postgres_url: str, tmp_path: Path) -> None:
    file = tmp_path / "t.qdl"
    file.write_text("01 INPUT-QUEUE (A)\n02 SUB-QUEUE-1 (B)\n02 SUB-QUEUE-1 (C)\n99")
    with postroom.open(postgres_url) as loader, postroom.open(postgres_url) as sender:
        loader.load(file)
        answers: list[object] = []

        def send() -> None:
            try:
                answers.append(sender.send(("A", "B"), "x"))
            except QueueUnknown as refusal:
                answers.append(refusal)

        def work(tx: Transaction) -> None:
            queue = tx.queues.named("INP_0000")
            assert queue is not None
            tx.queues.retire(queue)
            thread.start()
            sleep(0.5)

        thread = threading.Thread(target=send)
        loader.store.transact("load", work)
        thread.join(20)
        assert isinstance(answers[0], QueueUnknown)


def test_a_queue_that_appears_while_it_is_looked_for_is_not_used_unlocked(room: Postroom) -> None:
    assert isinstance(room.store, PostgresStore)
    session = room.store.session
    real = session.lock

    def lock_too_early(statement: str, value: object) -> bool:
        session.lock = real  # type: ignore[method-assign]
        return False

    # The ignores: the moment between a lock and a read cannot be hit from outside.
    session.lock = lock_too_early  # type: ignore[method-assign]
    assert room.store.transact("send", lambda tx: tx.queues.named("q")) is None


def test_a_waiter_notices_a_lock_whose_owner_died(postgres_url: str) -> None:
    with postroom.open(postgres_url) as room:
        room.queues.create("q")
        room.send("q", "a\nb")
        script = "import sys, time, postroom\nroom = postroom.open(sys.argv[1])\nroom.receive('q', segment=True)\n"
        child = subprocess.Popen(
            [sys.executable, "-c", script + "print('locked', flush=True)\ntime.sleep(60)", postgres_url],
            stdout=subprocess.PIPE,
        )
        assert child.stdout is not None
        with child:
            child.stdout.readline()
            threading.Timer(0.5, child.kill).start()
            received = room.receive("q", wait=30)
        assert received.message is not None


@pytest.mark.parametrize("url", ["mysql://host/db", "", "sqlite://", ":memory:", "a\0b", "ftp://x"])
def test_urls_that_name_no_store_are_refused(url: str) -> None:
    with pytest.raises(UrlInvalid) as caught:
        postroom.open(url)
    assert "postgresql://" in str(caught.value)


def test_a_commit_that_goes_on_without_its_client_is_settled_before_anyone_is_told(
    room: Postroom, postgres_url: str
) -> None:
    """The server is slow at the commit and does not notice that nobody is there any more."""
    assert isinstance(room.store, PostgresStore)
    connection = room.store.session.connection
    connection.execute(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(1); RETURN NULL; END'"
    )
    connection.execute(
        "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON messages DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION slow()"
    )
    line = socket.socket(fileno=os.dup(connection.fileno()))
    cut = threading.Timer(0.5, line.shutdown, (socket.SHUT_RDWR,))
    cut.start()
    with pytest.raises(CommitUnknown):
        room.send("q", "late", idempotency_key="once")
    with postroom.open(postgres_url) as other:
        seen = [message.body for message in other.queues.info("q")]
        sleep(1.5)
        assert [message.body for message in other.queues.info("q")] == seen == ["late"]
        other.send("q", "late", idempotency_key="once")
        assert len(list(other.queues.info("q"))) == 1
    line.close()


def test_sends_to_the_same_queues_in_other_orders_do_not_wait_in_a_circle(postgres_url: str) -> None:
    """PostgreSQL would find out after a second, and end one of them."""
    with postroom.open(postgres_url) as room:
        for name in "abcd":
            room.queues.create(name)

    def deadlocks() -> int:
        with psycopg.connect(postgres_url) as connection:
            row = connection.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
            return int(row.fetchone()[0])  # type: ignore[index]

    def send(order: str) -> None:
        with postroom.open(postgres_url) as room:
            for number in range(60):
                room.queues.distribute(list(order), f"{order} {number}")

    before = deadlocks()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(send, ["abcd", "dcba", "bdac", "cadb"]))
    assert deadlocks() == before, "each has told of them when it left"
    with postroom.open(postgres_url) as room:
        assert [queue.unprocessed for queue in room.queues.accept().queues] == [240] * 4


def test_an_index_that_has_lost_messages_is_named_and_made_anew(postgres_url: str) -> None:
    """As rot would have it: rows that the index over unprocessed messages does not lead to."""
    change = "UPDATE pg_index SET indisready = %s WHERE indexrelid = 'messages_chain'::regclass"
    with postroom.open(postgres_url) as room:
        room.queues.create("q")
        room.send_many("q", ["1", "2", "3"])
        assert room.journal.verify().differences == ()
    with psycopg.connect(postgres_url, autocommit=True) as superuser:
        superuser.execute(change, (False,))
        with postroom.open(postgres_url) as room:
            room.send("q", "lost")
            assert "index messages_chain is not valid" in [each.tables for each in room.journal.verify().differences]
        superuser.execute(change, (True,))
    with postroom.open(postgres_url) as room:
        found = [each.tables or "" for each in room.journal.verify().differences if each.what == "the file"]
        assert len(found) == 1
        assert found[0].startswith("of 4 message(s) of queue")
        assert found[0].endswith("index messages_chain leads to 3")
        assert room.journal.mend().left == ()
        assert [message.body for message in room.queues.info("q")] == ["1", "2", "3", "lost"]
