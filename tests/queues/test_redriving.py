"""What failed is sent again, and once: from the dead letters or from its error message; on both stores."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults.here import evaluate_here

from postroom.errors import EntryRefused, QueueHeld, QueueUnknown, RedriveRefused
from postroom.model.key import key_number
from postroom.queues.redriving import origin_of
from postroom.room import Postroom

PROGRAM = """
create queue in kind basic mode persistent
create queue out kind basic mode persistent
create queue errors kind basic mode persistent
create rule divide for in errorqueue errors if (/m) then do enqueue <r>{60 div xs:integer(/m)}</r> into out
"""


def bodies(room: Postroom, queue: str) -> list[str]:
    return [message.body for message in room.peek(queue)]


def sound(room: Postroom) -> None:
    assert room.journal.verify().differences == ()


def buried(room: Postroom, *queues: str) -> list[str]:
    """A dead letter of each queue, all of them in the queue dead."""
    for name in queues:
        if name not in {count.queue for count in room.count().queues}:
            room.queues.create(name)
        room.consumers.set_policy(name, dead_letters="dead")
        room.send(name, f"of {name}")
        message = room.receive(name, lease=60).message
        assert message is not None
        message.fail("no", final=True)
    return [message.key for message in room.peek("dead")]


@pytest.fixture
def failed(room: Postroom, tmp_path: Path) -> tuple[Postroom, str, str]:
    """A message that a rule failed with: its key among the dead letters, and that of its error message."""
    (tmp_path / "p.demaq").write_text(PROGRAM)
    room.load(tmp_path / "p.demaq")
    room.consumers.set_policy("in", attempts=1)
    key = room.send("in", "<m>0</m>", format="xml").key
    evaluate_here(room).run_until_idle()
    (error,) = room.peek("errors").messages
    (dead,) = room.peek("in.dead").messages
    assert (dead.key, error.cause, origin_of(dead), origin_of(error)) == (key, key, "in", "in")
    return room, key, error.key


def test_a_dead_letter_is_redriven_and_its_error_message_is_not(failed: tuple[Postroom, str, str]) -> None:
    room, key, error = failed
    for dry in (True, False):
        with pytest.raises(RedriveRefused, match=f"redrive in.dead --key {key}"):
            room.consumers.redrive("errors", dry=dry)
    assert room.consumers.redrive("in.dead").moves == ((key, "in"),)
    with pytest.raises(RedriveRefused, match=r"went on from in\.dead"):
        room.consumers.redrive("errors", keys=[error])
    with pytest.raises(RedriveRefused):
        room.consumers.redrive("errors", edit=lambda message: "<m>1</m>")
    room.run_until_idle()
    assert len(bodies(room, "in.dead")) == 1, "it has failed again, once"
    assert room.consumers.redrive("in.dead", edit=lambda message: "<m>2</m>").count == 1
    room.run_until_idle()
    assert bodies(room, "out") == ["<r>30</r>"]
    with pytest.raises(RedriveRefused):
        room.consumers.redrive("errors")
    assert room.consumers.redrive("errors", to="out").count == 2, "the error messages themselves are moved"
    sound(room)


def test_a_dead_letter_that_was_let_go_leaves_its_error_message(failed: tuple[Postroom, str, str]) -> None:
    room, _, error = failed
    room.consumers.purge("in.dead")
    assert room.consumers.redrive("errors").moves == ((error, "in"),)
    assert bodies(room, "in") == ["<m>0</m>"]
    sound(room)


def test_of_two_error_messages_of_one_message_one_is_redriven(room: Postroom) -> None:
    for name in ("q", "errors"):
        room.queues.create(name)
    key = room.send("q", "x").key
    room.receive("q")
    body = f'<error><queue>q</queue><initialMessage key="{key}">x</initialMessage></error>'
    errors = [room.send("errors", body, format="xml", cause=key).key for _ in range(3)]
    for dry in (True, False):
        done = room.consumers.redrive("errors", keys=errors[:2], dry=dry)
        assert (done.count, [skipped for skipped, _ in done.skipped]) == (1, [errors[1]])
    with pytest.raises(RedriveRefused, match=f"{errors[0]} was redriven"):
        room.consumers.redrive("errors")
    assert bodies(room, "q") == ["x"]
    assert room.trace(errors[0])[-1].detail == {"edited": room.peek("q").messages[0].key, "failed": key}
    sound(room)


def test_what_was_caused_by_a_message_and_redriven_is_none_of_its_errors(room: Postroom) -> None:
    (cause,) = buried(room, "q")
    key = room.send("q", "by its worker", cause=cause).key
    message = room.receive("q", lease=60).message
    assert message is not None
    message.fail("no", final=True)
    room.consumers.redrive("dead", keys=[key], edit=lambda message: "corrected")
    assert room.consumers.redrive("dead").moves == ((cause, "q"),)


def test_a_dead_letter_whose_queue_is_gone_stays_and_the_others_go(room: Postroom) -> None:
    a, b, c = buried(room, "a", "b", "c")
    room.queues.remove("b")
    for dry in (True, False):
        done = room.consumers.redrive("dead", dry=dry)
        assert done.moves == ((a, "a"), (c, "c"))
        ((key, why),) = done.skipped
        assert (key, "no queue b" in why) == (b, True)
    assert done.as_dict()["skipped"] == [{"key": b, "why": why}]
    assert bodies(room, "dead") == ["of b"]
    with pytest.raises(QueueUnknown):
        room.consumers.redrive("dead")
    assert room.consumers.redrive("dead", to="a").count == 1
    sound(room)


def test_held_and_full_queues_keep_nobody_else_waiting(room: Postroom) -> None:
    keys = buried(room, "a", "b", "c", "b")
    room.queues.set_password("a", password="x")
    room.queues.disable("a", password="x")
    room.consumers.set_policy("b", max_messages=1)
    done = room.consumers.redrive("dead")
    assert done.moves == ((keys[1], "b"), (keys[2], "c"))
    assert [key for key, _ in done.skipped] == [keys[0], keys[3]]
    with pytest.raises(QueueHeld):
        room.consumers.redrive("dead", limit=1)
    sound(room)


def test_what_a_queue_does_not_let_in_stays_and_the_others_go(room: Postroom, tmp_path: Path) -> None:
    (tmp_path / "p.demaq").write_text("create queue later kind echo mode persistent")
    room.load(tmp_path / "p.demaq")
    room.queues.create("dead")
    for number in range(7):
        target = "dead" if number != 3 else "nowhere"
        room.send("dead", str(number), properties={"target": target, "timeout": 3_600, "dead.queue": "later"})
    for dry in (True, False):
        done = room.consumers.redrive("dead", dry=dry)
        assert (done.count, len(done.skipped)) == (6, 1)
    assert bodies(room, "dead") == ["3"]
    with pytest.raises(EntryRefused):
        room.consumers.redrive("dead")
    sound(room)


def test_many_that_stay_do_not_stop_a_redrive(room: Postroom) -> None:
    room.queues.create("q")
    room.queues.create("dead")
    gone = room.send_many("dead", ["x"] * 2_100, properties={"dead.queue": "gone"}).keys
    kept = room.send_many("dead", ["y"] * 1_100, properties={"dead.queue": "q"}).keys
    done = room.consumers.redrive("dead", limit=1_050)
    assert [key for key, _ in done.moves] == list(kept[:1_050])
    done = room.consumers.redrive("dead")
    assert (done.count, len(done.skipped)) == (50, 2_100)
    assert {key_number(key) for key, _ in done.skipped} == {key_number(key) for key in gone}
    sound(room)
