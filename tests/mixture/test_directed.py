"""What random mixtures have found, each by itself."""

from __future__ import annotations

from pathlib import Path

from tests.faults import forked
from tests.faults.here import evaluate_here
from tests.mixture import office

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
    room.create_queue("q")
    sphere = room.sphere()
    key = sphere.send("q", "one\ntwo", compensation="undo").key
    assert key is not None
    left_in_the_middle(room, "q", tmp_path)
    sphere.abort()
    assert room.verify().differences == ()
    room.send("q", "next")
    received = room.receive("q").message
    assert received is not None
    assert received.body == "next"
    assert room.verify().differences == (), "nothing is told of a message that is gone"
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
    assert room.verify().differences == ()
    room.send("asked", "<other/>", format="xml")
    assert room.receive("asked")
    assert [event.verb for event in room.trace(key)] == ["put", "segment", "take"]
    assert room.verify().differences == ()
