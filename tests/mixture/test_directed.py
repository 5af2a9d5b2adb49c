"""What random mixtures have found, each by itself."""

from __future__ import annotations

from pathlib import Path

from tests.faults import forked
from tests.faults.here import evaluate_here
from tests.mixture import office
from tests.spheres import invariants

from postroom.room import Postroom

PROGRAM = """
create queue asked kind basic mode persistent
create queue answered kind basic mode persistent
create rule answer for asked if (//ask) then do enqueue <answer/> into answered
"""


def left_in_the_middle(room: Postroom, queue: str, folder: Path) -> None:
    """Someone has read the first segment, and ended."""
    assert forked.run(office.alone, room.url, "begin_reading", (queue,), folder=folder).code == 7


def test_a_lock_of_someone_who_has_ended_goes_with_the_message_that_a_sphere_withdraws(
    room: Postroom, tmp_path: Path
) -> None:
    room.queues.create("q")
    sphere = room.sphere()
    key = sphere.send("q", "one\ntwo", compensation="undo").key
    assert key is not None
    left_in_the_middle(room, "q", tmp_path)
    sphere.abort()
    assert room.journal.verify().differences == ()
    room.send("q", "next")
    received = room.receive("q").message
    assert received is not None
    assert received.body == "next"
    assert room.journal.verify().differences == (), "nothing is told of a message that is gone"
    assert [event.verb for event in room.trace(key)] == ["put", "segment", "withdraw"]


def test_a_lock_of_someone_who_has_ended_goes_with_the_message_that_a_rule_takes(
    room: Postroom, tmp_path: Path
) -> None:
    program = tmp_path / "program.demaq"
    program.write_text(PROGRAM)
    room.load(program)
    key = room.send("asked", "<ask>\n</ask>", format="xml").key
    left_in_the_middle(room, "asked", tmp_path)
    evaluate_here(room).run_until_idle()
    assert room.journal.verify().differences == ()
    room.send("asked", "<other/>", format="xml")
    assert room.receive("asked")
    assert [event.verb for event in room.trace(key)] == ["put", "segment", "take"]
    assert room.journal.verify().differences == ()


def test_a_letter_that_was_fetched_and_has_come_back_to_its_mailbox_is_compensated(url: str, tmp_path: Path) -> None:
    office.furnish(url, tmp_path)
    with office.opened(url, here=True) as room:
        ann, bob = room.stations._station("ann"), room.stations._station("bob")
        sphere = room.sphere()
        key = sphere.mail(ann, "bob", "NOTE", {"No": 1}, compensation={"No": 2}).key
        assert key is not None
        assert bob.get() == [key]
        bob.ship(key, "ann")
        ann.get()
        ann.ship(key, "bob")
        sphere.abort()
        bob.get()
        assert {image.fields["No"] for image in bob.messages("NOTE")} == {1, 2}
        assert room.spheres.show(sphere.id).sends[0].outcome == "compensated"
        assert invariants.check(room).compensated == {key}


def test_a_letter_that_was_withdrawn_is_nowhere(url: str, tmp_path: Path) -> None:
    office.furnish(url, tmp_path)
    with office.opened(url, here=True) as room:
        sphere = room.sphere()
        key = sphere.mail(room.stations._station("ann"), "bob", "NOTE", {"No": 1}, compensation={"No": 2}).key
        assert key is not None
        assert room.journal.locate(key) == "mailbox:bob"
        sphere.abort()
        assert room.journal.locate(key) is None
        travelled = room.stations._station("cid").create("NOTE", No=3)
        room.stations._station("cid").ship(travelled, "bob")
        assert room.journal.locate(travelled) == "mailbox:bob", "handed over, it is where it was handed to"
