"""Spheres: an owner that was killed, an end that does not come, a compensation that waits for its queue."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from time import sleep

import pytest
from tests.spheres.owner import Owner

import postroom
from postroom import faults
from postroom.diagnosis.finding import Severity
from postroom.room import Postroom

from .conftest import HandClock, Told, fine


def test_a_killed_owner(room: Postroom, url: str, told: Told) -> None:
    room.queues.create("work")
    with Owner(url, "s", 0.5) as owner:
        assert owner.tell("work") == "done"
        assert fine(told(room, "owners"))
        owner.kill()
    (found,) = told(room, "owners")
    assert (found.level, found.where, found.do) == (Severity.WARNING, "sphere s", "postroom compensate --once")
    assert found.what.endswith("has ended; no engine runs that would undo it")
    room.store.transact("lease", lambda tx: tx.leases.acquire("engine", "elsewhere/1/1", 3_600))
    (soon,) = told(room, "owners")
    assert soon.level is Severity.NOTE
    assert soon.what.endswith("has ended; the engine that runs will undo it")
    room.spheres.compensate()
    assert fine(told(room, "owners"))


def test_an_owner_that_lives_and_is_not_heard_of(room: Postroom, url: str, told: Told) -> None:
    room.spheres.compensator(0.2).announce()
    with Owner(url, "s", 0.1) as owner:
        assert fine(told(room, "owners"))
        owner.signal(signal.SIGSTOP)
        sleep(1)
        (found,) = told(room, "owners")
    assert found.level is Severity.WARNING
    assert f"its owner (process {owner.process.pid}) is stopped, and has not been heard of" in found.what


def test_an_owner_in_a_long_call_is_told_from_one_that_is_gone(room: Postroom, url: str, told: Told) -> None:
    room.spheres.compensator(0.2).announce()
    script = """
import sys, time, postroom
room = postroom.open(sys.argv[1])
sphere = room.sphere("s", heartbeat=0.1)
print("begun", flush=True)
sys.stdin.readline()
print("calls", flush=True)
sum(range(10**11))  # one call of C, which lets no other thread run
"""
    command = [sys.executable, "-c", script, url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        try:
            assert owner.stdin is not None
            assert owner.stdout is not None
            assert owner.stdout.readline() == "begun\n"
            owner.stdin.write("go\n")
            owner.stdin.flush()
            assert owner.stdout.readline() == "calls\n"
            sleep(1)
            (found,) = told(room, "owners")
        finally:
            owner.kill()
    assert found.level is Severity.NOTE, "it may end by itself"
    assert f"(process {owner.pid}) runs on this machine, and has not been heard of: a call that keeps" in found.what
    assert "12 check intervals" in found.what
    assert "postroom compensate --check SECONDS" in found.do


def left_committing(room: Postroom, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner waits for a recipient, and dies when that is done."""
    monkeypatch.setenv("POSTROOM_FAULT", "sphere-committed.begun:kill")
    with Owner(url, "s", 0.5) as owner:
        owner.tell("work")
        message = room.receive("work").message
        assert message is not None
        with message.membership.join(0.5):
            waits = threading.Thread(target=owner.tell, args=("commit",))
            waits.start()
            while room.spheres.show("s").sphere.state == "ACTIVE":
                sleep(0.02)
        waits.join()
        assert owner.process.wait() == -signal.SIGKILL


def left_aborting(room: Postroom, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner is dead; a recipient has decided, and fails before anything is undone."""
    with Owner(url, "s", 0.5) as owner:
        owner.tell("work")
    message = room.receive("work").message
    assert message is not None
    monkeypatch.setattr(faults, "armed", faults.Armed("compensate.begun", "raise", 1))
    with pytest.raises(faults.FaultInjected):
        message.membership.abort("no seats")


@pytest.mark.parametrize(("state", "left"), [("COMMITTING", left_committing), ("ABORTING", left_aborting)])
def test_an_end_that_does_not_come(
    room: Postroom,
    url: str,
    clock: HandClock,
    told: Told,
    state: str,
    left: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room.queues.create("work")
    with monkeypatch.context() as patch:
        left(room, url, patch)
    assert room.spheres.show("s").sphere.state == state
    assert fine(told(room, "ends", "owners")), "it may still be under way"
    clock.now = room.store.session.clock() + 200_000_000
    with postroom.open(url, clock=clock) as later:
        (found,) = told(later, "ends", "owners")
    assert found.level is Severity.WARNING
    assert found.what.startswith(f"it is {state} since 2")
    assert found.do == "postroom sphere show s; then: postroom compensate --once"
    room.spheres.compensate()
    assert fine(told(room, "ends"))


def test_a_parked_compensation(room: Postroom, told: Told) -> None:
    room.queues.create("work", password="pw")
    sphere = room.sphere("s")
    sphere.send("work", "do", compensation="undo")
    room.receive("work")
    room.queues.disable("work", password="pw")
    sphere.abort("as planned")
    (found,) = told(room, "parked")
    assert (found.level, found.where) == (Severity.WARNING, "sphere s")
    assert found.what.startswith("a compensation is parked: work is on hold")
    assert found.do == "let work take messages again; then: postroom compensate --once"
    room.queues.enable("work", password="pw")
    room.spheres.compensate()
    assert fine(told(room, "parked"))
