"""Executors that read messages in the store and leave their answers there: the outcome is that of the other way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession
from tests.conftest import Urls
from tests.engine.outcome import staged, told, verbs

import postroom
from postroom.engine.runner import Totals
from postroom.engine.spark.executor_store import (
    SETTING,
    AnswerStore,
    Damaged,
    Receipt,
    Ticket,
    _opened,
    exchange,
    leave_all,
    settings_of_spark,
)
from postroom.engine.spark.jobs import receipt
from postroom.engine.steps.step import set_aside
from postroom.errors import ArgumentInvalid, LeaseLost, StoreFull, StoreUnavailable
from postroom.model.key import key_number
from postroom.room import Postroom
from postroom.rules.evaluation import chunks, worker
from postroom.rules.evaluation.chunks import packed
from postroom.rules.evaluation.worker import RulesTask
from postroom.store.kernel.batch import Stale
from postroom.store.postgres.store import PostgresStore

from ...faults.engine_workload import PROGRAM
from ...faults.here import executors_here

MASTER = "local[2]"
THERE = {SETTING: "store"}


@pytest.fixture
def room(urls: Urls) -> Iterator[Postroom]:
    with postroom.open(urls()) as opened:
        yield opened
    leave_all()


def load(room: Postroom, folder: Path, program: str = PROGRAM) -> Postroom:
    file = folder / "program.demaq"
    file.write_text(program)
    room.load(file)
    return room


def requests(count: int, bad: int = -1) -> list[str]:
    return [f"<request><id>r-{n}</id><n>{'x' if n == bad else n}</n></request>" for n in range(count)]


def depot_of(room: Postroom, fence: int = 1) -> closing[AnswerStore]:
    assert room.store.address is not None
    return closing(AnswerStore(room.store.address, fence))


# --- the same outcome ---


def test_both_ways_end_alike(urls: Urls, tmp_path: Path, spark: SparkSession) -> None:
    """Slices, echoes, errors, several steps and several chunks: the same messages, keys, causes and journal."""
    ends = []
    for way in ("driver", "store"):
        with load(postroom.open(urls()), tmp_path) as room:
            room.send_many("requests", requests(150, bad=7), format="xml")
            totals = room.engine.run_totals(until_idle=True, master=MASTER, conf={SETTING: way})
            assert totals.failures == 1
            room.engine.sweep()
            ends.append((totals.messages, totals.created, told(room), verbs(room)))
            assert len(ends[-1][2]["book"]) == 149
            assert staged(room) == 0
    assert ends[0] == ends[1]


def test_executors_read_and_write_and_the_engine_hands_over_keys(
    room: Postroom, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What goes to Spark has none of the bodies, and what comes back none of the answers."""
    sent: list[bytes] = []
    came: list[bytes] = []

    def kept(work: Callable[..., Any], into: list[bytes], at_end: bool) -> Callable[..., Any]:
        def noted(*given: Any, **more: Any) -> Any:
            found = work(*given, **more)
            into.append(found if at_end else given[0])
            return found

        return noted

    monkeypatch.setattr(chunks, "packed", kept(packed, sent, at_end=True))
    monkeypatch.setattr(Receipt, "unpacked", kept(Receipt.unpacked, came, at_end=False))
    load(room, tmp_path).send_many("requests", requests(200), format="xml")
    room.engine.run_totals(until_idle=True, master=MASTER, conf=THERE)
    assert sent
    assert not any(b"<request>" in each or b"<export>" in each for each in sent)
    assert len(came) >= len(sent) - 1
    assert max(map(len, came)) < 200
    assert len(room.queues.info("book").messages) == 200


@pytest.mark.slow
def test_a_message_that_kills_its_worker_loses_its_own_actions_only(
    room: Postroom, tmp_path: Path, spark: SparkSession
) -> None:
    program = """
    create queue in kind basic mode persistent errorqueue errors
    create queue out kind basic mode persistent
    create queue errors kind basic mode persistent
    create rule work for in
    if (/m = "13") then
      do enqueue <r>{let $f := function($g, $n) {1 + $g($g, $n + 1)} return $f($f, count(/m))}</r> into out
    else do enqueue <r>{string(/m)}</r> into out
    """
    load(room, tmp_path, program).send_many("in", [f"<m>{n}</m>" for n in range(20)], format="xml")
    room.engine.run_totals(until_idle=True, master=MASTER, conf=THERE)
    assert len(room.queues.info("out").messages) == 19
    (error,) = room.queues.info("errors").messages
    assert "<m>13</m>" in error.body
    assert staged(room) == 0, "what its job left was swept"


# --- damage and change between the claim and the reading ---


def run_here(room: Postroom, *acts: Callable[[], object], **options: Any) -> Totals:
    return executors_here(room, *acts).engine.run_totals(until_idle=True, **options)


def damage(url: str, key: str) -> Callable[[], object]:
    def act() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("UPDATE messages SET body = 'rot' WHERE key = %s", (key_number(key),))

    return act


def test_a_message_that_executors_find_damaged_is_set_aside(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path)
    keys = room.send_many("requests", requests(5), format="xml").keys
    totals = run_here(room, damage(room.url, keys[2]))
    assert len(room.queues.info("book").messages) == 4
    assert [event.verb for event in room.trace(keys[2])] == ["put", "set-aside"]
    assert totals.failures == 0
    assert staged(room) == 0


def test_a_damaged_member_of_a_slice_is_not_there(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path)
    keys = [
        room.send("crm", f"<{name}><id>a</id></{name}>", format="xml").key for name in ("creditResult", "exportResult")
    ]
    run_here(room, step_messages=1)
    assert len(room.queues.history("customer").messages) == 1, "the check below can fail"
    keys = [
        room.send("crm", f"<{name}><id>b</id></{name}>", format="xml").key for name in ("creditResult", "exportResult")
    ]
    run_here(room, damage(room.url, keys[1]), step_messages=1)
    assert len(room.queues.history("customer").messages) == 1
    assert [[event.verb for event in room.trace(key)] for key in keys] == [["put", "take"], ["put", "set-aside"]]


def test_a_message_that_is_gone_before_it_is_read_is_claimed_by_nobody(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path).send_many("requests", requests(3), format="xml")

    def take() -> None:
        with postroom.open(room.url) as other:
            assert other.receive("requests").message is not None

    totals = run_here(room, take)
    assert len(room.queues.info("book").messages) == 2
    assert totals.failures == 0


def test_answers_that_a_crash_of_the_database_took_are_worked_out_again(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path).send_many("requests", requests(3), format="xml")
    with depot_of(room) as answer_store:
        bay = answer_store.bay()
        ticket = bay.ticket()
        assert ticket.leave(0, b"said")
        assert bay.answers(ticket, [Receipt(0)]) == [b"said"]
        with psycopg.connect(room.url, autocommit=True) as connection:
            assert connection.execute("SELECT relpersistence FROM pg_class WHERE relname = 'staged'").fetchone() == (
                "u",
            )
            connection.execute("TRUNCATE staged")
        with pytest.raises(Stale):
            bay.answers(ticket, [Receipt(0)])


# --- answers ---


def test_a_chunk_that_is_worked_off_twice_is_answered_once(room: Postroom) -> None:
    with depot_of(room) as answer_store:
        bay = answer_store.bay()
        ticket = bay.ticket()
        assert ticket.leave(1, b"first")
        assert not ticket.leave(1, b"late"), "a second or speculative attempt"
        assert ticket.leave(0, b"x" * 2_500_000)
        assert bay.answers(ticket, [Receipt(1), Receipt(0), Receipt(1)]) == [b"x" * 2_500_000, b"first"]
        assert staged(room) == 4, "a long answer has several parts"
        other = bay.ticket()
        assert other.job > ticket.job
        assert other.leave(0, b"")
        assert bay.answers(other, [Receipt(0)]) == [b""]


def test_what_no_step_commits_is_swept(room: Postroom) -> None:
    with depot_of(room, fence=3) as answer_store:
        early, late = answer_store.bay(), answer_store.bay()
        for bay in (early, late):
            bay.ticket().leave(0, b"said")
        Ticket(answer_store.url, 2, late.step + 100, 1).leave(0, b"of an engine before")
        assert staged(room) == 3
        room.store.transact("step", lambda tx: tx.staging.clear(3, early.step, late.step))
        assert staged(room) == 1
    room.run_until_idle()  # takes the lease with the number 1: what is there has a higher one
    Ticket(room.store.address or "", 1, 5, 1).leave(0, b"late")
    assert staged(room) == 2
    room.run_until_idle()
    assert staged(room) == 1
    room.store.transact("lease", lambda tx: tx.leases.acquire("engine", "other", 0))
    room.run_until_idle()
    assert staged(room) == 0


def test_receipts_of_trouble_are_told_and_blame_no_message(room: Postroom) -> None:
    with depot_of(room) as answer_store:
        bay = answer_store.bay()
        with pytest.raises(StoreUnavailable, match="an executor could not use the room: no route"):
            bay.answers(bay.ticket(), [Receipt(0), Receipt(1, trouble="no route")])
        with pytest.raises(Stale):
            bay.answers(bay.ticket(), [Receipt(0, gone=True)])
        with pytest.raises(Damaged) as raised:
            bay.answers(bay.ticket(), [Receipt(0, damaged=[5]), Receipt(1, damaged=[7])])
        assert raised.value.keys == [5, 7]


def test_an_executor_that_cannot_reach_the_store_says_so(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path)
    plan = room.store.read(room._parts.programs.plan)
    ticket = Ticket("postgresql://nobody:secret@127.0.0.1:1/nowhere", 1, 1, 1)
    told = receipt(RulesTask(plan), ticket, 4, packed([], {}, {}))
    assert told.chunk == 4
    assert "127.0.0.1" in told.trouble
    assert "secret" not in told.trouble
    assert "secret" not in repr(ticket)
    assert "secret" not in str(ticket)


def test_an_executor_that_cannot_leave_its_answer_says_so(
    room: Postroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(room, tmp_path)
    plan = room.store.read(room._parts.programs.plan)
    ticket = Ticket(room.store.address or "", 1, 1, 1)

    def refuse(*_: object) -> bool:
        raise StoreFull(why="no space left")

    monkeypatch.setattr(Ticket, "leave", refuse)
    assert "no space left" in receipt(RulesTask(plan), ticket, 0, packed([], {}, {})).trouble
    monkeypatch.setattr(worker, "evaluate_chunk", refuse)
    with pytest.raises(StoreFull):  # what goes wrong in the evaluation is a message's fault: the job is taken apart
        receipt(RulesTask(plan), ticket, 0, packed([], {}, {}))


def test_a_connection_that_was_ended_is_made_again(room: Postroom) -> None:
    ticket = Ticket(room.store.address or "", 1, 1, 1)
    assert ticket.fetched([1]) == {}
    (store,) = _opened.values()
    assert isinstance(store, PostgresStore)
    backend = store.session.connection.info.backend_pid
    with psycopg.connect(room.url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", (backend,))
    assert ticket.leave(0, b"said")
    assert list(_opened.values()) != [store]


def test_an_engine_that_lost_its_lease_sets_nothing_aside(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path)
    key = room.send("requests", requests(1)[0], format="xml").key
    room.store.transact("lease", lambda tx: tx.leases.acquire("engine", "other", 60))
    damage(room.url, key)()
    with pytest.raises(LeaseLost):
        room.store.transact("claim", lambda tx: set_aside(tx, [key_number(key)], 99))
    assert [event.verb for event in room.trace(key)] == ["put"]
    room.store.transact("claim", lambda tx: set_aside(tx, [key_number(key)], 1))
    room.store.transact("claim", lambda tx: set_aside(tx, [key_number(key)], 1))
    assert [event.verb for event in room.trace(key)] == ["put", "set-aside"]


def test_what_an_executor_misreads_is_not_blamed_on_the_message(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path)
    key = room.send("requests", requests(1)[0], format="xml").key
    room.store.transact("lease", lambda tx: tx.leases.acquire("engine", "other", 60))
    with pytest.raises(StoreUnavailable, match="otherwise than the engine"):
        room.store.transact("claim", lambda tx: set_aside(tx, [key_number(key)], 1))
    assert [event.verb for event in room.trace(key)] == ["put"]


# --- who hands over ---


def test_the_store_is_used_where_executors_are_elsewhere(room: Postroom, sqlite_url: str) -> None:
    assert exchange(room.store, "spark://host:7077", {}) == room.store.address
    assert exchange(room.store, "local[4]", {}) is None
    assert exchange(room.store, "local-cluster[2,1,1024]", THERE) == room.store.address
    assert exchange(room.store, "spark://host:7077", {SETTING: "driver"}) is None
    with postroom.open(sqlite_url) as file:
        assert exchange(file.store, "spark://host:7077", {}) is None
        with pytest.raises(ArgumentInvalid, match="a room in a file"):
            file.run_until_idle(conf=THERE)
    with pytest.raises(ArgumentInvalid, match="'queue' is not one of: store, driver"):
        room.run_until_idle(conf={SETTING: "queue"})
    assert settings_of_spark({**THERE, "spark.ui.enabled": "false"}) == {"spark.ui.enabled": "false"}
