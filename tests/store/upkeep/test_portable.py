"""A room on PostgreSQL as a SQLite file, and back, row by row."""

from __future__ import annotations

from pathlib import Path

import psycopg
from tests.conftest import Urls

import postroom
from postroom.model.key import key_number
from postroom.store.proof.verification import COUNTS
from postroom.store.upkeep import portable


def test_all_rows_go_there_and_back(urls: Urls, tmp_path: Path) -> None:
    source, target, file = urls(), urls(), tmp_path / "copy.db"
    done: list[tuple[int, int]] = []
    with postroom.open(source) as room:
        room.queues.create("q")
        room.send_many("q", ["a", "é"])
        room.receive("q")
        told = room.journal.verify()
        numbers = {key_number(message.key): 2 for message in room.queues.info("q")}
        queues = room.store.read(lambda tx: {row[0]: row[1:] for row in tx.session.rows(COUNTS)})
    assert queues == {1: (2, 1, 1)}
    with psycopg.connect(source) as connection:
        counted = portable.Counted({**numbers, min(numbers) - 1: 1}, queues)
        portable.write(connection, counted, file, lambda some, of: done.append((some, of)))
    assert done[-1][0] == done[-1][1]
    with postroom.open(file) as copy:
        assert (copy.journal.verify().messages, copy.journal.verify().differences) == (told.messages, ())
    postroom.open(target).close()
    with psycopg.connect(target) as connection:
        portable.read(connection, file, lambda some, of: None)
    with postroom.open(target) as back:
        assert back.journal.verify().differences == ()
        assert [message.body for message in back.queues.info("q")] == ["é"]
        assert back.send("q", "next").key > "00001.00002"
