"""Looking at what a selector means; on both stores."""

from __future__ import annotations

import pytest

from postroom.errors import ArgumentInvalid, QueueLocked
from postroom.room import Postroom


def test_browsing_takes_nothing_and_needs_no_entries(room: Postroom) -> None:
    room.queues.create("q")
    for n in range(5):
        room.send("q", str(n), properties={"n": n}, priority=n % 2)
    assert [message.body for message in room.peek("q", where="n > 1")] == ["3", "2", "4"]
    assert room.store.read(lambda tx: tx.session.number("SELECT count(*) FROM selections")) == 0
    assert not room.receive("q", where="n > 9")
    assert [message.body for message in room.queue("q").info(where="n > 1")] == ["3", "2", "4"]
    assert [message.body for message in room.queue("q").peek(2, "n = 0..9")] == ["1", "3"]
    assert room.count("q").queues[0].unprocessed == 5


def test_browsing_goes_through_the_queues_of_a_level(tree: Postroom) -> None:
    for queue in ("QUE5", "QUE6", "QUE7"):
        tree.send(("MASTER-QUEUE", "SUBQ-3", queue), queue, properties={"n": queue[-1]})
    assert [message.body for message in tree.peek("MASTER-QUEUE", where="n >= 6")] == ["QUE6", "QUE7"]
    got = tree.receive("MASTER-QUEUE", where="n = 6").message
    assert got is not None
    assert got.body == "QUE6"
    assert [message.body for message in tree.peek("MASTER-QUEUE", limit=1, where="n <> ''")] == ["QUE5"]


def test_what_cannot_be_looked_at_is_refused(room: Postroom) -> None:
    room.queues.create("q")
    room.send("q", "a\nb", properties={"n": 1})
    with pytest.raises(ArgumentInvalid, match="limit"):
        room.peek("q", limit=0, where="n = 1")
    room.receive("q", segment=True)
    with pytest.raises(QueueLocked):
        room.peek("q", where="n = 1")
