"""The run loop: command lines fire once per transition, effects are tried again after a crash, one engine per room."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, cast

import pytest

import postroom
from postroom import faults
from postroom.engine.dispatch import Gateway, Outcome
from postroom.engine.runner import Totals
from postroom.errors import LeaseHeld, LeaseLost, OutboxUnknown
from postroom.limits import OUTBOX_ATTEMPTS_MAX
from postroom.room import Postroom
from postroom.store.kernel.outbox import Effect
from postroom.store.kernel.transaction import Transaction

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
    assert sorted(lines(marks)[1:]) == ["hello -arg INP_0000", "hello -arg INP_0001"], "in either order"


def test_what_the_command_printed_is_in_the_journal(room: Postroom, tmp_path: Path) -> None:
    file = tmp_path / "t.qdl"
    file.write_text('01 INPUT-QUEUE (M) COMMAND LINE IS "echo it\'s done"\n99\n'.replace("it's", "all"))
    room.load(file)
    room.send("M", "x")
    room.run_until_idle()
    (done,) = [event for event in room.journal.last(50) if event.verb == "done"]
    assert done.detail is not None
    assert done.detail["output"] == "all done -arg INP_0000\n"
    assert done.detail["argv"] == ["echo", "all", "done", "-arg", "INP_0000"]
    assert room.engine.outbox() == []


def test_a_failing_command_is_tried_again_then_kept_and_can_be_revived(
    room: Postroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.engine.dispatch.OUTBOX_BACKOFF_SECONDS", 0.01)
    file = tmp_path / "t.qdl"
    file.write_text('01 INPUT-QUEUE (M) COMMAND LINE IS "false"\n99\n')
    room.load(file)
    room.send("M", "x")
    reports: list[bool] = []

    def report(effect: Effect, outcome: Outcome, again: bool) -> None:
        reports.append(again)

    assert room.run_until_idle(report) == OUTBOX_ATTEMPTS_MAX
    assert reports == [True] * (OUTBOX_ATTEMPTS_MAX - 1) + [False]
    (kept,) = room.engine.outbox()
    assert (kept.state, kept.attempts, kept.note) == ("failed", OUTBOX_ATTEMPTS_MAX, "exit 1")
    assert room.run_until_idle() == 0
    room.engine.retry(kept.id)
    assert room.run_until_idle() == OUTBOX_ATTEMPTS_MAX
    with pytest.raises(OutboxUnknown):
        room.engine.retry(999)


def test_an_engine_that_died_after_the_act_leaves_a_row_that_is_tried_again(triggered: Postroom, marks: Path) -> None:
    triggered.send("INP_0000", "x")
    faults.arm("gateway.ran", "raise")
    with pytest.raises(faults.FaultInjected):
        triggered.run_until_idle()
    faults.disarm()
    (left,) = triggered.engine.outbox()
    assert (left.state, left.attempts) == ("pending", 1)
    assert triggered.run_until_idle() == 1
    assert lines(marks) == ["hello -arg INP_0000"] * 2  # at least once, with the same effect number
    assert triggered.engine.outbox() == []


def test_two_engines_on_one_room_are_impossible(triggered: Postroom, url: str) -> None:
    thread = threading.Thread(target=triggered.run)
    thread.start()
    try:
        with postroom.open(url) as other:
            deadline = monotonic() + 10
            while monotonic() < deadline and "lease" not in [event.verb for event in other.journal.last(3)]:
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
        triggered._parts.runner.run(spark=lambda: cast("SparkSession", None), beside=beginning())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()


def test_two_threads_of_one_room_are_two_engines(triggered: Postroom) -> None:
    thread = threading.Thread(target=triggered.run)
    thread.start()
    wait_until(lambda: any(event.verb == "lease" for event in triggered.journal.last(5)))
    with pytest.raises(LeaseHeld, match="another thread"):
        triggered.run_until_idle()
    triggered.stop()
    thread.join(20)
    triggered.send("INP_0000", "x")
    assert triggered.run_until_idle() == 1  # a stop is for the run that was


def test_an_idle_engine_that_lost_its_lease_says_so(
    triggered: Postroom, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.engine.beating.ENGINE_LEASE_SECONDS", 0.5)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            triggered.run()
        except LeaseLost as lost:
            errors.append(lost)

    thread = threading.Thread(target=run)
    thread.start()
    wait_until(lambda: any(event.verb == "lease" for event in triggered.journal.last(5)))
    with postroom.open(url, clock=lambda: 10**18) as other:
        other.store.transact("lease", lambda tx: tx.leases.acquire("engine", "elsewhere/1/1", 10))
    thread.join(20)
    assert len(errors) == 1


def test_an_engine_that_lost_the_effects_cannot_record_a_result_and_goes_on(triggered: Postroom, url: str) -> None:
    triggered.send("INP_0000", "x")
    acts: list[tuple[int, int]] = []

    class Thief(Gateway):
        kind = "command"

        def act(self, effect: Effect) -> Outcome:
            """While we act for the first time, another process takes over for a moment, as after a long pause."""
            acts.append((effect.id, effect.attempts))
            if len(acts) == 1:
                with postroom.open(url) as other:
                    other.store.transact(
                        "lease", lambda tx: tx.leases.take("effects", "elsewhere/1/1", tx.now + 700_000)
                    )
            return Outcome(True, {"outcome": f"done {len(acts)}"})

    triggered._parts.runner._gateways = (Thief(),)
    assert triggered.run_until_idle() == 1
    assert acts == [(1, 0), (1, 1)], "the row of the first attempt, tried again"
    done = [event.detail for event in triggered.journal.last(50) if event.verb == "done"]
    assert [each["outcome"] for each in done if each is not None] == ["done 2"]
    assert triggered.engine.outbox() == []


def test_an_effect_that_nobody_can_do_is_kept(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom.engine.dispatch.OUTBOX_BACKOFF_SECONDS", 0.01)
    room.store.transact("send", lambda tx: tx.outbox.add("pigeon", {"to": "Rome"}, "Rome"))
    room.run_until_idle()
    (kept,) = room.engine.outbox()
    assert kept.state == "failed"
    assert "no gateway" in (kept.note or "")


def test_attempts_that_ended_without_a_result_are_bounded(room: Postroom) -> None:
    payload = {"command": "true", "queue": "q", "path": "q"}
    room.store.transact("send", lambda tx: tx.outbox.add("command", payload, "q"))
    for _ in range(OUTBOX_ATTEMPTS_MAX):
        room.store.transact("outbox-attempt", lambda tx: tx.outbox.attempt(tx.outbox.all()[0]))
    room.run_until_idle()
    (kept,) = room.engine.outbox()
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
        wait_until(lambda: any(event.verb == "lease" for event in triggered.journal.last(5)))
        triggered.send("INP_0000", "x")
        wait_until(lambda: lines(marks) == ["hello -arg INP_0000"])
        wait_until(lambda: triggered.engine.outbox() == [])
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


@pytest.fixture
def slow_and_quick(room: Postroom, tmp_path: Path, marks: Path) -> Postroom:
    """Queues whose commands note when they begin and end; that of SLOW takes a second."""
    script = tmp_path / "work.py"
    script.write_text(
        "import sys, time\n"
        "def note(what):\n"
        f"    open({str(marks)!r}, 'a').write(f'{{what}} {{sys.argv[3]}}\\n')\n"
        "note('begin'); time.sleep(float(sys.argv[1])); note('end')\n"
    )
    file = tmp_path / "t.qdl"
    file.write_text(
        f'01 INPUT-QUEUE (SLOW) COMMAND LINE IS "{sys.executable} {script} 1"\n'
        f'01 INPUT-QUEUE (QUICK) COMMAND LINE IS "{sys.executable} {script} 0"\n99\n'
    )
    room.load(file)
    return room


def test_a_slow_command_delays_no_other(slow_and_quick: Postroom, marks: Path) -> None:
    slow_and_quick.send("SLOW", "x")
    slow_and_quick.send("QUICK", "x")
    assert slow_and_quick.run_until_idle() == 2
    assert lines(marks)[-1] == "end INP_0000"
    assert set(lines(marks)[:3]) == {"begin INP_0000", "begin INP_0001", "end INP_0001"}


def test_a_slow_command_delays_no_step(room: Postroom, tmp_path: Path, marks: Path) -> None:
    """The steps of an engine go on while a command takes its time. A counter's steps need no Spark."""
    program = tmp_path / "t.qdl"
    wait = f"import pathlib, time\nend = time.monotonic() + 30\nmark = pathlib.Path({str(marks)!r})\n"
    wait += "while not mark.exists() and time.monotonic() < end: time.sleep(0.02)\nassert mark.exists()\n"
    (tmp_path / "wait.py").write_text(wait)
    program.write_text(
        f'01 INPUT-QUEUE (SLOW) COMMAND LINE IS "{sys.executable} {tmp_path / "wait.py"}"\n01 INPUT-QUEUE (IN)\n99\n'
    )
    room.load(program)
    forms = tmp_path / "t.form"
    forms.write_text(
        "type MEMO\n| To: ____________ |\nfield To string required\n\ncounter desk at Desk takes MEMO from INP_0001\n"
    )
    room.stations.add("Desk", "secret")
    room.load(forms)
    room.send("SLOW", "x")
    room.send("IN", "To: Jane", type="MEMO")

    def told(totals: Totals) -> None:
        marks.touch()  # the step is committed: now the command may end

    assert room.run_until_idle(progress=told) == 2  # a message and an effect
    assert room.engine.outbox() == []


def test_effects_of_one_destination_keep_their_order(
    slow_and_quick: Postroom, marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if an earlier one is tried again after a pause, and whatever others do meanwhile."""
    monkeypatch.setattr("postroom.engine.dispatch.OUTBOX_BACKOFF_SECONDS", 0.3)
    tried: list[tuple[str, int]] = []

    class Gate(Gateway):
        kind = "command"

        def act(self, effect: Effect) -> Outcome:
            tried.append((effect.payload["queue"], effect.payload["turn"]))
            return Outcome(effect.payload["turn"] != 1 or effect.attempts > 0, {"outcome": "as told"})

    slow_and_quick._parts.runner._gateways = (Gate(),)
    for turn in (1, 2, 3):
        for queue in ("a", "b"):
            payload = {"command": "true", "queue": queue, "path": queue, "turn": turn}
            slow_and_quick.store.transact("send", partial(_add, payload=payload))
    assert slow_and_quick.run_until_idle() == 8
    for queue in ("a", "b"):
        assert [turn for name, turn in tried if name == queue] == [1, 1, 2, 3]


def _add(tx: Transaction, payload: Mapping[str, object]) -> int:
    return tx.outbox.add("command", payload, str(payload["queue"]))


def test_a_timeout_of_the_description_bounds_its_command(room: Postroom, tmp_path: Path) -> None:
    file = tmp_path / "t.qdl"
    (tmp_path / "sleep.py").write_text("import time; time.sleep(30)")
    command = f"{sys.executable} {tmp_path / 'sleep.py'}"
    file.write_text(f'01 INPUT-QUEUE (SLOW) COMMAND LINE IS "{command}" TIMEOUT IS 1 SECONDS\n99\n')
    room.load(file)
    room.send("SLOW", "x")
    outcomes: list[Outcome] = []

    def told(effect: Effect, outcome: Outcome, again: bool) -> None:
        outcomes.append(outcome)
        room.stop()

    begun = monotonic()
    room.run(report=told)
    assert outcomes[0].result["outcome"] == "killed after its time limit of 1 s"
    assert monotonic() - begun < 20
    assert "TIMEOUT IS 1 SECONDS" in room.definitions.hierarchy()
    assert room.journal.verify().differences == ()
    file.write_text('01 INPUT-QUEUE (SLOW) COMMAND LINE IS "true" TIMEOUT IS 200 SECONDS\n99\n')
    room.load(file)
    room.engine.retry(room.engine.outbox()[0].id)
    assert room.engine.outbox()[0].payload["seconds"] == 200


def test_an_engine_without_effects_has_no_thread_for_them(
    triggered: Postroom, marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To start and to end one would take longer than most runs."""
    begun: list[str] = []
    start = threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        begun.append(thread.name)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", noted)
    triggered.send("QUIET", "nobody runs")
    triggered.run_until_idle()
    assert "postroom-lease" in begun
    assert "postroom-effects" not in begun
    triggered.send("INP_0000", "first")
    assert triggered.run_until_idle() == 1
    assert "postroom-effects" in begun
