"""The engine: killed, silent, running; what waits for it; effects that failed or that nobody does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest
from tests.rules.conftest import without_spark

from postroom.diagnosis.finding import Severity
from postroom.engine import dispatch
from postroom.model.moment import to_datetime, to_iso
from postroom.room import Postroom
from postroom.store.kernel.owner import process_token

from .conftest import HandClock, Told, fine

PROGRAM = Path(sys.executable).with_name("postroom")
RULE = """\
create queue orders kind basic mode persistent
create queue out kind basic mode persistent
create rule pass for orders if (true()) then do enqueue <seen/> into out
"""
ECHO = """\
create queue reminders kind echo mode persistent
create queue due kind basic mode persistent
"""


def load(room: Postroom, folder: Path, text: str, name: str = "p.demaq") -> None:
    (folder / name).write_text(text)
    room.load(folder / name)


@pytest.fixture
def engine(url: str, room: Postroom) -> Iterator[subprocess.Popen[bytes]]:
    """An engine in a process of its own."""
    process = subprocess.Popen([PROGRAM, "run", "--room", url], stderr=subprocess.DEVNULL)
    try:
        end = monotonic() + 30
        while not [event for event in room.journal.last(5) if event.verb == "lease"]:
            assert monotonic() < end
            sleep(0.05)
        yield process
    finally:
        process.kill()
        process.wait()


def test_an_engine_that_runs_ends_or_is_killed(
    room: Postroom, engine: subprocess.Popen[bytes], url: str, told: Told
) -> None:
    (runs,) = told(room, "engine")
    assert (runs.level, runs.what) == (Severity.OK, f"process {engine.pid} runs it, under number 1")
    engine.kill()
    engine.wait()
    (killed,) = told(room, "engine")
    assert (killed.level, killed.do) == (Severity.WARNING, "postroom run")
    assert killed.what == f"the engine (process {engine.pid}) has ended without releasing its lease"
    assert room.run_until_idle() == 0
    (ended,) = told(room, "engine")
    assert (ended.level, ended.what) == (Severity.OK, "no engine runs, and none has left its lease behind")


def test_a_lease_that_was_given_back_is_no_ones(room: Postroom) -> None:
    fence = room.store.transact("lease", lambda tx: tx.leases.acquire("engine", "elsewhere/1/1", 10))
    assert [lease.released for lease in room.store.read(lambda tx: tx.leases.all())] == [False]
    room.store.transact("release-lease", lambda tx: tx.leases.release("engine", fence))
    assert [lease.released for lease in room.store.read(lambda tx: tx.leases.all())] == [True]
    assert room.store.transact("lease", lambda tx: tx.leases.acquire("engine", "elsewhere/2/2", 10)) == fence + 1


@pytest.mark.parametrize("owner", ["elsewhere/17/1", process_token()])
def test_an_engine_that_has_gone_silent(timed: Postroom, clock: HandClock, owner: str, told: Told) -> None:
    timed.store.transact("lease", lambda tx: tx.leases.acquire("engine", owner, 15))
    assert fine(told(timed, "engine"))
    clock.pass_by(16)
    (found,) = told(timed, "engine")
    assert found.level is Severity.WARNING
    assert "should have renewed its lease before 2027-01-15T08:00:15" in found.what


def test_senders_that_run_and_that_have_gone_silent(timed: Postroom, clock: HandClock, told: Told) -> None:
    timed.store.transact("lease", lambda tx: tx.leases.acquire("senders", "elsewhere/7/1", 15))
    (runs,) = told(timed, "engine")
    assert (runs.level, runs.what) == (Severity.OK, "process 7 on elsewhere sends, under number 1")
    clock.pass_by(16)
    (silent,) = told(timed, "engine")
    assert (silent.level, silent.where) == (Severity.WARNING, "lease senders")
    assert silent.what.startswith("the senders' process (process 7 on elsewhere) should have renewed its lease before ")
    assert silent.what.endswith("; nobody sends")
    timed.store.transact("lease", lambda tx: tx.leases.acquire("engine", "elsewhere/8/1", 15))
    silent, _ = told(timed, "engine")
    assert silent.what.endswith("; the engine sends")


def test_senders_that_were_killed(room: Postroom, told: Told) -> None:
    said = "from postroom.store.kernel.owner import process_token; print(process_token())"
    gone = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True).stdout.strip()
    room.store.transact("lease", lambda tx: tx.leases.acquire("senders", gone, 600))
    (ended,) = told(room, "engine")
    assert (ended.level, ended.do) == (Severity.WARNING, "postroom run --senders")
    assert ended.what.endswith("has ended without releasing its lease; nobody sends")


def test_messages_that_wait_with_no_engine(timed: Postroom, clock: HandClock, tmp_path: Path, told: Told) -> None:
    load(timed, tmp_path, RULE)
    assert fine(told(timed, "waiting"))
    timed.send("orders", "<order/>", format="xml")
    (found,) = told(timed, "waiting")
    assert (found.level, found.do) == (Severity.WARNING, "postroom run")
    assert found.what == "1 message(s) wait, and no engine runs: 1 for rules"
    assert timed.operations.lags() == {"rules": 1, "flows": 0, "counters": 0, "procedures": 0}
    timed.store.transact("lease", lambda tx: tx.leases.acquire("engine", "elsewhere/1/1", 3_600))
    (behind,) = told(timed, "waiting")
    assert (behind.level, behind.what) == (Severity.OK, "1 message(s) wait for the engine: 1 for rules")
    clock.pass_by(301)
    stuck, _ = told(timed, "waiting")
    assert (stuck.level, stuck.where) == (Severity.WARNING, "orders")
    assert stuck.what == "its next message has waited since 2027-01-15T08:00:00.000000Z, though the engine runs"


def test_a_schedule_that_nobody_looks_at_is_told(timed: Postroom, clock: HandClock, told: Told) -> None:
    timed.queues.create("q")
    due = timed.consumers.schedule("minutely", "* * * * *", "q", body="x").due
    clock.pass_by(60)
    assert fine(told(timed, "waiting"))
    clock.pass_by(61)
    (found,) = told(timed, "waiting")
    assert (found.level, found.where) == (Severity.WARNING, "schedule minutely")
    assert found.what == f"its message should have been sent at {to_iso(to_datetime(due))}"


def test_a_step_leaves_nothing_to_say(room: Postroom, tmp_path: Path, told: Told) -> None:
    load(without_spark(room), tmp_path, RULE)
    room.send("orders", "<order/>", format="xml")
    assert room.run_until_idle() == 1
    assert fine(told(room, "waiting"))


def test_a_time_that_has_come_with_no_engine(timed: Postroom, clock: HandClock, tmp_path: Path, told: Told) -> None:
    load(timed, tmp_path, ECHO)
    timed.send("reminders", "<r/>", format="xml", properties={"timeout": 5, "target": "due"})
    clock.pass_by(6)
    assert fine(told(timed, "waiting"))
    clock.pass_by(60)
    (found,) = told(timed, "waiting")
    assert found.what == "a message in an echo queue is due, and no engine runs"


def test_effects_that_fail_or_that_nobody_does(
    timed: Postroom, clock: HandClock, tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "OUTBOX_BACKOFF_SECONDS", 0.0)
    load(timed, tmp_path, '01 INPUT-QUEUE (M) COMMAND LINE IS "false"\n99\n', "t.qdl")
    timed.send("M", "x")
    assert fine(told(timed, "outbox"))
    clock.pass_by(61)
    (late,) = told(timed, "outbox")
    assert late.what == "effect 1 (false for INP_0000) is due since 2027-01-15T08:00:00.000000Z, and no engine runs"
    assert late.do == "postroom run"
    fence = timed.store.transact("lease", lambda tx: tx.leases.acquire("senders", "elsewhere/7/1", 60))
    assert told(timed, "outbox")[0].what.endswith(", though process 7 on elsewhere sends")
    timed.store.transact("release-lease", lambda tx: tx.leases.release("senders", fence))
    timed.run_until_idle()
    (failed,) = told(timed, "outbox")
    assert (failed.level, failed.do) == (Severity.WARNING, "postroom outbox retry 1, or: postroom outbox drop 1")
    assert failed.what.startswith("effect 1 (false for INP_0000) failed 3 time(s): ")
    timed.engine.drop_effect(1)
    assert fine(told(timed, "outbox"))
