"""The express lane of SQLite has exactly the effect of the long way, and knows when not to take a case."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import postroom
from postroom import faults
from postroom.errors import CommitUnknown, MessageCorrupt, QueueHeld, QueueLocked, QueueUnknown, StoreStopped
from postroom.model.message import Draft
from postroom.room import Postroom
from postroom.store.kernel.owner import process_token
from postroom.store.kernel.queues import Hold
from postroom.store.sqlite.store import SqliteStore

TABLES = ("queues", "messages", "journal", "departed", "outbox", "locks", "counters")


def contents(room: Postroom) -> dict[str, list[Any]]:
    assert isinstance(room.store, SqliteStore)
    execute = room.store.session.connection.execute
    return {table: execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() for table in TABLES}


STEPS = st.lists(
    st.sampled_from(["send", "send", "receive", "receive", "segment", "many", "hold", "release", "discard", "keep"]),
    max_size=25,
)


@settings(deadline=None, max_examples=60)
@given(steps=STEPS)
def test_with_and_without_the_express_lane_the_room_is_the_same(steps: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        fast, slow = (
            postroom.open(Path(folder) / name, clock=lambda: 1_000_000, owner=process_token())
            for name in ("fast.db", "slow.db")
        )
        with fast, slow:
            # The ignores: taking the lane away is the point of this test, and a subclass would not be the store itself.
            slow.store.send_one = lambda queue, draft: None  # type: ignore[method-assign]
            slow.store.receive_one = lambda queue: None  # type: ignore[method-assign]
            for room in (fast, slow):
                room.queues.create("q")
            answers = [[play(room, step) for step in steps] for room in (fast, slow)]
            assert answers[0] == answers[1]
            assert contents(fast) == contents(slow)


def play(room: Postroom, step: str) -> Any:
    try:
        if step == "send":
            return room.send("q", "one\ntwo", properties={"a": 1})
        if step == "many":
            return list(room.send_many("q", ["x", "y"]).keys)
        if step in ("receive", "segment"):
            received = room.receive("q", segment=step == "segment")
            return received.message and received.message.as_dict(), received.passed, received.end_of_message
        if step in ("keep", "discard"):
            return room.queues.set_mode("q", keep_processed=step == "keep")
        hold = Hold.FULL if step == "hold" else Hold.NONE
        room.store.transact("hold", lambda tx: tx.queues.hold(tx.queues.locked(1), hold))
        return step
    except (QueueHeld, QueueLocked) as refusal:
        return refusal.code


@pytest.fixture
def room(sqlite_url: str) -> Iterator[Postroom]:
    with postroom.open(sqlite_url) as opened:
        opened.queues.create("q", password="pw")
        for body in ("a", "b", "c", "d"):
            opened.send("q", body)
        yield opened


def test_an_open_queue_goes_by_the_express_lane(room: Postroom) -> None:
    assert room.store.send_one(1, Draft.of("express")) is not None
    message = room.store.receive_one(1)
    assert message is not None
    assert message.body == "a"
    assert message.processed is not None


def test_what_it_cannot_do_it_leaves_to_the_long_way(room: Postroom) -> None:
    before = contents(room)
    assert room.store.send_one(99, Draft.of("x")) is None
    assert room.store.receive_one(99) is None
    assert contents(room) == before
    room.queues.disable("q", password="pw")
    assert room.store.send_one(1, Draft.of("x")) is None
    assert room.store.receive_one(1) is None
    with pytest.raises(QueueHeld):
        room.send("q", "x")
    with pytest.raises(QueueHeld):
        room.receive("q")
    room.queues.enable("q", password="pw")
    room.send_many("q", [])
    room.queues.set_mode("q", keep_processed=False)
    assert room.store.receive_one(1) is None
    assert room.receive("q").message is not None


def test_a_queue_with_a_command_line_is_not_its_case(sqlite_url: str, tmp_path: Path) -> None:
    (tmp_path / "t.qdl").write_text('01 INPUT-QUEUE (A) COMMAND LINE IS "true"\n99')
    with postroom.open(sqlite_url) as room:
        room.load(tmp_path / "t.qdl")
        for _ in range(3):
            room.send("A", "x")
            room.receive("A")
        assert len(room.engine.outbox()) == 3


def test_a_damaged_head_is_not_its_case(room: Postroom) -> None:
    room.receive("q")
    assert isinstance(room.store, SqliteStore)
    room.store.session.connection.execute("UPDATE messages SET body = 'forged' WHERE body = 'b'")
    with pytest.raises(MessageCorrupt):
        room.receive("q")
    assert room.receive("q").message is not None


def test_a_reference_that_leads_elsewhere_later_is_followed_anew(sqlite_url: str, tmp_path: Path) -> None:
    file = tmp_path / "t.qdl"
    with postroom.open(sqlite_url) as room:
        file.write_text("01 INPUT-QUEUE (A)\n01 INPUT-QUEUE (X)\n99")
        room.load(file)
        room.send("X", "into the input queue")
        assert room.receive("X").message is not None
        file.write_text("01 INPUT-QUEUE (A)\n01 OUTPUT-QUEUE (X)\n99")
        room.load(file)
        room.send("X", "into the output queue")
        assert [message.queue for message in room.queues.info("X")] == ["OUT_0000"]
        assert room.receive("X").message is not None
        file.write_text("01 INPUT-QUEUE (A)\n99")
        room.load(file)
        with pytest.raises(QueueUnknown):
            room.send("X", "nowhere")


@pytest.mark.parametrize("label", ["send", "receive"])
def test_its_faults_are_told_as_on_the_long_way(room: Postroom, label: str) -> None:
    def act() -> None:
        room.send("q", "x") if label == "send" else room.receive("q")

    room.receive("q")
    before = contents(room)["messages"]
    faults.arm(f"{label}.committing", "raise")
    with pytest.raises(faults.FaultInjected):
        act()
    assert contents(room)["messages"] == before
    faults.arm(f"{label}.committed", "raise")
    with pytest.raises(CommitUnknown):
        act()
    with pytest.raises(StoreStopped):
        act()
