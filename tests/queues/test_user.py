"""What a user of queues remembers of its references, and what it does not rely on."""

from __future__ import annotations

import pytest

from postroom.errors import QueueUnknown
from postroom.model.message import Draft
from postroom.queues import user
from postroom.room import Postroom


def test_only_so_many_references_are_remembered(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user, "REFERENCES_KNOWN_MAX", 2)
    verbs = room._parts.verbs
    for name in ("a", "b", "c"):
        room.queues.create(name)
        verbs.send((name,), Draft.of("x"))
        assert (name,) in verbs._known
        assert len(verbs._known) <= 2
    assert [len(room.peek(name).messages) for name in ("a", "b", "c")] == [1, 1, 1]


def test_a_reference_that_led_to_a_removed_queue_leads_nowhere(room: Postroom) -> None:
    room.queues.create("a")
    room.send("a", "x")
    room.receive("a")
    room.queues.remove("a")
    with pytest.raises(QueueUnknown):
        room.send("a", "y")
