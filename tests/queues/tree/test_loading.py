"""Queue descriptions as a language of a room."""

from __future__ import annotations

from pathlib import Path

import pytest

import postroom
from postroom.errors import DescriptionInvalid, FileUnreadable
from postroom.queues.tree.loading import QueueLanguage

TREE = '01 INPUT-QUEUE (A) PASSWORD IS "SECRET"\n   02 SUB-QUEUE-1 (B)\n01 OUTPUT-QUEUE (C)\n99\n'


def test_several_files_are_read_as_one_description(tmp_path: Path) -> None:
    (tmp_path / "in.qdl").write_text("01 INPUT-QUEUE (A)\n99\n")
    (tmp_path / "out.qdl").write_text("01 OUTPUT-QUEUE (B)\n99\n")
    read = QueueLanguage().read([tmp_path / "in.qdl", tmp_path / "out.qdl"])
    assert read.count == 2
    assert [entry.position.file for entry in read.entries] == [str(tmp_path / "in.qdl"), str(tmp_path / "out.qdl")]


def test_every_rule_is_checked_when_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "bad.qdl").write_text("01 INPUT-QUEUE (A)\n03 SUB-QUEUE-2 (B)\n99\n")
    with pytest.raises(DescriptionInvalid, match=r"bad\.qdl:2"):
        QueueLanguage().read([tmp_path / "bad.qdl"])
    with pytest.raises(FileUnreadable):
        QueueLanguage().read([tmp_path / "none.qdl"])


def test_what_is_printed_has_the_suffix_of_the_language_and_an_empty_room_prints_nothing(tmp_path: Path) -> None:
    language = QueueLanguage()
    (tmp_path / "tree.qdl").write_text(TREE)
    with postroom.open(tmp_path / "room.db") as room:
        assert room.store.read(language.printed) == {}
        room.load(tmp_path / "tree.qdl")
        printed = room.store.read(language.printed)
    assert list(printed) == ["queues.qdl"]
    assert b"SECRET" not in printed["queues.qdl"]
    (tmp_path / "again.qdl").write_bytes(printed["queues.qdl"])
    assert language.read([tmp_path / "again.qdl"]).count == 3
