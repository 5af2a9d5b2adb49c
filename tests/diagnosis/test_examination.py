"""The examination of a room as a whole, and of rooms that should not be opened."""

from __future__ import annotations

from pathlib import Path

import apsw
import psycopg

import postroom
from postroom.diagnosis.examination import unopened
from postroom.diagnosis.finding import Severity
from postroom.room import Postroom
from postroom.store.migrations import MIGRATIONS


def test_a_check_that_cannot_look_is_a_finding_and_stops_no_other(room: Postroom) -> None:
    room.store.transact("send", lambda tx: tx.session.run("DROP TABLE outbox"))
    found = room.operations.diagnose()
    (outbox,) = [each for each in found if each.check == "outbox"]
    assert (outbox.level, outbox.what[:26]) == (Severity.WRONG, "it could not be looked at:")
    assert next(each for each in found if each.check == "parked").level is Severity.OK


def test_no_room(tmp_path: Path, empty_postgres_url: str) -> None:
    for url in (str(tmp_path / "none.db"), empty_postgres_url):
        for named, level in ((True, Severity.WRONG), (False, Severity.NOTE)):
            found = unopened(url, named=named)
            assert found is not None
            assert (found.level, found.what) == (level, "there is no room here")
    assert not (tmp_path / "none.db").exists()


def schema(url: str, number: int) -> None:
    if url.startswith("postgresql"):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DELETE FROM postroom_schema WHERE version > %s", (number,))
            connection.execute("INSERT INTO postroom_schema VALUES (%s) ON CONFLICT DO NOTHING", (number,))
    else:
        file = apsw.Connection(url)
        file.execute(f"PRAGMA user_version = {number}")
        file.close()


def test_an_older_room_is_not_upgraded_by_looking(url: str) -> None:
    postroom.open(url).close()
    assert unopened(url, named=True) is None
    schema(url, 3)
    for _ in range(2):
        found = unopened(url, named=True)
        assert found is not None
        assert found.level is Severity.WARNING
        assert found.what.startswith(f"schema 3 of {len(MIGRATIONS)}: ")


def test_a_newer_room(url: str) -> None:
    postroom.open(url).close()
    schema(url, 999)
    found = unopened(url, named=True)
    assert found is not None
    assert (found.level, found.do) == (Severity.WRONG, "pip install --upgrade postroom")


def test_a_file_of_another_kind(tmp_path: Path) -> None:
    file = tmp_path / "text.db"
    file.write_text("no database" * 100)
    found = unopened(str(file), named=True)
    assert found is not None
    assert (found.level, found.check) == (Severity.WRONG, "store")
    assert "not a SQLite database" in found.what
    strange = unopened("postgresql://127.0.0.1:1/none?connect_timeout=1", named=True)
    assert strange is not None
    assert (strange.level, strange.where) == (Severity.WRONG, "postgresql://127.0.0.1:1/none")
