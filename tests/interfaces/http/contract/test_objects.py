"""Objects go to JSON and back as they were, and only known classes are made of what a server says."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest

from postroom.errors import ServerFailed
from postroom.interfaces.http.contract.objects import Objects, encoded
from postroom.model.body import Format
from postroom.queues.results import Distributed, Received, Sent
from postroom.room import Postroom
from postroom.store.kernel.policies import Policy

OBJECTS = Objects(None, lambda message: message)


def back(value: Any) -> Any:
    return OBJECTS.decoded(json.loads(json.dumps(encoded(value))))


@pytest.mark.parametrize(
    "value",
    [
        None, True, 17, 1.5, "text", [1, [2]], (1, (2,)), {"a": {"b": 1}}, {"$": "odd"}, {1: "one", (2, 3): "pair"},
        Decimal("1.10"), b"\x00\xff", date(2026, 1, 2), time(3, 4), datetime(2026, 1, 2, tzinfo=UTC),
        timedelta(days=1, microseconds=7), frozenset({"a"}), Format.XML, Sent(100_001), Received(None, ("a",)),
        Policy(attempts=3), Distributed((), "00"), [Policy(), None],
    ],
    ids=repr,
)  # fmt: skip
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    assert back(value) == value
    assert type(back(value)) is type(value)


def test_a_message_comes_back_with_all_that_it_says(room: Postroom) -> None:
    room.queues.create("q")
    room.send("q", '{"n": 1.00000000000000000000001}', format="json", properties={"a": None, "b": "\u20ac"})
    (message,) = room.peek("q")
    assert back(message) == message
    assert back(message)._stored == message._stored
    assert back(room.peek("q")).messages == [message]


@pytest.mark.parametrize("tag", ["os:system", "room.opening:open", "queues.results:status", "store:Store", "x"])
def test_nothing_else_is_made_of_what_a_server_says(tag: str) -> None:
    with pytest.raises(ServerFailed, match="does not know"):
        OBJECTS.decoded({"$": tag, "v": {}})
