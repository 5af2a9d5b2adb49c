"""Where a message is: of a key that nobody knows, of a message that is gone, and while a node does not answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stations.world import three_nodes

from postroom.errors import (
    MessageGone,
    MessageUnknown,
    NodeDown,
)
from postroom.room import Postroom


@pytest.fixture
def room(url: str, tmp_path: Path) -> Iterator[Postroom]:
    with three_nodes(url, tmp_path) as opened:
        yield opened


def test_keys_that_nobody_knows(room: Postroom, tmp_path: Path) -> None:
    for ask in (room.locate, room.trace, room.show):
        with pytest.raises(MessageUnknown):
            ask("00077.00001")
    queue = room.create_queue("brief", keep_processed=False)
    key = queue.send("x").key
    assert room.locate(key) == "brief"
    queue.receive()
    assert room.locate(key) is None
    with pytest.raises(MessageGone):
        room.show(key)
    room._network.close()
    (tmp_path / "south.db").unlink()
    for ask in (room.locate, room.trace, room.show):
        with pytest.raises(NodeDown):
            ask("00077.00001")
