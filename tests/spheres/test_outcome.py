"""A compensation whose queue takes nothing waits, is seen, is tried again, and arrives in its order."""

from __future__ import annotations

import pytest

from postroom.errors import QueueHeld, SphereAborted
from postroom.room import Postroom
from postroom.spheres.sending import Compensation

from .invariants import check

CHECK = 5.0


def bodies(room: Postroom, queue: str) -> list[str]:
    return [message.body for message in room.queues.info(queue)]


def outcomes(room: Postroom, id: str) -> list[tuple[str, bool]]:
    return [(send.outcome, send.why is not None) for send in room.spheres.show(id).sends]


@pytest.mark.parametrize("input_only", [True, False])
def test_a_queue_on_hold(room: Postroom, input_only: bool) -> None:
    for queue in ("held", "open"):
        room.queues.create(queue, password="pw")
    sphere = room.sphere("s")
    for number in range(3):
        sphere.send("held", f"do {number}", compensation=f"undo {number}")
        sphere.send("open", f"do {number}", compensation=f"undo {number}")
    for _ in range(3):
        room.receive("held")
        room.receive("open")
    room.queues.disable("held", password="pw", input_only=input_only)
    sphere.abort("as planned")
    assert sphere.state == "ABORTING"
    assert bodies(room, "open") == ["undo 2", "undo 1", "undo 0"]
    assert outcomes(room, "s") == [("parked", True), ("compensated", False)] * 3
    assert bodies(room, "COMP.Q") == ["undo 0", "undo 1", "undo 2"], "it can be seen where it waits"
    for _ in range(2):
        checked = room.spheres.compensate(CHECK)
        assert (checked.parked, checked.compensated) == (1, 0)
    assert check(room).waiting == 3
    room.queues.enable("held", password="pw")
    assert room.spheres.compensate(CHECK).compensated == 1
    assert bodies(room, "held") == ["undo 2", "undo 1", "undo 0"]
    assert bodies(room, "open") == ["undo 2", "undo 1", "undo 0"]
    assert outcomes(room, "s") == [("compensated", False)] * 6
    check(room, over=True)


def test_a_removed_queue(room: Postroom) -> None:
    for queue in ("work", "undone"):
        room.queues.create(queue)
    sphere = room.sphere("s")
    for number in range(2):
        sphere.send("work", f"do {number}", compensation=Compensation(f"undo {number}", queue="undone"))
        room.receive("work")
    room.queues.remove("undone")
    sphere.abort("as planned")
    assert sphere.state == "ABORTING"
    assert [send.outcome for send in room.spheres.show("s").sends] == ["parked"] * 2
    assert room.spheres.compensate(CHECK).parked == 1
    room.queues.create("undone")
    assert room.spheres.compensate(CHECK).compensated == 1
    assert bodies(room, "undone") == ["undo 1", "undo 0"]
    check(room, over=True)


def test_the_queue_of_a_primary_is_removed_and_made_again(room: Postroom) -> None:
    room.queues.create("work")
    sphere = room.sphere("s")
    sphere.send("work", "do", compensation="undo")
    room.receive("work")
    room.queues.remove("work")
    sphere.abort("as planned")
    assert sphere.state == "ABORTING"
    room.queues.create("work")
    assert room.spheres.compensate(CHECK).compensated == 1
    assert bodies(room, "work") == ["undo"]
    check(room, over=True)


def test_nothing_is_sent_now_to_a_queue_on_hold_but_it_may_be_remembered(room: Postroom) -> None:
    room.queues.create("held", password="pw")
    room.queues.disable("held", password="pw")
    sphere = room.sphere("s")
    with pytest.raises(QueueHeld):
        sphere.send("held", "now", compensation="undo")
    assert room.spheres.show("s").sends == (), "neither of the two is stored"
    sphere.send("held", "later", when="commit")
    room.queues.enable("held", password="pw")
    sphere.commit()
    assert bodies(room, "held") == ["later"]
    check(room, over=True)


def test_a_commit_waits_for_a_queue_on_hold_and_fails_when_its_time_is_up(room: Postroom) -> None:
    for queue in ("held", "work"):
        room.queues.create(queue, password="pw")
    sphere = room.sphere("s", commit_within=0.5)
    sphere.send("work", "do", compensation="undo")
    sphere.send("held", "later", when="commit")
    room.receive("work")
    room.queues.disable("held", password="pw")
    with pytest.raises(SphereAborted, match="exceeded"):
        sphere.commit()
    assert sphere.state == "ABORTED"
    assert bodies(room, "work") == ["undo"]
    room.queues.enable("held", password="pw")
    assert bodies(room, "held") == []
    check(room, over=True)


def test_an_operator_who_holds_the_compensations_keeps_the_engine_from_them(room: Postroom) -> None:
    room.queues.create("work", password="pw")
    sphere = room.sphere("s")
    sphere.send("work", "do", compensation="undo")
    room.receive("work")
    room.queues.disable("work", password="pw")
    sphere.abort("as planned")
    room.queues.set_password("COMP.Q", password="pw")
    room.queues.disable("COMP.Q", password="pw")
    room.queues.enable("work", password="pw")
    assert room.spheres.compensate(CHECK).compensated == 0
    room.queues.enable("COMP.Q", password="pw")
    assert room.spheres.compensate(CHECK).compensated == 1
    assert bodies(room, "work") == ["undo"]
    check(room, over=True)


def test_an_operator_who_holds_the_active_ones_wants_no_new_ones(room: Postroom) -> None:
    sphere = room.sphere("s")
    room.queues.set_password("ACTIVE", password="pw")
    room.queues.disable("ACTIVE", password="pw")
    with pytest.raises(QueueHeld):
        room.sphere("t")
    assert [each.id for each in room.spheres.all()] == ["s"]
    sphere.commit()
    room.queues.enable("ACTIVE", password="pw")
    room.sphere("t").commit()
    check(room, over=True)
