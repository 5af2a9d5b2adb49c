"""Running a room: retention times, the outbox, and a run that finds nothing to do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import postroom
from postroom.errors import ArgumentInvalid, OutboxUnknown, SparkUnavailable
from postroom.room import Postroom
from postroom.store.upkeep.kinds import Kind


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Postroom]:
    with postroom.open(tmp_path / "room.db", actor="ann") as room:
        yield room


def test_a_run_without_work_ends_and_starts_no_spark(small: Postroom) -> None:
    assert small.run_until_idle() == 0
    totals = small.engine.run_totals(until_idle=True)
    assert (totals.steps, totals.messages, totals.effects) == (0, 0, 0)


@pytest.mark.parametrize("until_idle", [True, False])
def test_an_engine_that_stays_has_a_spark_for_hours(
    small: Postroom, until_idle: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark is not started here: what it would be asked for is told."""
    asked: list[dict[str, bool]] = []

    def start(master: str, conf: object, **how: bool) -> None:
        asked.append(how)
        raise SparkUnavailable(master=master, why="it is not wanted here", advice="none")

    monkeypatch.setattr("postroom.room.engine.spark_session", start)
    program = tmp_path / "p.demaq"
    program.write_text(
        "create queue in kind basic mode persistent create rule r for in if (//b) then do enqueue <a/> into in"
    )
    small.load(program)
    small.send("in", "<b/>", format="xml")
    with pytest.raises(SparkUnavailable):
        small.engine.run(until_idle=until_idle, spark="always")
    assert asked == [{"other": False, "lasting": not until_idle}]


def test_every_kind_is_kept_for_ever_unless_an_operator_says_otherwise(small: Postroom) -> None:
    assert set(small.engine.retentions()) == set(Kind)
    kind = next(iter(Kind))
    small.engine.set_retention(kind, timedelta(days=3))
    assert small.engine.retentions()[kind] == timedelta(days=3)
    small.engine.set_retention(kind, None)
    assert small.engine.retentions()[kind] is None


@pytest.mark.parametrize("age", [timedelta(microseconds=-1), timedelta(days=36_501)])
def test_a_retention_time_is_within_bounds_and_of_a_known_kind(small: Postroom, age: timedelta) -> None:
    with pytest.raises(ArgumentInvalid, match="from 0 to 36500 days"):
        small.engine.set_retention(next(iter(Kind)), age)
    with pytest.raises(ArgumentInvalid, match="one of"):
        small.engine.set_retention("dust", timedelta(days=1))


def test_an_effect_waits_in_the_outbox_until_it_is_dropped(small: Postroom, tmp_path: Path) -> None:
    (tmp_path / "t.qdl").write_text('01 INPUT-QUEUE (A) COMMAND LINE IS "true"\n99\n')
    small.load(tmp_path / "t.qdl")
    small.send("A", "x")
    (effect,) = small.engine.outbox()
    (tmp_path / "t.qdl").write_text('01 INPUT-QUEUE (A) COMMAND LINE IS "false"\n99\n')
    small.load(tmp_path / "t.qdl")
    small.engine.retry(effect.id)
    (again,) = small.engine.outbox()
    assert "false" in str(again.payload["command"]), "a retry takes the command line of now"
    small.engine.drop_effect(effect.id)
    assert small.engine.outbox() == []


@pytest.mark.parametrize("number", [0, -1, 1, 2**63])
def test_a_number_that_is_no_effect_is_refused(small: Postroom, number: int) -> None:
    for verb in (small.engine.retry, small.engine.drop_effect):
        with pytest.raises(OutboxUnknown):
            verb(number)


def test_a_sweep_removes_what_it_said(small: Postroom) -> None:
    small.queues.create("q")
    would = small.engine.sweepable()
    assert would["messages"] == 0
    did = small.engine.sweep_by_kind()
    assert {kind: did[kind] for kind in would} == would
    assert small.engine.sweep() == 0


INTERRUPTED = """
import builtins, signal, sys, postroom
room = postroom.open(sys.argv[1])
signal.signal(signal.SIGTERM, lambda *_: room.engine.stop())
real = builtins.__import__
def importing(name, *rest, **named):
    if name == "postroom.flows.clients":  # in the midst of the module that asks for it
        builtins.__import__ = real
        signal.raise_signal(signal.SIGTERM)
    return real(name, *rest, **named)
builtins.__import__ = importing
room.engine.run()
print("stopped", builtins.__import__ is real)
"""


def test_a_signal_stops_an_engine_that_is_being_made(url: str) -> None:
    postroom.open(url).close()
    out = subprocess.run([sys.executable, "-c", INTERRUPTED, url], capture_output=True, text=True, timeout=120)
    assert (out.stdout, out.returncode) == ("stopped True\n", 0), out.stderr
