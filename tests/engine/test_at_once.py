"""Few messages of every kind are evaluated without Spark; a backlog waits for it, and moves meanwhile."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from tests.faults.test_kill_workers import ARCS, RULES
from tests.stations.procedures.office import office

import postroom
from postroom.engine import worker_process
from postroom.engine.runner import Totals
from postroom.errors import ArgumentInvalid, SparkUnavailable
from postroom.limits import WORKER_MESSAGES_MAX
from postroom.room import Postroom
from postroom.stations.forms import functions

PROCEDURE = """\
procedure priced at ann
  precondition order : ORDER
  action done on order
    Status: loudly(?order.Item)
  destination d on order copy 0 ship bob
"""


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """There is none; tells who asked for it."""
    asked: list[str] = []

    def session(master: str, conf: Any, *, other: bool = False, lasting: bool = False) -> Any:
        asked.append(master)
        raise SparkUnavailable(master=master, why="there is none in this test", advice="")

    monkeypatch.setattr("postroom.room.engine.spark_session", session)
    return asked


def loaded(room: Postroom, folder: Path) -> None:
    for name, text in (("p.demaq", RULES), ("g.flow", ARCS)):
        (folder / name).write_text(text)
        room.load(folder / name)


def totals(room: Postroom, **options: Any) -> Totals:
    return room.engine.run_totals(until_idle=True, **options)


def test_few_messages_of_rules_arcs_and_procedures_need_no_spark(
    url: str, tmp_path: Path, no_spark: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Functions of a program travel to the worker by value: it knows no module of ours."""

    def loudly(item: str) -> str:
        assert os.getpid() != ours, "someone else's code does not run in the engine"
        return item.upper()

    ours = os.getpid()
    monkeypatch.setitem(functions._registered, "loudly", loudly)
    with office(url, tmp_path, PROCEDURE) as room:
        room._parts.interpreter.evaluate = None
        loaded(room, tmp_path)
        room.send("in", "<m>1</m>", format="xml")
        room.publish("S", {"n": 1})
        room.stations._station("ann").create("ORDER", No=1, Item="nut")
        done = totals(room)
        assert (done.evaluated, done.failures, no_spark) == ({"worker": 3}, 0, [])
        assert [message.body for message in room.queues.info("out")] == ["<r>1</r>"]
        assert [message.body for message in room.queues.info("U")] == ['{"n":2}']
        bob = room.stations._station("bob")
        bob.get()
        assert [each.fields["Status"] for each in bob.query("ORDER")] == ["NUT"]
        seen = [step.evaluated for step in room.operations.overview().steps]
        assert seen.count("worker") == 2, "of rules and arcs the journal tells"
        assert room.journal.verify().differences == ()


def test_a_step_that_is_too_large_waits_for_spark(room: Postroom, tmp_path: Path, no_spark: list[str]) -> None:
    loaded(room, tmp_path)
    room.send_many("in", ["<m/>"] * (WORKER_MESSAGES_MAX + 1), format="xml")
    with pytest.raises(SparkUnavailable):
        totals(room, step_messages=1_000)
    assert len(no_spark) == 1
    assert len(list(room.queues.info("in"))) == WORKER_MESSAGES_MAX + 1, "nothing was changed"
    done = totals(room)
    assert (done.messages, set(done.evaluated)) == (WORKER_MESSAGES_MAX + 1, {"worker"}), "in steps that need none"


def test_an_engine_that_stays_starts_spark_at_once_and_tells_if_it_cannot(
    room: Postroom, tmp_path: Path, no_spark: list[str]
) -> None:
    loaded(room, tmp_path)
    with pytest.raises(SparkUnavailable, match="there is none in this test"):
        room.run()
    assert no_spark == ["local[*]"]


def test_a_room_with_nothing_to_evaluate_starts_neither(room: Postroom, no_spark: list[str]) -> None:
    room.queues.create("plain").send("x")
    engine = threading.Thread(target=room.run)
    engine.start()
    sleep(1)
    room.stop()
    engine.join(30)
    assert no_spark == []


def test_an_idle_engine_whose_worker_was_killed_reacts_all_the_same(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = threading.Event()

    def session(master: str, conf: Any, *, other: bool = False, lasting: bool = False) -> Any:
        assert started.wait(600)  # Spark is starting all the time
        raise SparkUnavailable(master=master, why="a test", advice="")

    monkeypatch.setattr("postroom.room.engine.spark_session", session)
    with postroom.open(sqlite_url) as room, postroom.open(sqlite_url) as other:
        loaded(room, tmp_path)
        engine = threading.Thread(target=room.run)
        engine.start()
        try:
            for number in range(3):
                other.send("in", f"<m>{number}</m>", format="xml")
                received = other.receive("out", wait=60).message
                assert received is not None
                assert received.body == f"<r>{number}</r>"
                for each in worker_process._processes._idle:
                    if each._process is not None:
                        os.kill(each._process, signal.SIGKILL)
            began = monotonic()
        finally:
            room.stop()
            engine.join(60)
        assert not engine.is_alive()
        assert monotonic() - began < 30, "an engine that ends does not wait for Spark to start"
        started.set()


def test_a_choice_that_cannot_be_is_refused(room: Postroom, tmp_path: Path) -> None:
    loaded(room, tmp_path)
    with pytest.raises(ArgumentInvalid, match="'never' is not one of"):
        room.run_until_idle(spark="never")
    with pytest.raises(ArgumentInvalid, match="auto is for a local master"):
        room.run_until_idle(spark="auto", master="spark://host:7077")
