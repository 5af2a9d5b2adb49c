"""A picture of a room: what it shows, and how fast things move between two of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.diagnosis.conftest import HandClock
from tests.rules.conftest import without_spark
from tests.stations.procedures.office import office

import postroom
from postroom.room import Postroom, overview

PROGRAM = """\
create queue orders kind basic mode persistent
create queue out kind basic mode persistent
create rule pass for orders if (/order) then do enqueue <seen/> into out
else do enqueue <x>{error()}</x> into out
"""


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def busy(url: str, clock: HandClock, tmp_path: Path) -> Postroom:
    (tmp_path / "p.demaq").write_text(PROGRAM)
    room = without_spark(postroom.open(url, clock=clock))
    room.load(tmp_path / "p.demaq")
    return room


def named(picture: overview.Overview, name: str) -> overview.QueueSeen:
    return next(queue for queue in picture.queues if queue.name == name)


def test_queues_lags_steps_errors_and_rates(busy: Postroom, clock: HandClock) -> None:
    with busy as room:
        for body in ("<order/>", "<order/>", "<bill/>"):
            room.send("orders", body, format="xml")
        first = room.operations.overview()
        assert (first.lags, first.rate, list(first.steps)) == (
            {"rules": 3, "flows": 0, "counters": 0, "procedures": 0},
            None,
            [],
        )
        assert named(first, "orders").rate_in is None
        clock.pass_by(1)
        room.run_until_idle(step_messages=2)
        clock.pass_by(1)
        room.receive("out")
        second = room.operations.overview(first)
        assert second.lags["rules"] == 0
        assert second.errors["postroom-errors"] == 1
        orders, out = named(second, "orders"), named(second, "out")
        assert (orders.waiting, orders.rate_in, orders.rate_out) == (0, 0.0, 1.5)
        assert (out.waiting, out.processed, out.rate_in, out.rate_out) == (1, 1, 1.0, 0.5)
        assert sum(step.messages for step in second.steps) == 3
        assert sum(step.created for step in second.steps) == 3
        assert second.rate == 1.5
        clock.pass_by(1)
        third = room.operations.overview(second)
        assert (third.rate, third.steps) == (0.0, second.steps), "a step is told once"
        assert room.operations.overview().steps == second.steps


def test_what_is_leased_delayed_and_blocked_is_seen(busy: Postroom, clock: HandClock) -> None:
    with busy as room:
        room.queues.create("jobs")
        room.consumers.set_policy("jobs", by="k")
        for key in (1, 1, 2):
            room.send("jobs", "x", properties={"k": key})
        room.send("jobs", "later", properties={"k": 3}, delay=60)
        assert len(room.receive_many("jobs", count=3, lease=90)) == 2
        jobs = named(room.operations.overview(), "jobs")
        assert (jobs.waiting, jobs.leased, jobs.delayed, jobs.blocked) == (0, 2, 1, 1)
        document = jobs.as_dict()
        assert [document[name] for name in ("leased_count", "delayed_count", "blocked_count")] == [2, 1, 1]
        assert "leased_count" not in named(room.operations.overview(), "orders").as_dict()
        clock.pass_by(61)
        assert named(room.operations.overview(), "jobs").blocked == 1


def test_only_the_last_steps_are_kept_and_one_that_is_cut_says_so(
    busy: Postroom, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with busy as room:
        picture = room.operations.overview()
        for _ in range(7):
            clock.pass_by(1)
            room.send("orders", "<order/>", format="xml")
            room.run_until_idle()
            picture = room.operations.overview(picture)
        assert [step.messages for step in picture.steps] == [1] * 5
        clock.pass_by(1)
        for _ in range(10):
            room.send("orders", "<order/>", format="xml")
        room.run_until_idle()
        monkeypatch.setattr(overview, "TOP_JOURNAL_ROWS", 8)  # lease, ten times take and put, release
        (cut,) = room.operations.overview().steps
        assert (cut.whole, cut.messages < 10) == (False, True)


def test_the_engine_spheres_outbox_and_holds(url: str, tmp_path: Path) -> None:
    (tmp_path / "t.qdl").write_text('01 INPUT-QUEUE (M) PASSWORD IS "PW" COMMAND LINE IS "true"\n99\n')
    with postroom.open(url) as room:
        room.load(tmp_path / "t.qdl")
        assert room.operations.overview().spheres == {}
        room.send("M", "x")
        room.queues.disable("M", password="PW", input_only=True)
        room.store.transact("lease", lambda tx: tx.leases.acquire("engine", "elsewhere/7/1", 60))
        with room.sphere("s"):
            picture = room.operations.overview()
        assert picture.spheres == {"ACTIVE": 1, "COMMITTING": 0, "ABORTING": 0, "COMMITTED": 0, "ABORTED": 0}
        assert room.operations.overview().spheres["COMMITTED"] == 1
        assert picture.outbox == {"pending": 1, "failed": 0}
        assert (picture.engine.state, picture.engine.owner) == ("runs", "process 7 on elsewhere")
        assert named(picture, "INP_0000").hold == "input only"
        assert not {"ACTIVE", "ALIVE.Q"} & {queue.name for queue in picture.queues}
        shape = picture.as_dict()
        assert shape["engine"] == {"state": "runs", "owner": "process 7 on elsewhere", "number": 1}
        assert shape["senders"] == {"state": "free", "owner": "", "number": 0}
        assert shape["queues"][0]["arrived"] == 1
        room.store.transact("lease", lambda tx: tx.leases.acquire("senders", "elsewhere/8/1", 60))
        assert room.operations.overview().senders.owner == "process 8 on elsewhere"


def test_steps_of_procedures_are_seen(url: str, tmp_path: Path) -> None:
    moving = "procedure p at ann\n  precondition a : ORDER\n  destination d on a copy 0 ship bob\n"
    with office(url, tmp_path, moving) as room:
        room.stations._station("ann").create("ORDER", No=1)
        assert room.operations.overview().lags["procedures"] == 1
        room.run_until_idle()
        picture = room.operations.overview()
        assert picture.lags["procedures"] == 0
        assert [(step.messages, step.whole) for step in picture.steps] == [(1, True)]
        assert named(picture, "mailbox:bob").waiting == 1
