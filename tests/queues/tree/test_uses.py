"""A queue that is needed is not removed: by a load, or by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from postroom.errors import ProgramInvalid, QueueNeeded
from postroom.room import Postroom

TREE = "01 INPUT-QUEUE (shop)\n    02 SUB-QUEUE-1 (orders)\n    02 SUB-QUEUE-1 (mail)\n99\n"
RENAMED = TREE.replace("orders", "bestell")
READING = "create queue in kind basic mode persistent create rule bill for INP_0000 if (/o) then do enqueue . into in"
SENDING = "create queue in kind basic mode persistent create rule bill for in if (/o) then do enqueue . into INP_0000"
OTHER = "create queue in kind basic mode persistent create rule bill for in if (/o) then do enqueue . into INP_0001"


@pytest.fixture
def load(room: Postroom, tmp_path: Path) -> Callable[..., None]:
    def loaded(**texts: str) -> None:
        files = [tmp_path / f"a.{suffix}" for suffix in texts]
        for file, text in zip(files, texts.values(), strict=True):
            file.write_text(text)
        room.load(*files)

    return loaded


def queues(room: Postroom) -> set[str]:
    return {count.queue for count in room.count().queues if count.queue.startswith("INP")}


@pytest.mark.parametrize("order", ["before", "beside"])
def test_a_queue_that_rules_read_stays_unless_they_are_changed_with_it(
    room: Postroom, load: Callable[..., None], order: str
) -> None:
    load(qdl=TREE)
    load(demaq=READING)
    with pytest.raises(QueueNeeded, match=r"INP_0000 \(shop orders\) cannot be removed: it is needed by rules"):
        load(qdl=RENAMED)
    assert queues(room) == {"INP_0000", "INP_0001"}
    if order == "beside":
        load(qdl=RENAMED, demaq=OTHER)
    else:
        load(demaq=OTHER)
        load(qdl=RENAMED)
    assert queues(room) == {"INP_0001", "INP_0002"}


def test_a_queue_that_a_rule_sends_to_stays_and_the_place_of_the_rule_is_told(
    room: Postroom, load: Callable[..., None]
) -> None:
    load(qdl=TREE)
    load(demaq=SENDING)
    with pytest.raises(ProgramInvalid, match=r"a.demaq:1:\d+: .*INP_0000"):
        load(qdl=RENAMED)
    assert queues(room) == {"INP_0000", "INP_0001"}
    load(qdl=RENAMED, demaq=OTHER)


def test_a_queue_that_a_schedule_fills_stays(room: Postroom, load: Callable[..., None]) -> None:
    load(qdl=TREE)
    room.consumers.schedule("nightly", "0 7 * * *", "shop", "orders", body="x")
    room.consumers.schedule("other", "0 7 * * *", "shop", "mail", body="x")
    with pytest.raises(QueueNeeded, match=r"by schedule nightly$"):
        load(qdl=RENAMED)
    room.consumers.unschedule("nightly")
    load(qdl=RENAMED)
    assert queues(room) == {"INP_0001", "INP_0002"}


def test_a_single_queue_that_is_needed_is_not_removed_either(room: Postroom, load: Callable[..., None]) -> None:
    for name in ("a", "b", "c", "d"):
        room.queues.create(name)
    load(demaq="create queue x kind basic mode persistent create rule r for a if (/o) then do enqueue . into b")
    room.consumers.schedule("hourly", "0 * * * *", "c", body="x")
    with pytest.raises(QueueNeeded, match="a cannot be removed: it is needed by rules"):
        room.queues.remove("a")
    with pytest.raises(ProgramInvalid, match="b"):
        room.queues.remove("b")
    with pytest.raises(QueueNeeded, match="c cannot be removed: it is needed by schedule hourly"):
        room.queues.remove("c")
    room.queues.remove("d")
    assert {count.queue for count in room.count().queues} >= {"a", "b", "c"}


def test_a_queue_that_an_arc_reads_or_a_counter_takes_from_is_not_removed(
    room: Postroom, load: Callable[..., None]
) -> None:
    room.queues.create("orders")
    room.stations.add("Ann", "a password")
    load(form="type ORDER\n| No: ____ |\nfield No string required\ncounter front at Ann takes ORDER from orders\n")
    with pytest.raises(QueueNeeded, match="orders cannot be removed: it is needed by counters"):
        room.queues.remove("orders")
