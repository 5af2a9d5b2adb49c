"""States are watched by rules, arcs and recipients, who get messages; the tokens stay their machine's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.here import evaluate_here

import postroom
from postroom import faults
from postroom.errors import ArgumentInvalid, QueueUnknown
from postroom.room import Postroom
from postroom.spheres.watching import Watching

PROGRAM = """
create queue complaints kind basic mode persistent
create queue letters kind basic mode persistent
create rule complain for complaints
if (qs:message()?state = "ABORTED") then do enqueue <sorry>{qs:message()?entity}</sorry> into letters
"""
GRAPH = """domain d space Ended : [entity: string, state: string, before: string, reason: string]
space Bad : [entity: string, state: string, before: string, reason: string]
arc bad : Ended -> Bad select [reason: r = "too late"]"""


@pytest.fixture
def work(room: Postroom, tmp_path: Path) -> Postroom:
    (tmp_path / "p.demaq").write_text(PROGRAM)
    (tmp_path / "g.flow").write_text(GRAPH)
    room.load(tmp_path / "p.demaq", tmp_path / "g.flow")
    evaluate_here(room)
    room._parts.runner._stages += (Watching(),)
    with room.sphere("first"):
        pass
    return room


def ended(room: Postroom, id: str, reason: str) -> None:
    room.sphere(id).abort(reason)


def bodies(room: Postroom, queue: str) -> list[str]:
    return [message.body for message in room.queues.info(queue)]


def test_rules_and_arcs_hear_of_what_comes_into_a_state_once(work: Postroom) -> None:
    ended(work, "before", "nobody watched")
    work.spheres.watch_state("ABORTED", "complaints")
    work.spheres.watch_state("ABORTED", "Ended")
    work.spheres.watch_state("ACTIVE", "complaints")
    ended(work, "one", "too late")
    ended(work, "two", "too dear")
    work.run_until_idle()
    work.run_until_idle()
    assert bodies(work, "letters") == ["<sorry>one</sorry>", "<sorry>two</sorry>"]
    (bad,) = work.queues.info("Bad")
    assert bad.value == {"entity": "one", "state": "ABORTED", "before": "ABORTING", "reason": "too late"}
    assert len(work.queues.history("complaints").messages) == 4, "also those that have gone on"
    work.spheres.watch_state("ABORTED", "complaints", stop=True)
    ended(work, "three", "too loud")
    work.run_until_idle()
    assert len(bodies(work, "letters")) == 2
    assert work.journal.verify().differences == ()


def test_any_machine_can_be_watched(work: Postroom) -> None:
    orders = work.spheres.machine(["NEW", "PAID"], [("NEW", "PAID")])
    work.queues.create("told")
    work.spheres.watch_state("PAID", "told")
    orders.start("order-17")
    orders.move("order-17", "PAID", "by card")
    work.run_until_idle()
    (told,) = work.queues.info("told")
    assert told.value == {"entity": "order-17", "state": "PAID", "before": "NEW", "reason": "by card"}


@pytest.mark.parametrize("moment", ["begun", "committing"])
def test_an_engine_that_fails_while_it_tells_tells_once(work: Postroom, moment: str) -> None:
    work.queues.create("told")
    work.spheres.watch_state("ABORTED", "told")
    ended(work, "one", "too late")
    faults.arm(f"watch.{moment}", "raise")
    with pytest.raises(faults.FaultInjected):
        work.run_until_idle()
    faults.disarm()
    with postroom.open(work.url) as again:
        evaluate_here(again)
        again._parts.runner._stages += (Watching(),)
        again.run_until_idle()
        assert len(bodies(again, "told")) == 1


def test_what_cannot_be_watched_is_refused(work: Postroom) -> None:
    with pytest.raises(ArgumentInvalid, match="is not a state of a machine"):
        work.spheres.watch_state("complaints", "letters")
    with pytest.raises(QueueUnknown):
        work.spheres.watch_state("ABORTED", "nowhere")


def test_a_state_is_followed_and_nothing_is_taken_out(url: str) -> None:
    with postroom.open(url) as room:
        ended(room, "one", "too late")
        said = subprocess.run(
            [sys.executable, "-m", "postroom", "--room", url, "receive", "ABORTED", "--follow", "--wait", "0.3"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert said.stdout == "one is ABORTED: too late\n"
        assert [message.body for message in room.queues.info("ABORTED")] == ["one"]
        following = room.spheres.follow_state("ABORTED", wait=5)
        assert next(following)["entity"] == "one"
        ended(room, "two", "too dear")
        assert next(following) == {"entity": "two", "state": "ABORTED", "before": "ABORTING", "reason": "too dear"}
