"""Files of several languages as one load."""

from __future__ import annotations

from pathlib import Path

import pytest

from postroom.errors import ArgumentInvalid, FileUnreadable
from postroom.room import loading


def test_files_are_put_together_by_their_language_in_the_order_of_loading(tmp_path: Path) -> None:
    (tmp_path / "g.flow").write_text("domain d space S : [n: int]")
    (tmp_path / "t.qdl").write_text("01 INPUT-QUEUE (A)\n99\n")
    (tmp_path / "h.flow").write_text("domain e")
    sources = loading.read([tmp_path / "g.flow", str(tmp_path / "t.qdl"), tmp_path / "h.flow"])
    assert sources.files == ("g.flow", "t.qdl", "h.flow")
    assert [part.count for part in sources.parts] == [1, 3]
    assert (sources.count, sources.alone) == (4, False)
    sources.check(None)
    assert loading.read([tmp_path / "t.qdl"]).alone


def test_at_least_one_file_is_given() -> None:
    for call in (loading.read, loading.documents):
        with pytest.raises(ArgumentInvalid, match="give at least one file"):
            call([])


def test_documents_are_known_by_their_names_and_two_of_one_name_are_two(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "a.xml").write_text("<a/>")
    (tmp_path / "other" / "a.xml").write_text("<b/>")
    found = loading.documents([tmp_path / "a.xml", tmp_path / "other" / "a.xml"])
    assert list(found.values()) == ["<a/>", "<b/>"]
    assert list(found) == ["a.xml", str(tmp_path / "other" / "a.xml")]
    with pytest.raises(FileUnreadable):
        loading.documents([tmp_path / "none.xml"])
