"""Procedures whose executors read messages and leave outcomes in the store: they end as those of the other way do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession
from tests.conftest import Urls
from tests.engine.outcome import staged, verbs
from tests.stations.procedures.office import office

from postroom.engine.spark import jobs
from postroom.engine.spark.executor_store import SETTING, Ticket
from postroom.engine.spark.jobs import receipt
from postroom.model.key import key_number
from postroom.room import Postroom
from postroom.stations.procedures.actions import Bench, Complete, Member
from postroom.stations.procedures.evaluation import ProceduresTask, packed

MATCHED = """\
procedure matched at ann
  precondition order : ORDER
  precondition bill : BILL
    No: ?order.No
  action done on order
    Status: matched
    Amount: ?bill.Amount
  create receipt : BILL
    No: ?order.No
    Note: ?order.KEY
  destination d on order copy 0 ship bob
  destination r on receipt copy 0 ship cid
  destination b on bill copy 0 dossier done
"""
MASTER = "local[2]"


def room_of(url: str, folder: Path) -> Postroom:
    room = office(url, folder, MATCHED)
    room._parts.interpreter.evaluate = None
    return room


def fill(room: Postroom, count: int) -> list[str]:
    ann = room.stations._station("ann")
    ann.create_many("BILL", [{"No": n, "Amount": n} for n in range(count)])
    return list(ann.create_many("ORDER", [{"No": n, "Item": "x"} for n in range(count)]))


def run(room: Postroom, way: str = "store") -> None:
    room.run_until_idle(master=MASTER, conf={SETTING: way})


def mail(room: Postroom) -> list[tuple[Any, ...]]:
    bob = room.stations._station("bob")
    bob.get()
    return [(each.key, each.fields["Status"], each.fields["Amount"]) for each in bob.query("ORDER")]


def test_both_ways_end_alike(urls: Urls, tmp_path: Path, spark: SparkSession) -> None:
    ends = []
    for way in ("driver", "store"):
        with room_of(urls(), tmp_path) as room:
            fill(room, 150)
            run(room, way)
            ends.append((verbs(room), mail(room)))
            assert len(ends[-1][1]) == 150
            assert {status for _, status, _ in ends[-1][1]} == {"matched"}
            assert staged(room) == 0
    assert ends[0] == ends[1]


def test_executors_get_keys_and_give_receipts(
    urls: Urls, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[bytes] = []
    frame = jobs.frame

    def noted(spark: SparkSession, task: Any, chunks: Sequence[bytes], ticket: Ticket | None = None) -> Any:
        answers = frame(spark, task, chunks, ticket)
        given.extend([*chunks, *(row.packed for row in answers.collect())])
        return answers

    monkeypatch.setattr(jobs, "frame", noted)
    with room_of(urls(), tmp_path) as room:
        fill(room, 20)
        run(room)
        assert len(mail(room)) == 20
    assert given
    assert not any(b'"Item"' in each or b'"Status"' in each for each in given)


# --- damage and change between the claim and the reading ---


def before_the_job(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    frame, left = jobs.frame, [act]

    def late(*about: Any) -> Any:
        if left:
            left.pop()()
        return frame(*about)

    monkeypatch.setattr(jobs, "frame", late)


def test_a_message_that_is_gone_before_it_is_read_is_in_no_set(
    urls: Urls, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with room_of(urls(), tmp_path) as room:
        orders = fill(room, 5)
        before_the_job(monkeypatch, lambda: room.stations._station("ann").ship(orders[2], "cid"))
        run(room)
        assert [key for key, *_ in mail(room)] == [key for key in orders if key != orders[2]]
        assert room.stations._station("ann").dossiers() == {"done": 4}


def test_a_message_that_was_changed_since_the_claim_is_worked_on_as_it_is(
    urls: Urls, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with room_of(urls(), tmp_path) as room:
        fill(room, 3)
        ann = room.stations._station("ann")
        (bill,) = ann.query("BILL", No="1")
        before_the_job(monkeypatch, lambda: ann.modify(bill.key, Amount=40))
        run(room)
        assert [amount for *_, amount in mail(room)] == [0, 40, 2]


def test_a_message_that_is_damaged_since_the_claim_is_passed_over_as_it_always_is(
    urls: Urls, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with room_of(urls(), tmp_path) as room:
        orders = fill(room, 3)

        def damage() -> None:
            with psycopg.connect(room.url, autocommit=True) as connection:
                connection.execute("UPDATE messages SET body = 'rot' WHERE key = %s", (key_number(orders[1]),))

        before_the_job(monkeypatch, damage)
        run(room)
        assert [key for key, *_ in mail(room)] == [orders[0], orders[2]]
        assert room.stations._station("ann").dossiers() == {"done": 2}
        assert room.journal.locate(orders[1]) == "ann"


def test_an_executor_that_cannot_reach_the_store_says_so() -> None:
    piece = Complete(7, "p", (Member("o", "ORDER", 1, "100001"),), (), 0)
    ticket = Ticket("postgresql://nobody:secret@127.0.0.1:1/nowhere", 1, 1, 1)
    told = receipt(ProceduresTask(Bench({}, {}, {}, {}), 1.0), ticket, 4, packed([piece]))
    assert told.chunk == 4
    assert "127.0.0.1" in told.trouble
    assert "secret" not in told.trouble
