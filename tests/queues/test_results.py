"""What the verbs answer with: the shapes for JSON, and what counts as an answer."""

from __future__ import annotations

from pathlib import Path

import postroom
from postroom.queues.results import Accepted, Delivery, Distributed, Held, Listing, QueueCount, Received, Sent, SentMany
from postroom.store.kernel.queues import Hold


def test_a_sent_message_is_told_by_its_key() -> None:
    sent = Sent(100_042)
    assert repr(sent) == f"Sent(key='{sent.key}', status='00')"
    assert sent.as_dict() == {"status": "00", "key": "00001.00042"}
    assert SentMany(("00001.00001", "00001.00002")).as_dict() == {
        "status": "00",
        "keys": ["00001.00001", "00001.00002"],
    }


def test_the_key_of_a_distribution_is_that_of_the_first_who_was_served() -> None:
    refused, served = Delivery("a", None, "1", "on hold"), Delivery("b", "00001.00001", "0")
    assert Distributed((refused, served), "00").as_dict()["key"] == "00001.00001"
    assert Distributed((refused,), "20").as_dict()["key"] is None
    assert refused.as_dict() == {"queue": "a", "key": None, "error_key": "1", "reason": "on hold"}


def test_nothing_received_is_false_and_tells_what_was_passed() -> None:
    none = Received(None, ("a", "b"))
    assert not none
    assert none.as_dict() == {"status": "00", "message": None, "passed": ["a", "b"], "end_of_message": False}
    assert Received(None, held=("c",)).as_dict()["held_queues"] == ["c"]


def test_a_count_tells_of_a_hold_and_a_lock_only_if_there_is_one() -> None:
    plain = QueueCount("q", ("A", "q"), 2, 1, Hold.NONE)
    assert plain.as_dict() == {"queue": "q", "path": ["A", "q"], "unprocessed": 2, "processed_count": 1, "held": False}
    held = QueueCount("q", ("q",), 0, 0, Hold.INPUT, "ann")
    assert held.as_dict()["hold"] == "input only"
    assert held.as_dict()["locked_by"] == "ann"
    assert Accepted((plain,)).as_dict() == {"status": "00", "queues": [plain.as_dict()]}
    assert Held(("q",)).as_dict() == {"status": "00", "changed": ["q"]}


def test_a_listing_is_read_anew_each_time_it_is_asked(tmp_path: Path) -> None:
    with postroom.open(tmp_path / "room.db") as room:
        room.queues.create("q")
        listing = room.peek("q")
        assert isinstance(listing, Listing)
        assert listing.messages == []
        room.send("q", "later")
        assert [message.body for message in listing] == ["later"]
        assert [message["body"] for message in listing.as_dict()["messages"]] == ["later"]
