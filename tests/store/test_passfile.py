"""Passwords in the file where PostgreSQL's own programs look."""

from __future__ import annotations

from pathlib import Path

import pytest

from postroom.errors import ArgumentInvalid
from postroom.store import passfile
from postroom.store.urls import parted


def test_a_password_is_entered_once_in_front_and_for_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "pgpass"
    monkeypatch.setenv("PGPASSFILE", str(file))
    file.write_text("old:1:db:ann:secret\n")
    file.chmod(0o600)
    for _ in range(2):
        assert passfile.add(parted("postgresql://ann:a%3Ab@host:5/db")) == file
    assert file.read_text() == "host:5:db:ann:a\\:b\nold:1:db:ann:secret\n"
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_file_that_others_can_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "pgpass"
    monkeypatch.setenv("PGPASSFILE", str(file))
    file.touch(0o644)
    file.chmod(0o644)
    with pytest.raises(ArgumentInvalid, match="others can read"):
        passfile.add(parted("postgresql://ann:pw@host/db"))
    assert file.read_text() == ""
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none" / "pgpass"))
    with pytest.raises(ArgumentInvalid):
        passfile.add(parted("postgresql://ann:pw@host/db"))
