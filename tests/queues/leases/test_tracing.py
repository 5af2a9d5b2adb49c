"""Outside of a worker there is no trace."""

from __future__ import annotations

from postroom.queues.leases.tracing import TRACE, current_trace
from postroom.room import Postroom


def test_only_workers_have_a_trace(room: Postroom) -> None:
    assert current_trace.get() is None
    room.queues.create("q")
    room.send("q", "x")
    room.send("q", "x", properties={TRACE: "given"})
    assert [message.properties for message in room.peek("q")] == [{}, {TRACE: "given"}]
