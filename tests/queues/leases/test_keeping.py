"""A lease that is kept does not run out, however long the work takes; one that is lost is no longer kept."""

from __future__ import annotations

from time import sleep

import pytest

from postroom.errors import LeaseOver
from postroom.queues.leases.keeping import Keeper
from postroom.room import Postroom


def test_a_kept_lease_does_not_run_out(room: Postroom) -> None:
    room.queues.create("q")
    room.send("q", "x")
    message = room.receive("q", lease=0.3).message
    assert message is not None
    with room._parts.keeper.keeping(message):
        sleep(0.8)
        assert room.receive("q", lease=60).message is None
    message.done()
    assert [event.verb for event in room.trace(message.key)] == ["put", "lease", "take"], "extending is not told"


def test_a_lost_lease_is_no_longer_kept(room: Postroom) -> None:
    room.queues.create("q")
    room.send("q", "x")
    message = room.receive("q", lease=0.2).message
    assert message is not None
    keeper = Keeper(room._parts.leasing)
    with keeper.keeping(message):
        room.consumers.lease(message.lease).release()
        sleep(0.3)
        assert keeper._kept == {}
    with pytest.raises(LeaseOver):
        message.done()
