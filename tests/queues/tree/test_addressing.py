"""How a queue is named: by its physical name, by a path, and what is said of a name that means nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import postroom
from postroom.errors import (
    ArgumentInvalid,
    QueueNotSingle,
    QueueOwned,
    QueueUnknown,
)
from postroom.queues.results import Received
from postroom.queues.tree.addressing import keyed_level, names_of, receivable, typed_names
from postroom.room import Postroom
from postroom.store import shown


def body(received: Received) -> str:
    assert received.message is not None
    return received.message.body


def test_physical_names_follow_the_order_of_definition(tree: Postroom) -> None:
    counts = tree.queues.accept().queues
    assert [count.queue for count in counts] == ["INP_0000", "INP_0001", "INP_0002", "INP_0003", "OUT_0000", "OUT_0001"]
    assert counts[2].path == ("MASTER-QUEUE", "SUBQ-3", "QUE6")


def test_a_queue_answers_to_its_physical_name_and_to_its_path(tree: Postroom) -> None:
    tree.send("INP_0002", "by name")
    tree.send(("MASTER-QUEUE", "SUBQ-3", "QUE6"), "by path")
    tree.send("MASTER-QUEUE/SUBQ-3/QUE6", "by one word")
    tree.send("OQ3", "out")
    assert [message.body for message in tree.queues.info("MASTER-QUEUE", "SUBQ-3", "QUE6")] == [
        "by name",
        "by path",
        "by one word",
    ]
    assert body(tree.receive("OUT_0000")) == "out"


def test_a_higher_level_means_all_queues_below_left_to_right(tree: Postroom) -> None:
    for queue in ("INP_0003", "INP_0001", "INP_0002", "INP_0000"):
        tree.send(queue, queue)
    assert [body(tree.receive("MASTER-QUEUE")) for _ in range(4)] == ["INP_0000", "INP_0001", "INP_0002", "INP_0003"]
    assert [count.processed for count in tree.queues.accept("MASTER-QUEUE").queues] == [1, 1, 1, 1]
    assert [count.queue for count in tree.queues.accept("MASTER-QUEUE", "SUBQ-3").queues] == [
        "INP_0001",
        "INP_0002",
        "INP_0003",
    ]


@pytest.mark.parametrize(
    ("reference", "hint"),
    [
        (("MASTER-QUEU",), "MASTER-QUEUE"),
        (("master-queue",), "MASTER-QUEUE"),
        (("QUE6",), "MASTER-QUEUE SUBQ-3 QUE6"),
        (("MASTER-QUEUE", "QUE6"), "MASTER-QUEUE SUBQ-3 QUE6"),
        (("INP_0009",), "INP_0002"),
        (("MASTER-QUEUE", "SUBQ-2"), "MASTER-QUEUE SUBQ-1"),
    ],
)
def test_an_unknown_queue_is_told_with_the_nearest_names(tree: Postroom, reference: tuple[str, ...], hint: str) -> None:
    for verb in (tree.receive, tree.queues.accept, tree.queues.info, tree.queues.history):
        with pytest.raises(QueueUnknown) as caught:
            verb(*reference)
        assert hint in str(caught.value)
        assert caught.value.status == "20"
    with pytest.raises(QueueUnknown):
        tree.send(reference, "x")


def test_a_room_without_queues_says_where_it_is(room: Postroom, url: str) -> None:
    place = shown(url)  # without a password
    for verb in (room.receive, room.queues.accept, room.queues.info, room.queues.history):
        with pytest.raises(QueueUnknown) as caught:
            verb("orders")
        assert str(caught.value).startswith(f"there is no queue orders: the room {place} has no queues yet. Load")
    with pytest.raises(QueueUnknown, match="there is no queue to receive from: the room"):
        room.receive()


def test_in_a_room_without_queues_the_error_says_what_to_do(room: Postroom) -> None:
    with pytest.raises(QueueUnknown, match="postroom queue create NAME"):
        room.receive("q")


@pytest.mark.parametrize("names", [(), ("",), ("a", ""), ("a", "b", "c", "d", "e"), ("a\0b",), ("\ud800",), ("a\n",)])
def test_what_cannot_be_a_reference_is_refused(tree: Postroom, names: tuple[str, ...]) -> None:
    with pytest.raises(ArgumentInvalid):
        tree.receive(*names)


def test_a_send_needs_one_queue(tree: Postroom) -> None:
    with pytest.raises(QueueNotSingle, match="INP_0001") as caught:
        tree.send(("MASTER-QUEUE", "SUBQ-3"), "x")
    assert caught.value.status == "20"
    with pytest.raises(QueueNotSingle):
        tree.send(("MASTER-QUEUE", "SUBQ-1"), "x")


def test_names_that_a_program_fills_with_blanks_are_unspecified(url: str) -> None:
    with postroom.open(url) as room:
        room.queues.create("ORDERS")
        room.send(("ORDERS      ", "            ", "            ", "            "), "x")
        assert room.receive("ORDERS      ", "            ", "            ", "            ").message is not None
        with pytest.raises(ArgumentInvalid):
            room.receive("            ", "ORDERS")
        with pytest.raises(ArgumentInvalid):
            room.send("            ", "x")


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (("A",), ("A",)),
        (("A", "B"), ("A", "B")),
        (("A/B",), ("A", "B")),
        (("A/B", "C"), ("A", "B", "C")),
        (("A  ", "B "), ("A", "B")),
        (("A", "  ", " "), ("A",)),
    ],
)
def test_a_path_may_be_written_in_words_or_with_slashes(given: tuple[str, ...], names: tuple[str, ...]) -> None:
    assert names_of(given) == names


@pytest.mark.parametrize("given", [("/",), ("A//B",), ("A", "", "B"), ("A/B/C/D/E",), ("A", " ", "B")])
def test_a_path_has_one_to_four_names(given: tuple[str, ...]) -> None:
    with pytest.raises(ArgumentInvalid, match="a path of 1 to 4 names"):
        names_of(given)


def test_a_name_with_blanks_is_spoken_in_quotes() -> None:
    assert typed_names(("A", "two words")) == "A 'two words'"


def test_a_queue_of_a_machine_is_its_own(tmp_path: Path) -> None:
    with postroom.open(tmp_path / "room.db") as room:
        room.spheres.machine(["new", "done"], [("new", "done")]).start("entity")
        room.queues.create("open")
        room.send("open", "x")
        with pytest.raises(QueueOwned, match="a machine of states, which moves its messages"):
            room.send("new", "x")
        assert room.store.read(receivable) == ["open"]


def test_the_nearest_level_with_a_password_is_found_upwards(tree: Postroom) -> None:
    def keyed(path: str) -> str | None:
        return tree.store.read(lambda tx: keyed_level(tx, path))

    assert keyed("MASTER-QUEUE/SUBQ-1/QUE1A") == "MASTER-QUEUE/SUBQ-1/QUE1A"
    assert keyed("MASTER-QUEUE/SUBQ-3/QUE6") == "MASTER-QUEUE"
    assert keyed("OQ3") is None
