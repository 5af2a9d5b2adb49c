"""The claims of examples/claims: one message through every capability, with a program that is killed on the way."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.examples.test_gryphon import module

import postroom
from postroom.room import Postroom
from postroom.stations.mail.story import Story, StoryMessage

MASTER = "local[2]"
claims = module("claims")


def test_nothing_is_lost_or_doubled_and_the_story_is_whole(
    sqlite_url: str, tmp_path: Path, spark: object, capsys: pytest.CaptureFixture[str]
) -> None:
    with postroom.open(sqlite_url, actor="front office") as room:
        key, counts = claims.play(claims.Office(room, MASTER, str(tmp_path / "south.db")), claims.of_file())
        assert counts == {"claims": 6, "orders": 7, "returned": 1, "letters": 6, "aborted": 1}
        check_story(room, key)
        check_lines(room)
    said = capsys.readouterr().out
    for moment in ("in the mailboxes", "at the desks, approved", "in the archive"):
        assert f"a global query finds all 6 claims {moment}" in said


@pytest.mark.slow
def test_the_same_on_postgresql(postgres_url: str, spark: object) -> None:
    with postroom.open(postgres_url, actor="front office") as room:
        key, counts = claims.play(claims.Office(room, MASTER), claims.many(60))
        assert counts == {"claims": 60, "orders": 61, "returned": 1, "letters": 60, "aborted": 1}
        check_story(room, key)


def check_story(room: Postroom, key: str) -> None:
    """The trace of the claim whose payment was undone tells who did what, from the lines to the letter."""
    story = room.trace(key, causes=True)
    assert story.complete
    assert story.messages[0].key == key
    makers = {each.events[0].by.split()[0] for each in story.messages}
    assert makers == {"front", "rule", "arc", "counter", "procedure", "cashier"}
    (payment,) = [each for each in story.messages if each.events[0].by.startswith("procedure")]
    types = {told(story, cause).type for cause in payment.causes}
    assert types == {"CLAIM", "REPORT", "APPROVAL"}, "a payment is made of three messages"
    orders = [each for each in story.messages if each.events[0].target == "bank"]
    assert [each.outcome for each in orders] == ["compensated", "stands"]
    (undo,) = [told(story, effect) for effect in orders[0].effects]
    assert [event.target for event in undo.events][:2] == ["COMP.Q", "returns"]
    assert undo.events[1].by == "compensation engine"
    (paid,) = [each for each in story.messages if each.events[0].target == "payments"]
    assert [(event.verb, event.by) for event in paid.events][1:3] == [
        ("reserve", "cashier"),
        ("give-back", "compensation engine"),
    ], "the payment itself is in its queue again"
    (claim,) = [each for each in story.messages if each.type == "CLAIM" and each.depth > 0]
    assert claim.place == "Archive"
    assert sum(each.place == "OUT_0000" for each in story.messages) == 1, "one letter"


def check_lines(room: Postroom) -> None:
    """What a cashier has sent is lines to whoever posts the letters."""
    letter = []
    while not (received := room.receive("LETTERS", segment=True)).end_of_message:
        assert received.message is not None
        letter.append(received.message.body)
    assert letter[0].startswith("No: ")
    assert any(line.startswith("To: ") for line in letter)


def told(story: Story, key: str) -> StoryMessage:
    (found,) = [each for each in story.messages if each.key == key]
    return found
