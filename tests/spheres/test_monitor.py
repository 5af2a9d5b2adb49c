"""The spheres of a room from outside: listed, shown, acknowledged, ended."""

from __future__ import annotations

import pytest

from postroom.errors import ArgumentInvalid, SphereExists, SphereOver, SphereUnknown
from postroom.room import Postroom


@pytest.fixture
def work(room: Postroom) -> Postroom:
    room.queues.create("work")
    return room


def test_spheres_are_listed_by_state_and_shown_with_their_sends(work: Postroom) -> None:
    with work.sphere("done") as sphere:
        sphere.send("work", "a", compensation="b")
    sphere = work.sphere("open")
    sent = sphere.send("work", "c", compensation="d")
    sphere.require("work", receipt_within=30)
    assert [(each.id, each.state, each.sends) for each in work.spheres.all()] == [
        ("open", "ACTIVE", 1),
        ("done", "COMMITTED", 1),
    ]
    assert [each.id for each in work.spheres.all("COMMITTED")] == ["done"]
    shown = work.spheres.show("open").as_dict()
    assert (shown["id"], shown["state"], shown["requires"]) == ("open", "ACTIVE", ["1 of work: received within 30 s"])
    (send,) = shown["sends"]
    assert (send["key"], send["compensation"], send["outcome"]) == (sent.key, sent.remembered, "open")
    assert work.acknowledge(sent.key or "")
    (send,) = work.spheres.show("open").sends
    assert send.received is not None
    assert send.processed is None
    sphere.commit()


def test_a_sphere_is_ended_from_outside_once(work: Postroom) -> None:
    sphere = work.sphere("s")
    sphere.send("work", "a", compensation="b")
    assert work.spheres.abort("s", "enough") == "ABORTED"
    assert (sphere.state, work.spheres.show("s").sphere.reason) == ("ABORTED", "enough")
    with pytest.raises(SphereOver):
        work.spheres.abort("s")


def test_what_is_not_there_or_there_already_is_refused(work: Postroom) -> None:
    work.sphere("s")
    with pytest.raises(SphereExists, match="ACTIVE"):
        work.sphere("s")
    with pytest.raises(SphereUnknown):
        work.spheres.show("t")
    with pytest.raises(ArgumentInvalid, match="none of"):
        work.spheres.all("LOST")
    assert not work.acknowledge(work.send("work", "x").key), "no sphere waits for it"
