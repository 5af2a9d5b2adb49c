"""Keeping a room small and safe, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults.upkeep_workload import write_here

from postroom.engine import archiving

from ...conftest import Run


def test_retentions_are_set_listed_and_taken_back(run: Run) -> None:
    run("queue", "create", "q")
    assert run("retention", "set", "receipts", "7d").out == "receipts are kept 1w\n"
    assert run("retention", "set", "spheres", "90m", "--json").json == {
        "status": "00",
        "kind": "spheres",
        "age": "90m",
    }
    assert run("retention", "list", "--json").json["retentions"]["receipts"] == "1w"
    assert run("retention", "set", "receipts", "forever").out == "receipts are kept for ever\n"
    assert "receipts     for ever" in run("retention", "list").out
    for words in (("cats", "3d"), ("spheres", "soon"), ("spheres", "99999999999999999999d")):
        assert run("retention", "set", *words).err.startswith("postroom: argument-invalid: ")


def test_a_sweep_says_what_it_would_remove(run: Run) -> None:
    run("queue", "create", "q")
    run("send", "q", "--body", "x", "--idempotency-key", "once")
    run("retention", "set", "receipts", "0s")
    assert run("sweep", "--dry-run").out == "0 message(s) would be removed\n1 of receipts would be removed\n"
    assert run("sweep", "--dry-run", "--json").json == {
        "status": "00",
        "would_remove": 1,
        "kinds": {"messages": 0, "receipts": 1},
    }
    assert run("sweep").out == "0 message(s) removed\n1 of receipts removed\n"
    assert run("sweep", "--json").json == {"status": "00", "removed_count": 0, "kinds": {"messages": 0, "receipts": 0}}


def test_archives_are_made_listed_and_moved(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archiving, "spark_writer", lambda spark: write_here)
    run("queue", "create", "q")
    key = run("send", "q", "--body", "x").out.strip()
    assert run("archive").err == "nothing is archived\n"
    assert run("archive", "--before", "1d", "old").err == "no entry is that old\n"
    made = run("archive", "--before", "0s", "old", "--json").json["archives"]
    assert [(each["first"], each["last"], each["lines"]) for each in made] == [(1, 2, 2)]
    assert f"{tmp_path}/old/journal-000000000001-000000000002" in run("archive").out
    assert "put" in run("trace", key).out
    assert run("verify", "--archives", "--json").json["archived"] == 2
    Path("old").rename("new")
    assert run("trace", key).err.startswith("postroom: archive-missing: ")
    assert run("locate", key).out == "q\n"
    assert str(tmp_path / "new") in run("archive", "--moved", "new").out
    assert "put" in run("trace", key).out
    for words in (("--before", "0s"), ("--moved",), ("--before", "0s", "--moved", "x"), ("--before", "then", "x")):
        assert run("archive", *words).err.startswith("postroom: argument-invalid: ")


def test_a_backup_is_written_and_restored(run: Run, tmp_path: Path) -> None:
    run("queue", "create", "q")
    run("send", "q", "--body", "x")
    assert run("backup", "b.db").out == f"{tmp_path}/b.db: 2 journal entries, 1 message(s), verified\n"
    assert run("backup", "b.db").err.startswith("postroom: backup-exists: ")
    assert run("backup", "b.db", "--replace", "--json").json["message_count"] == 1
    assert run("restore", "b.db").err.startswith("postroom: room-in-use: ")
    assert run("restore", "b.db", "--room", "r.db").out.startswith(f"{tmp_path}/r.db: 3 journal entries")
    assert run("restore", "b.db", "--room", "r.db", "--replace", "--json").json["lines"] == 3
    assert run("receive", "q", "--room", "r.db").out == "x\n"
    assert run("restore", "nothing.db", "--room", "n.db").err.startswith("postroom: argument-invalid: ")
    assert not Path("n.db").exists()


def test_no_room_is_made_for_a_backup_that_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "junk.db").write_bytes(b"no room " * 1000)
    refused = run("restore", "junk.db", "--room", "new.db")
    assert refused.code == 1
    assert refused.err.startswith("postroom: backup-invalid: ")
    assert [file.name for file in tmp_path.iterdir() if file.name != "junk.db"] == []
    assert "no/such does not exist" in run("restore", "junk.db", "--room", "no/such/new.db").err
    run("queue", "create", "q")
    before = sorted(file.name for file in tmp_path.iterdir())
    assert run("restore", "junk.db", "--replace").err.startswith("postroom: backup-invalid: ")
    assert sorted(file.name for file in tmp_path.iterdir()) == before, "a room that was there stays"
    assert "q" in run("count").out


def test_an_empty_database_stays_empty_if_the_backup_is_refused(
    run: Run, tmp_path: Path, empty_postgres_url: str
) -> None:
    (tmp_path / "junk.db").write_bytes(b"no room " * 1000)
    assert run("restore", "junk.db", "--room", empty_postgres_url).err.startswith("postroom: backup-invalid: ")
    assert run("count", "--room", empty_postgres_url).err.startswith("postroom: room-missing: ")
    run("queue", "create", "q")
    run("send", "q", "--body", "x")
    run("backup", "b.db")
    restored = run("restore", "b.db", "--room", empty_postgres_url)
    assert "1 message(s), verified" in restored.out
    assert restored.err.startswith("made a new room: postgresql://")
    assert run("queue", "create", "r", "--room", empty_postgres_url).err == "", "the room is there"
    assert run("receive", "q", "--room", empty_postgres_url).out == "x\n"
