"""What a sphere has received is there again if it fails, whenever that is; and is gone if it succeeds."""

from __future__ import annotations

import signal
from pathlib import Path
from time import sleep

import pytest
from tests.faults import forked, sphere_workload

from postroom.errors import ArgumentInvalid, MessageCorrupt, QueueHeld, QueueUnknown, SphereOver
from postroom.room import Postroom

from .invariants import check


class Planned(Exception):
    pass


def waiting(room: Postroom, queue: str = "work") -> list[str]:
    return [message.body for message in room.queues.info(queue)]


@pytest.fixture
def work(room: Postroom) -> Postroom:
    room.queues.create("work", password="w")
    for body in ("one", "two"):
        room.send("work", body, properties={"colour": "red"})
    return room


def test_a_commit_keeps_what_was_taken(work: Postroom) -> None:
    with work.sphere("s") as sphere:
        first = sphere.receive("work")
        assert first is not None
        assert (first.body, waiting(work)) == ("one", ["two"])
    assert waiting(work) == ["two"]
    assert [message.key for message in work.queues.history("work")] == [first.key]
    assert [send.outcome for send in work.spheres.show("s").sends] == ["taken"]
    assert work.journal.verify().differences == ()
    check(work)


def test_an_abort_brings_it_back_to_its_place(work: Postroom) -> None:
    with pytest.raises(Planned), work.sphere("s") as sphere:
        taken = sphere.receive("work")
        raise Planned
    assert taken is not None
    assert waiting(work) == ["one", "two"]
    again = work.queues.info("work").messages[0]
    assert (again.key, again.properties["colour"], again.cause) == (taken.key, "red", taken.cause)
    check(work)


def test_none_and_a_wait_and_no_message_of_a_sphere_that_is_over(work: Postroom) -> None:
    work.queues.create("empty")
    with work.sphere("s") as sphere:
        assert sphere.receive("empty") is None
        assert sphere.receive("empty", wait=0.05) is None
        with pytest.raises(QueueUnknown):
            sphere.receive("nowhere")
        with pytest.raises(ArgumentInvalid):
            sphere.receive()
        work.queues.disable("work", password="w")
        with pytest.raises(QueueHeld):
            sphere.receive("work")
        work.queues.enable("work", password="w")
    with pytest.raises(SphereOver):
        sphere.receive("work")
    assert waiting(work) == ["one", "two"], "who comes late takes nothing"
    check(work)


def test_a_damaged_message_is_set_aside_and_not_remembered(work: Postroom) -> None:
    work.store.transact("send", lambda tx: tx.session.run("UPDATE messages SET body = 'x' WHERE body = 'one'"))
    with work.sphere("s") as sphere:
        with pytest.raises(MessageCorrupt):
            sphere.receive("work")
        assert work.spheres.show("s").sends == ()
        found = sphere.receive("work")
        assert found is not None
        assert found.body == "two"


def test_a_message_of_another_sphere_is_acknowledged_there_and_comes_back_as_its_own(work: Postroom) -> None:
    work.queues.create("deeds")
    outer = work.sphere("outer")
    outer.send("deeds", "do it", compensation="undo it")
    outer.require("deeds", processing_within=60)
    with pytest.raises(Planned), work.sphere("inner") as inner:
        found = inner.receive("deeds")
        assert found is not None
        assert found.sphere is not None
        assert found.sphere.id == "outer"
        raise Planned
    (again,) = work.queues.info("deeds")
    assert again.properties["sphere"] == "outer"
    outer.abort()
    assert work.queues.info("deeds").messages == [], "nobody has had it"
    check(work)


@pytest.mark.parametrize("moment", ["begun", "committing", "committed"])
def test_a_program_that_is_killed_while_it_receives_loses_and_doubles_nothing(
    work: Postroom, url: str, tmp_path: Path, moment: str
) -> None:
    folder = tmp_path / "child"
    folder.mkdir()
    child = forked.run(sphere_workload.receive, url, folder, folder=folder, fault=f"receive.{moment}:kill:1")
    assert child.code == -signal.SIGKILL, child.complaints
    while work.spheres.all("ACTIVE"):
        work.spheres.compensate(check=0.3)
        sleep(0.1)
    assert waiting(work) == ["one", "two"]
    assert work.journal.verify().differences == ()
    check(work)
