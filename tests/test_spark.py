"""Rooms as a data source: what Spark writes enters a queue as everything else does."""

from __future__ import annotations

from pathlib import Path

import pytest

import postroom
from postroom import spark
from postroom.errors import EntryRefused, EventInvalid, QueueUnknown
from postroom.model.message import Draft
from postroom.room import Postroom
from postroom.spark import RoomSource


def put(room: Postroom, queue: str, *bodies: str) -> int:
    admitted = RoomSource.admission(room.store)
    drafts = [Draft.of(body, "xml" if body[0] == "<" else None) for body in bodies]
    return len(room.store.transact("deliver", lambda tx: admitted(tx, queue, drafts)))


def test_what_spark_delivers_is_in_the_queue_and_is_told_of_spark(tmp_path: Path) -> None:
    with postroom.open(tmp_path / "room.db", actor="ann") as room:
        room.queues.create("q")
        assert put(room, "q", "one", "two") == 2
        assert [message.body for message in room.peek("q")] == ["one", "two"]


def test_what_spark_delivers_is_checked_by_rules_and_arcs(tmp_path: Path) -> None:
    (tmp_path / "p.demaq").write_text(
        "create queue a kind basic mode persistent create property n as xs:integer queue a value //n"
    )
    (tmp_path / "g.flow").write_text("domain d space S : [n: int]")
    with postroom.open(tmp_path / "room.db") as room:
        room.load(tmp_path / "p.demaq", tmp_path / "g.flow")
        with pytest.raises(EntryRefused):
            put(room, "a", "<x><n>1</n></x>", "<x><n>no</n></x>")
        with pytest.raises(EventInvalid):
            put(room, "S", '["text"]')
        with pytest.raises(QueueUnknown):
            put(room, "nowhere", "x")
        assert [count.unprocessed for count in room.count().queues if count.queue in ("a", "S")] == [0, 0]
        put(room, "a", "<x><n>7</n></x>")
        (message,) = room.peek("a")
        assert message.properties["n"] == 7


def test_the_module_offers_a_session_and_the_data_source() -> None:
    assert spark.__all__ == ["register", "session", "stop"]
    assert RoomSource.name() == "postroom"
