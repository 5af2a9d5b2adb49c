"""Detached compensation: owners that have ended are found, those that live are left alone, whatever slows them down."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from time import sleep

import pytest
from tests.freezing import freeze

import postroom
from postroom.errors import CheckTooShort, HeartbeatTooSlow, SphereOver
from postroom.room import Postroom
from postroom.spheres.heartbeat import Heart
from postroom.spheres.sphere import Sphere
from postroom.store.tables.spheres import ALIVE_QUEUE

from .bank import paid, prepared
from .invariants import check
from .owner import Owner
from .wait import until

HEARTBEAT, CHECK = 0.1, 0.8


@pytest.fixture
def work(room: Postroom) -> Postroom:
    """A room with a queue, and with an engine that has said how often it checks."""
    room.queues.create("work")
    room.spheres.compensator(CHECK).announce()
    return room


def bodies(room: Postroom, queue: str = "work") -> list[str]:
    return [message.body for message in room.queues.info(queue)]


def state(room: Postroom, id: str) -> str:
    return room.spheres.show(id).sphere.state


def started(room: Postroom, id: str, heartbeat: float = HEARTBEAT) -> Sphere:
    sphere = room.sphere(id, heartbeat=heartbeat)
    sphere.send("work", f"do {id}", compensation=f"undo {id}")
    return sphere


def test_a_killed_owner_is_found_at_the_first_look(work: Postroom) -> None:
    with Owner(work.url, "s", HEARTBEAT) as owner:
        owner.tell("work")
        owner.tell("work")
        work.receive("work")
        assert work.spheres.compensate(CHECK).aborted == 0
        assert owner.tell("work") == "done", "it lives"
        owner.kill()
        checked = work.spheres.compensate(CHECK)
        assert (checked.aborted, checked.compensated) == (1, 1)
    assert bodies(work) == ["undo s"]
    shown = work.spheres.show("s").sphere
    assert (shown.state, shown.reason) == ("ABORTED", f"its owner (process {owner.process.pid}) has ended")
    assert check(work, over=True).withdrawn
    work.spheres.compensate(CHECK)
    assert work.queues.info(ALIVE_QUEUE).messages == [], "whoever is gone leaves no beat behind"


def test_a_thread_that_ends_without_an_end_is_found_though_its_process_lives(work: Postroom) -> None:
    kept: list[Sphere] = []  # a handle that is kept: nothing but the thread ends
    thread = threading.Thread(target=lambda: kept.append(started(work, "s")))
    thread.start()
    thread.join()
    mine = started(work, "mine")
    work.receive("work")
    checked = work.spheres.compensate(CHECK)
    assert (checked.aborted, checked.compensated) == (1, 1)
    assert (state(work, "s"), mine.state) == ("ABORTED", "ACTIVE")
    with pytest.raises(SphereOver):
        kept[0].commit()
    mine.commit()
    assert bodies(work) == ["do mine", "undo s"]
    check(work, over=True)


def test_a_stopped_owner_that_goes_on_is_too_late(work: Postroom, payments: str) -> None:
    with Owner(work.url, "s", HEARTBEAT, payments) as owner:
        owner.tell("work")
        work.receive("work")
        freeze(work, owner.process.pid)
        sleep(HEARTBEAT)
        try:
            assert work.spheres.compensate(CHECK).aborted == 1
        finally:
            owner.signal(signal.SIGCONT)
        assert owner.tell("work") == "sphere-over"
        assert owner.tell("commit") == "sphere-over"
    assert (paid(payments), prepared(payments)) == (set(), [])
    assert bodies(work) == ["undo s"]
    check(work, over=True)


def test_one_that_is_stopped_shorter_than_the_interval_lives(work: Postroom) -> None:
    with Owner(work.url, "s", HEARTBEAT) as owner:
        owner.tell("work")
        engine = work.spheres.compensator(1.0)
        engine.check()
        for _ in range(3):
            owner.signal(signal.SIGSTOP)
            sleep(0.5)
            owner.signal(signal.SIGCONT)
            sleep(0.55)
            assert engine.check().aborted == 0
        assert owner.tell("commit") == "done"
    check(work, over=True)


def test_late_beats_within_the_interval_keep_an_owner_alive(work: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a store that takes its time would make them: twelve times later than they should be."""
    monkeypatch.setattr(Heart, "pause", property(lambda heart: 0.6))
    sphere = started(work, "s")
    engine = work.spheres.compensator(1.0)
    for _ in range(5):
        assert engine.check().aborted == 0
        sleep(0.5)
    sphere.commit()
    check(work, over=True)


def test_beats_that_do_not_come_from_another_machine_are_missed(
    work: Postroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Heart, "pause", property(lambda heart: 60.0))
    monkeypatch.setattr("postroom.spheres.compensation.is_alive", lambda owner: None)
    sphere = started(work, "s")
    assert work.spheres.compensate(CHECK).aborted == 1
    assert "may live, and has not beaten for" in str(work.spheres.show("s").sphere.reason)
    with pytest.raises(SphereOver):
        sphere.send("work", "too late")
    check(work, over=True)


HOG = """
import sqlite3, sys, time
hog = sqlite3.connect(sys.argv[1], isolation_level=None)
for _ in range(2):
    hog.execute("BEGIN IMMEDIATE")
    time.sleep(float(sys.argv[2]))
    hog.execute("ROLLBACK")
    time.sleep(0.3)
"""


@pytest.mark.parametrize("held", [0.9, 1.0, 1.1, 1.3, 2.2])
def test_a_busy_store_aborts_no_living_owner(sqlite_url: str, held: float) -> None:
    """Another process writes for longer than the check interval: nobody can beat meanwhile."""
    with postroom.open(sqlite_url) as room, postroom.open(sqlite_url) as other:
        room.queues.create("work")
        spheres = [started(room, f"s{number}") for number in range(3)]
        engine = other.spheres.compensator(1.0)
        engine.announce()
        thread = threading.Thread(target=engine.run)
        thread.start()
        # In this process a second SQLite would take the first one's locks away, and with them the memory they share.
        subprocess.run([sys.executable, "-c", HOG, sqlite_url, str(held)], check=True)
        engine.stop()
        thread.join()
        for sphere in spheres:
            sphere.commit()
        assert set(check(room, over=True).spheres.values()) == {"COMMITTED"}


def test_two_engines_at_once_compensate_once(url: str) -> None:
    with postroom.open(url) as room, postroom.open(url) as other:
        room.queues.create("work")
        room.spheres.compensator(CHECK).announce()
        many = 12
        with Owner(url, "s0", HEARTBEAT) as first, Owner(url, "s1", HEARTBEAT) as second:
            for owner in (first, second):
                for _ in range(many):
                    assert owner.tell("work") == "done"
        while room.receive("work"):
            pass
        found = []
        threads = [
            threading.Thread(target=lambda at=at: found.append(at.spheres.compensate(CHECK))) for at in (room, other)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(each.aborted for each in found) == 2
        assert sum(each.compensated for each in found) == 2
        assert sorted(bodies(room)) == ["undo s0"] * many + ["undo s1"] * many
        check(room, over=True)


def test_a_heartbeat_that_is_not_faster_than_the_check_is_refused(work: Postroom) -> None:
    for slow in (CHECK, CHECK + 1):
        with pytest.raises(HeartbeatTooSlow):
            work.sphere("s", heartbeat=slow)
    sphere = started(work, "s", CHECK - 0.1)
    message = work.receive("work").message
    assert message is not None
    assert message.sphere is not None
    with pytest.raises(HeartbeatTooSlow):
        message.sphere.join(heartbeat=CHECK)
    assert work.spheres.show("s").parts == ()
    sphere.commit()


def test_a_check_that_is_not_slower_than_every_heartbeat_is_refused(room: Postroom) -> None:
    room.queues.create("work")
    sphere = started(room, "s", 0.5)
    for short in (0.5, 0.2):
        with pytest.raises(CheckTooShort):
            room.spheres.compensate(short)
    assert room.spheres.compensate(0.6).aborted == 0
    sphere.commit()
    assert room.spheres.compensate(0.2).aborted == 0


def test_the_heartbeat_of_a_recipient_and_of_a_commit_count_as_well(room: Postroom) -> None:
    room.queues.create("work")
    sphere = started(room, "s", 0.1)
    message = room.receive("work").message
    assert message is not None
    part = message.membership.join(0.5)
    with pytest.raises(CheckTooShort):
        room.spheres.compensate(0.3)
    part.done()
    slow = started(room, "slow", 0.5)
    slow.require("work", processing_within=30)
    committing = threading.Thread(target=slow.commit)
    committing.start()
    until(lambda: slow.state == "COMMITTING")
    with pytest.raises(CheckTooShort):
        room.spheres.compensate(0.3)
    message = room.receive("work").message
    assert message is not None
    message.acknowledge(processed=True)
    committing.join()
    sphere.commit()
    check(room, over=True)
