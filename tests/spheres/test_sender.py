"""Whoever sends in a sphere: the cause of a send, and forms for mailboxes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.stations.world import desk, network

from postroom.errors import ArgumentInvalid, MessageUnknown
from postroom.room import Postroom


def test_a_send_has_the_cause_that_is_named_or_that_it_passes_on(room: Postroom) -> None:
    room.queues.create("work")
    first = room.send("work", "first")
    received = room.receive("work").message
    with room.sphere("s") as sphere:
        named = sphere.send("work", "second", cause=first.key)
        passed = sphere.send("work", received)
        with pytest.raises(MessageUnknown):
            sphere.send("work", "third", cause="00077.00001")
    assert [room.show(sent.key or "").cause for sent in (named, passed)] == [first.key, first.key]


def test_what_someone_who_has_joined_sends_follows_from_its_message(room: Postroom) -> None:
    room.queues.create("work")
    room.queues.create("more")
    with room.sphere("s") as sphere:
        sent = sphere.send("work", "x", compensation="y")
        message = room.receive("work").message
        assert message is not None
        with message.membership.join() as part:
            more = part.send("more", "z", compensation="not z")
    assert room.show(more.key or "").cause == sent.key


def test_a_form_is_mailed_and_undone_by_a_second_one(url: str, tmp_path: Path) -> None:
    with network(url, tmp_path, {}, {"A": "control", "B": "control"}) as room:
        ann, bob = desk(room, "A"), desk(room, "B")
        sphere = room.sphere("s")
        sent = sphere.mail(ann, "B", "NOTE", {"To": "B", "Text": "come"}, compensation={"To": "B", "Text": "stay"})
        assert bob.get() == [sent.key]
        sphere.abort()
        (undo,) = bob.get()
        assert bob.show(undo).fields["Text"] == "stay"
        with pytest.raises(ArgumentInvalid, match="fields of the form"):
            room.sphere("t").mail(ann, "B", "NOTE", {"To": "B"}, compensation="stay")
