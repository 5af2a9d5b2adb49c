"""How a sphere ends when something is in its way: strange reasons, a store that is not there, handles that are lost."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest

from postroom import faults
from postroom.errors import SphereAborted, SphereOver, StoreBusy
from postroom.room import Postroom
from postroom.spheres import outcome
from postroom.store.kernel.transaction import Transaction

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


def commits(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The labels of what is committed from now on."""
    labels, transact = list[str](), room.store.transact

    def noted(label: str, work: Callable[[Transaction], object], *rest: object) -> object:
        done = transact(label, work, *rest)
        labels.append(label)
        return done

    monkeypatch.setattr(room.store, "transact", noted)
    return labels


def test_an_end_that_waits_for_nobody_is_one_commit(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    room.queues.create("work")
    labels = commits(room, monkeypatch)
    for number, state in enumerate(("COMMITTED", "ABORTED")):
        sphere = room.sphere(f"s{number}")
        sphere.send("work", "do", compensation="undo")
        labels.clear()
        if state == "COMMITTED":
            sphere.commit()
        else:
            sphere.abort("as planned")
        assert labels == ["sphere-committing" if state == "COMMITTED" else "sphere-aborting"]
        assert sphere.state == state
    assert [message.body for message in room.queues.info("work")] == ["do"]
    check(room)


def test_an_end_with_a_database_is_decided_before_it_takes_effect(
    room: Postroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = commits(room, monkeypatch)
    for number, ending in enumerate((["sphere-committing", "sphere-committed"], ["sphere-aborting", "compensate"])):
        sphere = room.sphere(f"s{number}")
        noted = sphere.enlist(Noted())
        labels.clear()
        if number:
            sphere.abort("as planned")
        else:
            sphere.commit()
        assert labels == ending
        assert noted.calls == (["rollback"] if number else ["prepare", "commit"])
    check(room)


def test_an_abort_that_is_refused_by_a_busy_queue_is_decided_nevertheless(
    room: Postroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.queues.create("work")
    sphere = room.sphere("s")
    sphere.send("work", "do", compensation="undo")
    tries = iter([True])

    def busy(*given: object) -> bool:
        if next(tries, False):
            raise StoreBusy(seconds=1, why="another process writes")
        return compensated(*given)  # type: ignore[arg-type, return-value]  # what it is called with

    compensated = outcome._compensated
    monkeypatch.setattr(outcome, "_compensated", busy)
    sphere.abort("as planned")
    assert sphere.state == "ABORTED"
    assert [message.body for message in room.queues.info("work")] == []
    check(room)
