"""Objects go to JSON and back as they were, and only known classes are made of what a server says."""

from __future__ import annotations

import json
from dataclasses import is_dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from postroom.errors import ServerFailed
from postroom.interfaces.http.contract import objects
from postroom.interfaces.http.contract.objects import Objects, encoded
from postroom.interfaces.http.contract.operations import OPERATIONS
from postroom.model.body import Format
from postroom.queues.results import Distributed, Received, Sent
from postroom.room import Postroom
from postroom.store.kernel.policies import Policy

OBJECTS = Objects(None, lambda message: message)


#: They stay in the room, or are told in another form.
_NOT_TOLD = {"QueueHandle", "Sphere", "Unread", "TrialResult", "Place"}


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


def test_all_that_operations_answer_with_may_be_told() -> None:
    """By their annotations: what an answer has only at times, such as engines that run, is told as well."""
    found: dict[type, str] = {}

    def look(kind: Any, where: str) -> None:
        for part in get_args(kind):
            look(part, where)
        plain = get_origin(kind) or kind
        if not isinstance(plain, type) or plain in found or not plain.__module__.startswith("postroom."):
            return
        found[plain] = where
        if issubclass(plain, (Enum, *objects._SPECIAL)) or not (is_dataclass(plain) or hasattr(plain, "_fields")):
            return
        hints = _hints(plain)
        for name in objects._fields(plain):
            look(hints.get(name), f"{where}, {plain.__name__}.{name}")

    for operation in OPERATIONS:
        look(_hints(operation.function).get("return"), operation.name)
    modules = {kind: kind.__module__.removeprefix("postroom.") for kind in found}
    untold = {kind.__name__: where for kind, where in found.items() if not _is_told(kind, modules[kind])}
    assert untold.keys() <= _NOT_TOLD, untold
    assert len(found) > 50


def _is_told(kind: type, module: str) -> bool:
    return module in objects._MODULES or issubclass(kind, tuple(objects._SPECIAL))


def _hints(of: Any) -> dict[str, Any]:
    unknown: dict[str, Any] = {}
    while True:
        try:
            return get_type_hints(of, localns=unknown)
        except NameError as error:
            unknown[str(error.name)] = Any
