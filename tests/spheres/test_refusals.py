"""What spheres and machines of states refuse, each by its own error."""

from __future__ import annotations

import pytest

from postroom.errors import (
    ArgumentInvalid,
    CheckTooShort,
    EntityExists,
    EntityUnknown,
    HeartbeatTooSlow,
    NotInSphere,
    ParticipantInDoubt,
    QueueHeld,
    SphereAborted,
    SphereExists,
    SphereOver,
    SphereUnknown,
    StateTaken,
    TransitionRefused,
)
from postroom.room import Postroom


class Database:
    """One who takes part, and fails where it is told to."""

    def __init__(self, fails: str) -> None:
        self.fails = fails
        self.said: list[str] = []

    def _say(self, word: str) -> None:
        self.said.append(word)
        if word == self.fails:
            raise RuntimeError(f"{word} failed")

    def prepare(self) -> None:
        self._say("prepare")

    def commit(self) -> None:
        self._say("commit")

    def rollback(self) -> None:
        self._say("rollback")


def test_an_id_is_used_once(room: Postroom) -> None:
    room.sphere("one").commit()
    with pytest.raises(SphereExists, match=r"sphere one already exists \(COMMITTED\)"):
        room.sphere("one")


def test_what_is_over_takes_nothing_more(room: Postroom) -> None:
    room.queues.create("q")
    sphere = room.sphere("one")
    room.spheres.abort("one", "because")
    for act in (
        lambda: sphere.send("q", "late"),
        lambda: sphere.require("q", receipt_within=1),
        lambda: sphere.enlist(Database("")),
        sphere.commit,
    ):
        with pytest.raises(SphereOver, match=r"sphere one is ABORTED \(because\)"):
            act()
    with pytest.raises(SphereUnknown):
        room.spheres.abort("two")
    with pytest.raises(SphereUnknown):
        room.spheres.show("two")


def test_heartbeat_and_check_must_fit(room: Postroom) -> None:
    with pytest.raises(HeartbeatTooSlow):
        room.sphere(heartbeat=5.0)
    sphere = room.sphere(heartbeat=1.0)
    with pytest.raises(CheckTooShort):
        room.spheres.compensate(check=1.0)
    sphere.commit()
    room.spheres.compensator(0.5).announce()
    with pytest.raises(HeartbeatTooSlow):
        room.sphere(heartbeat=0.5)


def test_who_is_not_prepared_aborts_and_who_does_not_confirm_is_in_doubt(room: Postroom) -> None:
    first, second = Database(""), Database("prepare")
    sphere = room.sphere("one")
    sphere.enlist(first)
    sphere.enlist(second)
    with pytest.raises(SphereAborted, match="prepare failed"):
        sphere.commit()
    assert sphere.state == "ABORTED"
    assert first.said == ["prepare", "rollback"]
    doubtful = Database("commit")
    sphere = room.sphere("two")
    sphere.enlist(doubtful)
    with pytest.raises(ParticipantInDoubt, match="commit failed") as told:
        sphere.commit()
    assert told.value.happened == "yes"
    assert sphere.state == "COMMITTED"
    with pytest.raises(ArgumentInvalid, match="takes no part in two phases"):
        room.sphere("three").enlist(object())


def test_only_what_a_sphere_sent_has_a_voice_in_it(room: Postroom) -> None:
    room.queues.create("q")
    room.send("q", "plain")
    message = room.receive("q").message
    assert message is not None
    assert message.sphere is None
    with pytest.raises(NotInSphere):
        message.acknowledge()
    with pytest.raises(NotInSphere):
        message.acknowledge(processed=True)


def test_a_machine_knows_its_entities_and_its_transitions(room: Postroom) -> None:
    orders = room.spheres.machine(["NEW", "PAID"], [("NEW", "PAID")])
    orders.start("17")
    with pytest.raises(EntityExists):
        orders.start("17")
    with pytest.raises(EntityUnknown):
        orders.state("18")
    with pytest.raises(EntityUnknown):
        orders.move("18", "PAID")
    orders.move("17", "PAID")
    with pytest.raises(TransitionRefused):
        orders.move("17", "NEW")
    room.queues.create("TAKEN")
    with pytest.raises(StateTaken):
        room.spheres.machine(["TAKEN"], [])
    room.store.transact("queue", lambda tx: tx.queues.create("COMP.Q", "basic", path="COMP.Q"))
    with pytest.raises(StateTaken):
        room.sphere("one").send("TAKEN", "do", compensation="undo")


def test_an_operator_who_holds_the_active_spheres_wants_no_new_ones(room: Postroom) -> None:
    room.sphere("one").commit()
    room.queues.set_password("ACTIVE", password="pw")
    room.queues.disable("ACTIVE", password="pw")
    with pytest.raises(QueueHeld):
        room.sphere("two")
    room.queues.enable("ACTIVE", password="pw")
    room.sphere("two").commit()


def test_nothing_is_undone_while_an_operator_holds_what_fails(room: Postroom) -> None:
    room.queues.create("billing")
    sphere = room.sphere("one")
    sphere.send("billing", "charge", compensation="refund")
    for queue in ("ABORTING", "COMP.Q"):
        room.queues.set_password(queue, password="pw")
        room.queues.disable(queue, password="pw")
    sphere.abort("no")
    assert room.spheres.compensate().parked == 1
    room.queues.enable("ABORTING", password="pw")
    assert room.spheres.compensate().parked == 1, "the other queue is still on hold"
    assert [message.body for message in room.queues.info("billing")] == ["charge"]
    room.queues.enable("COMP.Q", password="pw")
    assert room.spheres.compensate().compensated == 1
    assert [message.body for message in room.queues.info("billing")] == []
    assert room.spheres.show("one").sphere.state == "ABORTED"


@pytest.mark.parametrize("heartbeat", [5.0, 60.0, 0.0, -1.0])
def test_who_takes_part_must_beat_faster_than_the_check(room: Postroom, heartbeat: float) -> None:
    room.queues.create("q")
    with room.sphere("one") as sphere:
        sphere.send("q", "do", compensation="undo")
        message = room.receive("q").message
        assert message is not None
        assert message.sphere is not None
        with pytest.raises((ArgumentInvalid, HeartbeatTooSlow)):
            message.sphere.join(heartbeat=heartbeat)
