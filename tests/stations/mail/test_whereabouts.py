"""Where a message is: of a key that nobody knows, of a message that is gone, and while a node does not answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stations.world import desk, three_nodes, unreachable

from postroom.errors import (
    MessageGone,
    MessageUnknown,
    NodeDown,
)
from postroom.room import Postroom
from postroom.stations.mail import mail
from postroom.store.kernel.queues import LEAVING


@pytest.fixture
def room(url: str, tmp_path: Path) -> Iterator[Postroom]:
    with three_nodes(url, tmp_path) as opened:
        yield opened


def test_keys_that_nobody_knows(room: Postroom, tmp_path: Path) -> None:
    for ask in (room.journal.locate, room.trace, room.show):
        with pytest.raises(MessageUnknown):
            ask("00077.00001")
    queue = room.queues.create("brief", keep_processed=False)
    key = queue.send("x").key
    assert room.journal.locate(key) == "brief"
    queue.receive()
    assert room.journal.locate(key) is None
    with pytest.raises(MessageGone):
        room.show(key)
    room._parts.network.close()
    (tmp_path / "south.db").unlink()
    for ask in (room.journal.locate, room.trace, room.show):
        with pytest.raises(NodeDown):
            ask("00077.00001")


def test_a_message_is_located_wherever_it_is(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    ann, bob = desk(room, "ann"), desk(room, "bob")
    key = ann.create("NOTE", To="x")
    assert room.journal.locate(key) == "ann"
    with monkeypatch.context() as patch:
        patch.setattr(mail, "deliver", unreachable)
        ann.ship(key, "bob")
        assert room.show(key).queue == LEAVING
    assert ann.get() == [], "whoever comes by brings it on its way"
    assert room.journal.locate(key) == "mailbox:bob"
    bob.get()
    assert (room.journal.locate(key), room.show(key).value["To"]) == ("bob", "x")
    assert [event.verb for event in room.trace(key)] == [
        "create",
        "ship",
        "ship",
        "handed-over",
        "get",
        "get",
        "handed-over",
    ]
