"""The run loop: command lines fire once per transition, effects are tried again after a crash, one engine per room."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, cast

import pytest

import postroom
from postroom import faults
from postroom.engine.runner import Outcome
from postroom.errors import LeaseHeld, LeaseLost, OutboxUnknown
from postroom.limits import OUTBOX_ATTEMPTS_MAX
from postroom.room import Postroom
from postroom.store.outbox import Effect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """The file in which the command of a queue leaves a line for each run."""
    return tmp_path / "marks"


@pytest.fixture
def triggered(room: Postroom, tmp_path: Path, marks: Path) -> Postroom:
    """Two queues below a level with a command line, and one without."""
    script = tmp_path / "mark.py"
    script.write_text(f"import sys\nopen({str(marks)!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')\n")
    file = tmp_path / "t.qdl"
    file.write_text(
        f'01 INPUT-QUEUE (M) COMMAND LINE IS "{sys.executable} {script} hello"\n'
        "02 SUB-QUEUE-1 (A)\n02 SUB-QUEUE-1 (B)\n01 INPUT-QUEUE (QUIET)\n99\n"
    )
    room.load(file)
    return room


def lines(marks: Path) -> list[str]:
    return marks.read_text().splitlines() if marks.exists() else []


def test_a_queue_that_becomes_non_empty_runs_its_command_once(triggered: Postroom, marks: Path) -> None:
    triggered.send("INP_0000", "first")
    triggered.send("INP_0000", "second")
    triggered.send("QUIET", "nobody runs")
    assert lines(marks) == []  # an outbox row first, an act later
    assert triggered.run_until_idle() == 1
    assert lines(marks) == ["hello -arg INP_0000"]
    triggered.send("INP_0000", "third")
    assert triggered.run_until_idle() == 0
    while triggered.receive("INP_0000"):
        pass
    triggered.send_many("INP_0000", ["a", "b"])
    triggered.send(("M", "B"), "other queue, same command")
    assert triggered.run_until_idle() == 2
    assert lines(marks) == ["hello -arg INP_0000", "hello -arg INP_0000", "hello -arg INP_0001"]


def test_what_the_command_printed_is_in_the_journal(room: Postroom, tmp_path: Path) -> None:
    file = tmp_path / "t.qdl"
    file.write_text('01 INPUT-QUEUE (M) COMMAND LINE IS "echo it\'s done"\n99\n'.replace("it's", "all"))
    room.load(file)
    room.send("M", "x")
    room.run_until_idle()
    (done,) = [event for event in room.journal(50) if event.verb == "done"]
    assert done.detail is not None
    assert done.detail["output"] == "all done -arg INP_0000\n"
    assert done.detail["argv"] == ["echo", "all", "done", "-arg", "INP_0000"]
    assert room.outbox() == []


def test_a_failing_command_is_tried_again_then_kept_and_can_be_revived(
    room: Postroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.engine.runner.OUTBOX_BACKOFF_SECONDS", 0.01)
    file = tmp_path / "t.qdl"
    file.write_text('01 INPUT-QUEUE (M) COMMAND LINE IS "false"\n99\n')
    room.load(file)
    room.send("M", "x")
    reports: list[bool] = []

    def report(effect: Effect, outcome: Outcome, again: bool) -> None:
        reports.append(again)

    assert room.run_until_idle(report) == OUTBOX_ATTEMPTS_MAX
    assert reports == [True] * (OUTBOX_ATTEMPTS_MAX - 1) + [False]
    (kept,) = room.outbox()
    assert (kept.state, kept.attempts, kept.note) == ("failed", OUTBOX_ATTEMPTS_MAX, "exit 1")
    assert room.run_until_idle() == 0
    room.retry(kept.id)
    assert room.run_until_idle() == OUTBOX_ATTEMPTS_MAX
    with pytest.raises(OutboxUnknown):
        room.retry(999)


def test_an_engine_that_died_after_the_act_leaves_a_row_that_is_tried_again(triggered: Postroom, marks: Path) -> None:
    triggered.send("INP_0000", "x")
    faults.arm("gateway.ran", "raise")
    with pytest.raises(faults.FaultInjected):
        triggered.run_until_idle()
    faults.disarm()
    (left,) = triggered.outbox()
    assert (left.state, left.attempts) == ("pending", 1)
    assert triggered.run_until_idle() == 1
    assert lines(marks) == ["hello -arg INP_0000"] * 2  # at least once, with the same effect number
    assert triggered.outbox() == []


def test_two_engines_on_one_room_are_impossible(triggered: Postroom, url: str) -> None:
    thread = threading.Thread(target=triggered.run)
    thread.start()
    try:
        with postroom.open(url) as other:
            deadline = monotonic() + 10
            while monotonic() < deadline and "lease" not in [event.verb for event in other.journal(3)]:
                sleep(0.01)
            with pytest.raises(LeaseHeld):
                other.run_until_idle()
    finally:
        triggered.stop()
        thread.join(20)
    assert not thread.is_alive()


def test_a_stop_that_comes_before_the_first_step_stops(triggered: Postroom) -> None:
    @contextmanager
    def beginning() -> Iterator[None]:
        triggered.stop()  # as a signal may, while spheres are looked after
        yield

    def run() -> None:
        triggered._runner.run(spark=lambda: cast("SparkSession", None), beside=beginning())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()


def test_two_threads_of_one_room_are_two_engines(triggered: Postroom) -> None:
    thread = threading.Thread(target=triggered.run)
    thread.start()
    wait_until(lambda: any(event.verb == "lease" for event in triggered.journal(5)))
    with pytest.raises(LeaseHeld, match="another thread"):
        triggered.run_until_idle()
    triggered.stop()
    thread.join(20)
    triggered.send("INP_0000", "x")
    assert triggered.run_until_idle() == 1  # a stop is for the run that was


def test_an_idle_engine_that_lost_its_lease_says_so(
    triggered: Postroom, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.engine.runner.ENGINE_LEASE_SECONDS", 0.5)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            triggered.run()
        except LeaseLost as lost:
            errors.append(lost)

    thread = threading.Thread(target=run)
    thread.start()
    wait_until(lambda: any(event.verb == "lease" for event in triggered.journal(5)))
    with postroom.open(url, clock=lambda: 10**18) as other:
        other.store.transact("lease", lambda tx: tx.leases.acquire("engine", "elsewhere/1/1", 10))
    thread.join(20)
    assert len(errors) == 1


def test_an_engine_that_lost_its_lease_cannot_record_a_result(triggered: Postroom, url: str, marks: Path) -> None:
    triggered.send("INP_0000", "x")

    class Thief:
        kind = "command"

        def act(self, effect: Effect) -> Outcome:
            """While we act, another engine takes over, as after a long pause."""
            with postroom.open(url, clock=lambda: 10**18) as other:
                other.store.transact("lease", lambda tx: tx.leases.acquire("engine", "elsewhere/1/1", 10))
            return Outcome(True, {"outcome": "done too late"})

    triggered._runner._gateways["command"] = Thief()
    with pytest.raises(LeaseLost):
        triggered.run_until_idle()
    (left,) = triggered.outbox()
    assert left.state == "pending"


def test_an_effect_that_nobody_can_do_is_kept(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom.engine.runner.OUTBOX_BACKOFF_SECONDS", 0.01)
    room.store.transact("send", lambda tx: tx.outbox.add("pigeon", {"to": "Rome"}))
    room.run_until_idle()
    (kept,) = room.outbox()
    assert kept.state == "failed"
    assert "no gateway" in (kept.note or "")


def test_attempts_that_ended_without_a_result_are_bounded(room: Postroom) -> None:
    room.store.transact("send", lambda tx: tx.outbox.add("command", {"command": "true", "queue": "q", "path": "q"}))
    for _ in range(OUTBOX_ATTEMPTS_MAX):
        room.store.transact("outbox-attempt", lambda tx: tx.outbox.attempt(tx.outbox.all()[0]))
    room.run_until_idle()
    (kept,) = room.outbox()
    assert kept.state == "failed"
    assert "given up" in (kept.note or "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_running_engine_wakes_at_once_and_stops_on_a_signal(
    triggered: Postroom, url: str, marks: Path, number: signal.Signals
) -> None:
    engine = subprocess.Popen(
        [sys.executable, "-m", "postroom", "--room", url, "run"], stderr=subprocess.PIPE, env={**os.environ}
    )
    try:
        wait_until(lambda: any(event.verb == "lease" for event in triggered.journal(5)))
        triggered.send("INP_0000", "x")
        wait_until(lambda: lines(marks) == ["hello -arg INP_0000"])
        wait_until(lambda: triggered.outbox() == [])
        engine.send_signal(number)
        _, stderr = engine.communicate(timeout=20)
    finally:
        engine.kill()
        engine.wait()
    assert engine.returncode == 0
    assert b"mark.py hello -arg INP_0000: exit 0" in stderr
    assert b"1 effect(s) done" in stderr
    assert triggered.run_until_idle() == 0  # the lease was given back


def wait_until(condition: Callable[[], bool], seconds: float = 20) -> None:
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end, "it did not happen in time"
        sleep(0.02)
