"""An archive on disk is read as it was written, or it is told that it was not."""

from __future__ import annotations

from pathlib import Path

import pytest

from postroom.errors import ArchiveDamaged, ArchiveMissing
from postroom.store.kernel.archive_folder import (
    MANIFEST,
    Digest,
    Manifest,
    Part,
    arrow_table,
    file_digest,
    read_manifest,
    rows_of,
)
from postroom.store.kernel.columns import JOURNAL

ROWS = [(seq, 1, "put", seq, None, None, 1, None, "me", b"digest") for seq in (1, 2, 3)]


def test_rows_come_back_as_they_were_in_the_order_of_their_numbers() -> None:
    assert rows_of(arrow_table(JOURNAL, ROWS[::-1]), JOURNAL) == ROWS
    assert rows_of(arrow_table(JOURNAL, []), JOURNAL) == []


def test_a_digest_does_not_depend_on_how_many_come_at_a_time() -> None:
    whole, parts, other = Digest(), Digest(), Digest()
    whole.add(ROWS)
    parts.add(ROWS[:1])
    parts.add([])
    parts.add(ROWS[1:])
    other.add(ROWS[1:])
    assert whole.text() == parts.text() != other.text()


def test_a_manifest_is_read_again_and_one_that_is_none_is_told(tmp_path: Path) -> None:
    part = Part("a.parquet", "lines", 3, 1, 3, 1, 3, 10, "sha")
    manifest = Manifest(1, 3, 1, 3, 0, "digest", JOURNAL, (part,))
    with pytest.raises(ArchiveMissing):
        read_manifest(tmp_path)
    (tmp_path / MANIFEST).write_text(manifest.as_json())
    assert read_manifest(tmp_path) == manifest
    (tmp_path / MANIFEST).write_text(manifest.as_json().replace('"format": 1', '"format": 9'))
    with pytest.raises(ArchiveDamaged, match="newer version"):
        read_manifest(tmp_path)
    (tmp_path / MANIFEST).write_text("{}")
    with pytest.raises(ArchiveDamaged, match="cannot be read"):
        read_manifest(tmp_path)
    assert len(file_digest(tmp_path / MANIFEST)) == 64
