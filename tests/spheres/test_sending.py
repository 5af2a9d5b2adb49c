"""A send in a sphere is checked before the store is asked."""

from __future__ import annotations

from typing import Any

import pytest

from postroom.errors import ArgumentInvalid
from postroom.model.message import Draft
from postroom.room import Postroom
from postroom.spheres import sending
from postroom.spheres.sending import Compensation

DRAFT = Draft.of("book")


def test_a_compensation_goes_to_the_same_queue_in_the_same_format_unless_it_says_more() -> None:
    same = sending.order("hotel", Draft.of("<book/>", "xml"), "now", "<cancel/>", format="xml")
    assert same.compensation == Draft.of("<cancel/>", "xml")
    assert (same.queue, same.target, same.on_commit) == (("hotel",), None, None)
    other = sending.order("hotel", DRAFT, "now", Compensation({"no": 1}, ["tree", "desk"]), on_commit="log")
    assert (other.target, other.on_commit) == (("tree", "desk"), ("log",))
    assert other.compensation == Draft.of({"no": 1})


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("q", DRAFT, "later", None), "is none of now, commit, abort"),
        (("q", DRAFT, "commit", "undo"), "what is sent on commit needs none"),
        (("q", DRAFT, "now", None, "log"), "there is none"),
        ((7, DRAFT, "now", None), "neither a name nor a path"),
        (([], DRAFT, "now", None), "neither a name nor a path"),
    ],
)
def test_what_cannot_be_sent_is_refused(arguments: tuple[Any, ...], why: str) -> None:
    with pytest.raises(ArgumentInvalid, match=why):
        sending.order(*arguments)


def test_a_message_and_what_undoes_it_are_stored_in_one_commit(room: Postroom) -> None:
    room.queues.create("hotel")
    sphere = room.sphere("s")
    before = room.store.read(lambda tx: tx.journal.newest())
    sent = sphere.send("hotel", "book", compensation="cancel")
    assert (sent.key is None, sent.remembered is None) == (False, False)
    assert room.show(sent.key or "").properties == {"sphere": "s"}
    undo = room.show(sent.remembered or "")
    assert (undo.queue, undo.properties["compensates"], undo.properties["recipient"]) == ("COMP.Q", sent.key, "hotel")
    later = sphere.send("hotel", "thanks", when="commit")
    assert (later.key, room.show(later.remembered or "").queue) == (None, "COMP.Q")
    assert room.store.read(lambda tx: tx.journal.newest()) > before
    sphere.commit()
    assert [message.body for message in room.queues.info("hotel")] == ["book", "thanks"]


def test_a_sphere_has_a_largest_number_of_sends(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "SPHERE_SENDS_MAX", 2)
    room.queues.create("q")
    with room.sphere("s") as sphere:
        for _ in range(2):
            sphere.send("q", "x", compensation="y")
        with pytest.raises(ArgumentInvalid, match="2 messages, the maximum"):
            sphere.send("q", "x", compensation="y")
