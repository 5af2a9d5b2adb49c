"""Working on leased messages: blocks, loops and batches; on both stores."""

from __future__ import annotations

import pytest

from postroom.room import Postroom


@pytest.fixture
def q(room: Postroom) -> Postroom:
    room.queues.create("q")
    room.send_many("q", ["1", "2", "3"])
    return room


def verbs(room: Postroom, key: str) -> list[str]:
    return [event.verb for event in room.trace(key)]


def test_a_block_that_ends_has_done_its_work(q: Postroom) -> None:
    with q.work("q") as message:
        assert message is not None
        assert q.count("q").queues[0].leased == 1
    assert verbs(q, message.key) == ["put", "lease", "take"]


def test_a_block_that_raises_has_failed(q: Postroom) -> None:
    with pytest.raises(ValueError, match="odd"), q.work("q") as message:
        raise ValueError("odd")
    assert message is not None
    assert q.trace(message.key)[-1].detail == {"why": "ValueError: odd", "attempts": 1}


def test_a_block_that_is_interrupted_was_no_attempt(q: Postroom) -> None:
    with pytest.raises(KeyboardInterrupt), q.work("q") as message:
        raise KeyboardInterrupt
    assert message is not None
    assert verbs(q, message.key) == ["put", "lease", "release"]


def test_a_block_may_end_its_lease_itself(q: Postroom) -> None:
    with q.work("q") as message:
        assert message is not None
        message.release(delay=60)
    assert verbs(q, message.key)[-1] == "release"
    with q.work("q") as other:
        assert other is not None
        other.done()
    assert verbs(q, other.key)[-1] == "take"


def test_a_block_without_a_message_has_none(room: Postroom) -> None:
    room.queues.create("q")
    with room.work("q", wait=0.01) as message:
        assert message is None


def test_a_loop_ends_each_message_when_it_asks_for_the_next(q: Postroom) -> None:
    seen = []
    for message in q.each("q"):
        seen.append((message.body, q.count("q").queues[0].processed))
    assert seen == [("1", 0), ("2", 1), ("3", 2)]
    assert q.count("q").queues[0].processed == 3
    assert q.journal.verify().differences == ()


def test_a_loop_that_is_left_gives_its_message_back(q: Postroom) -> None:
    loop = q.each("q")
    message = next(loop)
    loop.close()  # type: ignore[attr-defined]
    assert verbs(q, message.key) == ["put", "lease", "release"]
    assert [message.body for message in q.peek("q")] == ["1", "2", "3"]


def test_a_detached_lease_outlives_its_room(url: str) -> None:
    import postroom

    with postroom.open(url) as room:
        room.queues.create("q")
        room.send("q", "x")
        (message,) = room.receive_many("q", count=1, lease=60, detached=True)
    with postroom.open(url) as room:
        assert room.receive("q", lease=60).message is None
        room.consumers.lease(message.lease).done()
        assert room.count("q").queues[0].processed == 1
