"""What a Spark job made enters a room once: by the room's own door, and known when it comes again."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import postroom
from postroom.engine.datasource import delivery
from postroom.engine.datasource.delivery import Receipt, deliver
from postroom.errors import ArgumentInvalid, BodyMismatch, EntryRefused, QueueHeld, QueueUnknown
from postroom.limits import STREAM_RECEIPTS_KEPT
from postroom.model.message import Draft
from postroom.model.types import Field, MessageType
from postroom.room import Postroom
from postroom.spark import RoomSource


def drafts(*bodies: str) -> list[Draft]:
    return Draft.many(bodies)


def give(room: Postroom, made: Sequence[Draft], receipt: Receipt | None = None, queue: str = "q") -> int:
    return deliver(room.store, queue, made, RoomSource.admission(room.store), receipt)


def bodies(room: Postroom, queue: str = "q") -> list[str]:
    return [message.body for message in room.queues.info(queue).messages]


@pytest.fixture
def queue(room: Postroom) -> str:
    room.queues.create("q")
    return "q"


def test_all_enter_in_their_order_in_one_commit(room: Postroom, queue: str) -> None:
    assert give(room, drafts("a", "b", "c")) == 3
    assert bodies(room) == ["a", "b", "c"]
    assert len({message.created for message in room.queues.info("q").messages}) == 1
    assert give(room, []) == 0


def test_a_batch_that_comes_again_is_known_whatever_it_says(room: Postroom, queue: str) -> None:
    assert give(room, drafts("a", "b"), Receipt("query", 0)) == 2
    assert give(room, drafts("a", "b"), Receipt("query", 0)) == 0
    assert give(room, drafts("other"), Receipt("query", 0)) == 0
    assert bodies(room) == ["a", "b"]


def test_other_batches_queries_and_queues_are_others(room: Postroom, queue: str) -> None:
    room.queues.create("p")
    for receipt, target in (("x", 0), "q"), (("x", 1), "q"), (("y", 0), "q"), (("x", 0), "p"):
        assert give(room, drafts("a"), Receipt(*receipt), target) == 1
    assert len(bodies(room)) == 3
    assert len(bodies(room, "p")) == 1


def test_two_who_write_the_same_batch_at_once_write_it_once(url: str) -> None:
    with postroom.open(url) as first, postroom.open(url) as second:
        first.queues.create("q")
        with ThreadPoolExecutor(2) as pool:
            for batch in range(5):
                receipt = Receipt("query", batch)
                done = [pool.submit(give, room, drafts("a"), receipt) for room in (first, second)]
                assert sorted(each.result() for each in done) == [0, 1]
        assert len(bodies(first)) == 5


def test_old_receipts_go_and_the_newest_stay(room: Postroom, queue: str) -> None:
    last = STREAM_RECEIPTS_KEPT + 3
    for batch in range(last + 1):
        give(room, drafts("a"), Receipt("query", batch))
    names = [Receipt("query", batch).name("q") for batch in range(last + 1)]
    known = room.store.read(lambda tx: [tx.receipts.find(name, delivery._FINGERPRINT) for name in names])
    assert [key is not None for key in known] == [False] * 3 + [True] * (STREAM_RECEIPTS_KEPT + 1)
    give(room, drafts("a"), Receipt("queries", 99))
    assert give(room, drafts("a"), Receipt("query", last)) == 0, "another query's receipts are not touched"


def test_what_a_send_refuses_is_refused_and_leaves_no_receipt(room: Postroom, queue: str) -> None:
    receipt = Receipt("query", 0)
    with pytest.raises(QueueUnknown):
        give(room, drafts("a"), receipt, "none")
    room.queues.create("held", password="pw")
    room.queues.disable("held", password="pw")
    with pytest.raises(QueueHeld):
        give(room, drafts("a"), receipt, "held")
    room.queues.enable("held", password="pw")
    assert give(room, drafts("a"), receipt, "held") == 1
    room.definitions.define_type(MessageType("Note", (Field("Text"),)))
    with pytest.raises(BodyMismatch):
        give(room, [*drafts("a"), Draft.of({"Text": [1]}, type="Note")], receipt)
    assert bodies(room) == []


def test_a_queue_with_a_door_works_on_what_enters(room: Postroom, tmp_path: Path) -> None:
    (tmp_path / "prices.demaq").write_text(
        "create queue priced kind basic mode persistent "
        "create property total as xs:integer queue priced value number(/order/@total)"
    )
    room.load(tmp_path / "prices.demaq")
    assert give(room, [Draft.of("<order total='7'/>", "xml")], queue="priced") == 1
    (message,) = room.queues.info("priced").messages
    assert message.properties["total"] == 7
    with pytest.raises(EntryRefused):
        give(room, [Draft.of("<order total='seven'/>", "xml")], queue="priced")
    assert len(bodies(room, "priced")) == 1


def test_more_than_one_commit_takes_is_refused(room: Postroom, queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "BATCH_MESSAGES_MAX", 2)
    with pytest.raises(ArgumentInvalid, match="3 messages; one commit takes at most 2"):
        give(room, drafts("a", "b", "c"))
    assert bodies(room) == []
