"""Every refusal of spheres: the right error for each bad argument and each wrong moment, and nothing is changed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from postroom import errors
from postroom.errors import (
    ArgumentInvalid,
    CheckTooShort,
    EntityExists,
    EntityUnknown,
    HeartbeatTooSlow,
    KeyInvalid,
    NotInSphere,
    ParticipantInDoubt,
    PostroomError,
    PropertyInvalid,
    QueueOwned,
    QueueUnknown,
    SphereAborted,
    SphereError,
    SphereExists,
    SphereOver,
    SphereUnknown,
    StateTaken,
    TransitionRefused,
)
from postroom.model.message import Message
from postroom.room import Postroom
from postroom.spheres.sphere import Sphere

from .invariants import check

NAN = float("nan")


@pytest.fixture
def work(room: Postroom) -> Postroom:
    room.queues.create("work")
    return room


@pytest.fixture
def sphere(work: Postroom) -> Sphere:
    return work.sphere("s")


def received(room: Postroom) -> Message:
    message = room.receive("work").message
    assert message is not None
    return message


def refused(room: Postroom, kind: type[PostroomError], call: Callable[..., Any], *given: Any, **more: Any) -> None:
    """The call raises, and no state of any sphere, send or queue is another than before."""

    def picture() -> object:
        events = [event for event in room.journal.last(1_000) if event.verb != "beat"]
        return events, [room.spheres.show(each.id) for each in room.spheres.all()]

    before = picture()
    with pytest.raises(PostroomError) as raised:
        call(*given, **more)
    assert type(raised.value) is kind, f"{given} {more}: {raised.value!r}"
    assert raised.value.happened == "no"
    assert picture() == before, f"{given} {more}"


def test_arguments_of_a_start(work: Postroom) -> None:
    for id in ("", " a", "a\n", "x" * 201, 5, b"a", ["a"], "a\0"):
        refused(work, ArgumentInvalid, work.sphere, id)
    for seconds in (0, -1, NAN, "2", 1e12, 0.01):
        refused(work, ArgumentInvalid, work.sphere, heartbeat=seconds)
    for seconds in (-1, NAN, "2", 1e12):
        refused(work, ArgumentInvalid, work.sphere, commit_within=seconds)
    assert work.spheres.all() == []
    refused(work, HeartbeatTooSlow, work.sphere, heartbeat=5.0)
    work.sphere("s").commit()
    refused(work, SphereExists, work.sphere, "s")


def test_arguments_of_a_send(work: Postroom, sphere: Sphere) -> None:
    no_queues: list[Any] = [5, (), [], [5], ("work", 5), b"work", ""]
    for queue in no_queues:
        refused(work, ArgumentInvalid, sphere.send, queue, "x")
        refused(work, ArgumentInvalid, sphere.send, "work", "x", compensation="y", on_commit=queue)
    for queue in ("nowhere", ("work", "nowhere")):
        refused(work, QueueUnknown, sphere.send, queue, "x")
        refused(work, QueueUnknown, sphere.send, queue, "x", when="commit")
        refused(work, QueueUnknown, sphere.send, "work", "x", compensation="y", on_commit=queue)
    for when in ("never", "", None, 5, "NOW"):
        refused(work, ArgumentInvalid, sphere.send, "work", "x", when=when)
    for when in ("commit", "abort"):
        refused(work, ArgumentInvalid, sphere.send, "work", "x", when=when, compensation="y")
    refused(work, ArgumentInvalid, sphere.send, "work", "x", on_commit="work")
    for name in ("sphere", "recipient", "compensates"):
        refused(work, PropertyInvalid, _send_undo, sphere, {name: "x"})
    refused(work, PropertyInvalid, sphere.send, "work", "x", properties={"sphere": "another"})
    sphere.send("work", "x", compensation="y")
    for owned in ("ACTIVE", "COMMITTED", "COMP.Q", "ALIVE.Q"):
        refused(work, QueueOwned, sphere.send, owned, "x")
    sphere.commit()


def _send_undo(sphere: Sphere, properties: dict[str, str]) -> None:
    from postroom.spheres.sending import Compensation

    sphere.send("work", "x", compensation=Compensation("y", properties={**properties}))


def test_arguments_of_a_requirement(work: Postroom, sphere: Sphere) -> None:
    refused(work, ArgumentInvalid, sphere.require, receipt_within=1)
    refused(work, ArgumentInvalid, sphere.require, "work")
    refused(work, ArgumentInvalid, sphere.require, "work", receipt_within=1, processing_within=1)
    for seconds in (0, -1, NAN, "1", 1e10):
        refused(work, ArgumentInvalid, sphere.require, "work", receipt_within=seconds)
    for enough in (0, 2, -1, 1.5, "1"):
        refused(work, ArgumentInvalid, sphere.require, "work", receipt_within=1, at_least=enough)
    for queue in (5, None, ()):
        refused(work, ArgumentInvalid, sphere.require, queue, receipt_within=1)
    refused(work, QueueUnknown, sphere.require, "nowhere", receipt_within=1)
    sphere.commit()


def test_arguments_of_an_end(work: Postroom, sphere: Sphere) -> None:
    for reason in (5, None, "x" * 1_001, "\0", b"no"):
        refused(work, ArgumentInvalid, sphere.abort, reason)
        refused(work, ArgumentInvalid, work.spheres.abort, "s", reason)
    for id in (5, None, "", "x" * 201, "a\0"):
        refused(work, ArgumentInvalid, work.spheres.abort, id)
        refused(work, ArgumentInvalid, work.spheres.show, id)
    refused(work, SphereUnknown, work.spheres.abort, "nobody")
    refused(work, SphereUnknown, work.spheres.show, "nobody")
    for state in ("active", "", 5, ["ACTIVE"]):
        refused(work, ArgumentInvalid, work.spheres.all, state)
    sphere.commit()


def test_arguments_of_recipients(work: Postroom, sphere: Sphere) -> None:
    for key in ("", "x", "00001"):
        refused(work, KeyInvalid, work.acknowledge, key)
    for wrong in (5, None):
        refused(work, ArgumentInvalid, work.acknowledge, wrong)
    assert work.acknowledge("00099.00001") is False
    sphere.send("work", "x", compensation="y")
    message = received(work)
    for reason in (5, None, "x" * 1_001, "\0"):
        refused(work, ArgumentInvalid, message.membership.abort, reason)
    for heartbeat in (0, -1, NAN, "1", None, 1e12):
        refused(work, ArgumentInvalid, message.membership.join, heartbeat)
    refused(work, HeartbeatTooSlow, message.membership.join, 5.0)
    part = message.membership.join()
    refused(work, ArgumentInvalid, message.membership.join)
    refused(work, ArgumentInvalid, part.send, 5, "x")
    refused(work, QueueUnknown, part.send, "nowhere", "x")
    part.done()
    sphere.commit()
    check(work, over=True)


def test_arguments_of_an_engine(work: Postroom, sphere: Sphere) -> None:
    for seconds in (0, -1, NAN, "1", 0.05, 3_601):
        refused(work, ArgumentInvalid, work.spheres.compensator, seconds)
        refused(work, ArgumentInvalid, work.spheres.compensate, seconds)
    refused(work, CheckTooShort, work.spheres.compensate, 1.0)
    refused(work, CheckTooShort, work.spheres.compensate, 2.0)
    sphere.commit()


def test_a_message_of_no_sphere_has_nothing_to_say(work: Postroom) -> None:
    work.send("work", "x")
    message = received(work)
    assert message.sphere is None
    refused(work, NotInSphere, message.acknowledge)
    refused(work, NotInSphere, partial(message.acknowledge, processed=True))


@pytest.mark.parametrize("commits", [True, False])
def test_nothing_can_be_added_to_a_sphere_that_is_over(work: Postroom, commits: bool) -> None:
    sphere = work.sphere("s")
    sphere.send("work", "x", compensation="y")
    message = received(work)
    sphere.commit() if commits else sphere.abort()
    refused(work, SphereOver, sphere.send, "work", "x")
    refused(work, SphereOver, sphere.require, "work", receipt_within=1)
    refused(work, SphereOver, sphere.enlist, object())
    refused(work, SphereOver, sphere.commit)
    refused(work, SphereOver, message.membership.join)
    refused(work, SphereOver, work.spheres.abort, "s")
    if commits:
        refused(work, SphereOver, sphere.abort)
    else:
        sphere.abort("again")  # it is, and stays so
    message.membership.abort("too late")  # its end is decided, and a vote is no more than a vote
    assert sphere.state == ("COMMITTED" if commits else "ABORTED")
    check(work, over=True)


def test_a_condition_that_fails_says_who_was_late(work: Postroom, sphere: Sphere) -> None:
    sphere.send("work", "x", compensation="y")
    sphere.require("work", receipt_within=0.05)
    with pytest.raises(SphereAborted, match=r"work had not acknowledged within 0\.05 s"):
        sphere.commit()
    assert sphere.state == "ABORTED"


def test_a_queue_with_the_name_of_a_state_is_not_taken_over(room: Postroom) -> None:
    room.store.transact("queue", lambda tx: tx.queues.create("COMMITTED", "basic", path="COMMITTED"))
    refused(room, StateTaken, room.sphere, "s")
    assert [count.queue for count in room.queues.accept().queues] == ["COMMITTED"]


def test_every_error_of_this_branch_is_raised_here_or_beside() -> None:
    beside = {EntityExists, EntityUnknown, TransitionRefused, ParticipantInDoubt}  # of machines, of participants
    here = {
        CheckTooShort,
        HeartbeatTooSlow,
        NotInSphere,
        SphereAborted,
        SphereExists,
        SphereOver,
        SphereUnknown,
        StateTaken,
    }
    assert {kind for kind in errors.every_error() if issubclass(kind, SphereError)} == here | beside
