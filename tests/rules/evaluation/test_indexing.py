"""Indexes that are filled at load: with the right values, and without keeping anyone waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.rules.conftest import without_spark

import postroom
from postroom.errors import ProgramInvalid
from postroom.model.key import key_text
from postroom.room import Postroom
from postroom.rules.evaluation import indexing
from postroom.rules.evaluation.xquery_process import BoundedXQuery

QUEUES = "".join(f"create queue {name} kind basic mode persistent\n" for name in "abc")
#: From each to all before it, and again: its time grows with the square of their number.
LONG = f"<n>{'<m/>' * 5_000}</n>"
LOOPS = "//*/preceding::*/preceding::*/preceding::*/@v"


def rule(path: str) -> str:
    return f'create rule r for a if (qs:queue("b")[{path} = "1"]) then do enqueue <y/> into c\n'


@pytest.fixture
def load(room: Postroom, tmp_path: Path) -> Callable[[str], Any]:
    without_spark(room)

    def load(text: str) -> Any:
        file = tmp_path / "p.demaq"
        file.write_text(text)
        return room.load(file)

    return load


def state(room: Postroom) -> Any:
    entries = room.store.read(lambda tx: tx.slices.values([each.key for each in tx.slices.queue("b")]))
    names = [f"{each.what} {each.name}" for each in room.definitions.catalog()]
    doors = room.store.read(lambda tx: [(queue.name, queue.admission) for queue in tx.queues.all()])
    return entries, names, doors, room.store.read(lambda tx: (tx.definitions.version(), tx.slices.ids("index")))


def test_a_path_that_takes_too_long_refuses_its_rule_and_keeps_no_writer_waiting(
    room: Postroom, url: str, load: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "TRYOUT_SECONDS", 0.3)
    monkeypatch.setattr(indexing, "EVALUATION_SECONDS", 0.6)
    load(QUEUES)
    room.send_many("b", [f"<n v='{number % 3}'/>" for number in range(30)], format="xml")
    guilty = room.send("b", LONG, format="xml").key
    before = state(room)
    turns, over = 0, threading.Event()

    def others() -> None:
        nonlocal turns
        with postroom.open(url, actor="other") as other:
            while not over.is_set():
                other.send("c", "<z/>", format="xml")
                turns += 1
                time.sleep(0.02)

    beside = threading.Thread(target=others)
    beside.start()
    try:
        with pytest.raises(ProgramInvalid) as refused:
            load(QUEUES + rule(LOOPS))
    finally:
        over.set()
        beside.join()
    said = str(refused.value)
    assert "p.demaq:4:" in said
    assert f"rule r: it reads b by {LOOPS}" in said
    assert f"message {guilty}: evaluation exceeded the limit" in said
    assert "[PR0005]" in said
    assert turns > 5
    assert state(room) == before


def test_what_arrives_while_an_index_is_filled_is_in_it(
    room: Postroom, url: str, load: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of it more come than are caught up with, then a few, then none."""
    load(QUEUES)
    room.send_many("b", [f"<n v='{number % 3}'/>" for number in range(300)], format="xml")
    coming = [50, 3]
    real = BoundedXQuery.run

    with postroom.open(url, actor="other") as other:

        def run(self: BoundedXQuery, query: str, document: str, parameters: Any = None) -> str:
            if "<m>" in document and coming:
                other.send_many("b", ["<n v='1'/>"] * coming.pop(0), format="xml")
            return real(self, query, document, parameters)

        monkeypatch.setattr(BoundedXQuery, "run", run)
        load(QUEUES + rule("/n/@v"))
    assert not coming
    number = room.store.read(lambda tx: tx.slices.ids("index"))["b /n/@v"]
    found = room.store.read(lambda tx: tx.slices.indexed([(number, "1")]))[0]
    order = [message.key for message in room.queues.info("b")]
    assert [order.index(key_text(each.key)) + 1 for each in found] == [*range(2, 301, 3), *range(301, 354)]
    room.send("b", "<n v='1'/>", format="xml")
    assert len(room.store.read(lambda tx: tx.slices.indexed([(number, "1")]))[0]) == 154
