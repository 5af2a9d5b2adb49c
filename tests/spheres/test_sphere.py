"""How a sphere ends when something is in its way: strange reasons, a store that is not there, handles that are lost."""

from __future__ import annotations

import gc

import pytest

from postroom import faults
from postroom.errors import SphereAborted, SphereOver
from postroom.room import Postroom

from .invariants import check
from .wait import until

STRANGE = ["x" * 5_000, "a\0b", "a\ud800b", "", "  ", "näh\n"]


class Planned(Exception):
    pass


def test_whatever_an_exception_says_its_sphere_is_aborted(room: Postroom) -> None:
    for number, said in enumerate(STRANGE):
        with pytest.raises(Planned) as raised, room.sphere(f"s{number}"):
            raise Planned(said)
        assert not getattr(raised.value, "__notes__", None)
        shown = room.spheres.show(f"s{number}").sphere
        assert shown.state == "ABORTED"
        assert shown.reason is not None
        assert shown.reason.startswith("Planned")


class Noted:
    def __init__(self, refusal: str | None = None) -> None:
        self.calls: list[str] = []
        self.refusal = refusal

    def prepare(self) -> None:
        self.calls.append("prepare")
        if self.refusal is not None:
            raise Planned(self.refusal)

    def commit(self) -> None:
        self.calls.append("commit")

    def rollback(self) -> None:
        self.calls.append("rollback")


def test_whatever_a_participant_says_its_sphere_is_aborted(room: Postroom) -> None:
    for number, said in enumerate(STRANGE):
        with pytest.raises(SphereAborted), room.sphere(f"s{number}") as sphere:
            sphere.enlist(Noted(said))
        assert sphere.state == "ABORTED"


def test_whatever_a_recipient_raises_its_sphere_is_aborted(room: Postroom) -> None:
    room.queues.create("work")
    for number, said in enumerate(STRANGE):
        sphere = room.sphere(f"s{number}")
        sphere.send("work", "do", compensation="undo")
        message = room.receive("work").message
        assert message is not None
        assert message.sphere is not None
        with pytest.raises(Planned), message.sphere.join():
            raise Planned(said)
        assert sphere.state == "ABORTED"
        with pytest.raises(SphereOver):
            sphere.commit()
        undo = room.receive("work").message
        assert undo is not None
        assert undo.body == "undo"


def test_one_that_could_not_be_aborted_at_once_is_aborted_later_and_never_committed(room: Postroom) -> None:
    room.queues.create("work")
    sphere, noted = room.sphere("s", heartbeat=0.1), Noted()
    sphere.enlist(noted)
    sphere.send("work", "do", compensation="undo")
    faults.arm("sphere-aborting.begun", "raise")
    with pytest.raises(faults.FaultInjected):
        sphere.abort("as planned")
    with pytest.raises((SphereAborted, SphereOver)):
        sphere.commit()
    assert noted.calls == ["rollback"]
    until(lambda: sphere.state == "ABORTING")
    room.spheres.compensate(0.5)
    assert sphere.state == "ABORTED"
    check(room, over=True)


def test_one_whose_commit_and_abort_failed_is_aborted_though_its_owner_lives(room: Postroom) -> None:
    sphere = room.sphere("s", heartbeat=0.1)
    faults.arm("sphere-committing.begun", "raise")
    noted = Noted()
    sphere.enlist(noted)
    with pytest.raises(faults.FaultInjected):
        sphere.commit()
    assert noted.calls == ["rollback"]
    assert sphere.state == "ABORTED"


def test_a_handle_that_is_lost_is_aborted(room: Postroom) -> None:
    room.queues.create("work")
    kept = room.sphere("kept", heartbeat=0.1)
    sphere = room.sphere("lost", heartbeat=0.1)
    sphere.send("work", "do", compensation="undo")
    sphere.send("work", "sorry", when="abort")
    room.receive("work")
    del sphere
    gc.collect()
    until(lambda: room.spheres.show("lost").sphere.state == "ABORTING")
    room.spheres.compensate(0.5)
    assert [message.body for message in room.queues.info("work")] == ["sorry", "undo"]
    assert kept.state == "ACTIVE"
    kept.commit()
    check(room, over=True)


def test_a_handle_is_lost_while_its_heart_is_looked_at(room: Postroom) -> None:
    """The garbage collector runs where it likes, also where the lock of the hearts is held."""
    sphere = room.sphere("lost", heartbeat=0.1)
    with room._parts.monitor._hearts._lock:
        del sphere
        gc.collect()
    until(lambda: room.spheres.show("lost").sphere.state == "ABORTING")
    until(lambda: not room._parts.monitor._hearts.mine().intervals)
    room.spheres.compensate(0.5)
    check(room, over=True)


def test_a_lost_handle_is_aborted_though_the_first_try_fails(room: Postroom) -> None:
    sphere = room.sphere("lost", heartbeat=0.1)
    faults.arm("sphere-aborting.begun", "raise")
    with pytest.raises(faults.FaultInjected):
        sphere.abort()
    faults.arm("sphere-aborting.committing", "delay")
    del sphere
    until(lambda: room.spheres.show("lost").sphere.state == "ABORTING")
    room.spheres.compensate(0.5)
    check(room, over=True)
