"""The store: weak settings, damaged messages, a journal with gaps, counts that are off, other schemas."""

from __future__ import annotations

import apsw
import psycopg
import pytest

import postroom
from postroom.diagnosis.finding import Severity
from postroom.room import Postroom
from postroom.store.sqlite.store import SqliteStore

from .conftest import Told, fine


def change(room: Postroom, statement: str, *values: object) -> None:
    """Behind the room's back."""
    assert room.store.transact("send", lambda tx: tx.session.run(statement, values)) > 0


@pytest.mark.parametrize("deep", [False, True])
def test_a_sound_room_is_fine(room: Postroom, told: Told, deep: bool) -> None:
    room.queues.create("q").send("x")
    room.queues.create("kept", keep_processed=False).send("y")
    room.receive("kept")
    room.receive("q")
    room.send("q", "z")
    assert fine(told(room, "store", deep=deep))
    said = [each.what for each in told(room, "messages", deep=deep)]
    assert said == ["2 message(s) read, " + ("all that there are" if deep else "the newest")]


def test_a_damaged_message_is_found_and_later_told_as_set_aside(room: Postroom, told: Told) -> None:
    room.queues.create("q").send("pay 100")
    room.send("q", "pay 200")
    change(room, "UPDATE messages SET body = 'pay 900' WHERE body = ?", "pay 100")
    (found,) = told(room, "messages")
    assert (found.level, found.where) == (Severity.WRONG, "q")
    assert found.what == "message 00001.00001 does not match its hash"
    with pytest.raises(postroom.errors.MessageCorrupt):
        room.receive("q")
    aside, rest = told(room, "messages")
    assert (aside.level, aside.do) == (Severity.WARNING, "postroom trace 00001.00001")
    assert rest.what == "1 message(s) read, the newest"


def test_old_messages_are_read_if_it_looks_deep(room: Postroom, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom.diagnosis.storage.SAMPLE_MESSAGES", 5)
    room.queues.create("q")
    room.send_many("q", [str(number) for number in range(20)])
    change(room, "UPDATE messages SET properties = '{\"x\":1}' WHERE body = ?", "3")
    (sampled,) = told(room, "messages")
    assert sampled.what == "5 message(s) read, the newest"
    assert told(room, "messages", deep=True)[0].level is Severity.WRONG


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("where", ["verb = 'put'", "verb = 'take'"])
def test_a_gap_in_the_journal(room: Postroom, told: Told, where: str, deep: bool) -> None:
    room.queues.create("q", keep_processed=False).send("x")
    room.receive("q")
    change(room, f"DELETE FROM journal WHERE message = 100001 AND {where}")
    (found,) = told(room, "journal", deep=deep)
    assert (found.level, found.do[:26]) == (Severity.WRONG, "postroom trace 00001.00001")


def test_a_line_that_no_longer_says_which_message_it_is_about(room: Postroom, told: Told) -> None:
    room.queues.create("q").send("x")
    room.receive("q")
    change(room, "UPDATE journal SET message = NULL WHERE verb = 'take'")
    found = told(room, "journal", deep=True)
    assert "entry 3 of the journal is about no message" in [each.what for each in found]


def test_a_missing_entry_that_is_about_no_message(room: Postroom, told: Told) -> None:
    room.queues.create("q", password="pw").send("x")
    room.queues.disable("q", password="pw")
    change(room, "DELETE FROM journal WHERE verb = 'hold'")
    assert fine(told(room, "journal", "holds"))
    found = told(room, "journal", "holds", deep=True)
    assert {each.level for each in found} == {Severity.WRONG}
    assert any("by the journal" in each.what and each.what.startswith("queue 1: ") for each in found)


def test_counts_that_are_off(room: Postroom, told: Told) -> None:
    room.queues.create("q").send("x")
    room.receive("q")
    counts = "queues" if room.store.session.counts_arrivals else "tallies"
    change(room, f"UPDATE {counts} SET processed = 3 WHERE {'id' if counts == 'queues' else 'queue'} = ?", 1)
    assert fine(told(room, "counts"))
    (found,) = told(room, "counts", deep=True)
    seen = 3 if counts == "queues" else 4  # those behind the tally are counted besides
    assert (found.where, found.what) == ("q", f"it counts {seen} processed message(s), and 1 are there")


def test_a_damaged_file(sqlite_url: str) -> None:
    with postroom.open(sqlite_url) as room:
        room.queues.create("q").send("x")
    with_wrong_index = apsw.Connection(sqlite_url)
    with_wrong_index.execute("PRAGMA writable_schema = ON")
    with_wrong_index.execute(
        "UPDATE sqlite_master SET sql = 'CREATE INDEX queues_path ON queues (kind)' WHERE name = 'queues_path'"
    )
    with_wrong_index.close()
    with postroom.open(sqlite_url) as room:
        assert fine([each for each in room.operations.diagnose() if each.check == "files"])
        found = [each for each in room.operations.diagnose(deep=True) if each.check == "files"]
    assert {each.level for each in found} == {Severity.WRONG}
    assert "queues_path" in found[0].what


def test_a_connection_that_does_not_sync(sqlite_url: str, told: Told) -> None:
    with postroom.open(sqlite_url) as room:
        assert isinstance(room.store, SqliteStore)
        room.store.session.connection.execute("PRAGMA synchronous = NORMAL")
        (found,) = told(room, "store")
    assert found.level is Severity.WRONG
    assert found.what.startswith("synchronous is 1: what was confirmed may be lost")


def test_a_server_that_does_not_write_whole_pages(postgres_url: str, postgres_server: str, told: Told) -> None:
    def set_to(statement: str) -> None:
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute(statement)
            connection.execute("SELECT pg_reload_conf()")

    with postroom.open(postgres_url) as room:
        assert "password" not in room.operations.diagnose()[5].where
        try:
            set_to("ALTER SYSTEM SET full_page_writes = off")
            for _ in range(100):
                found = [each for each in room.operations.diagnose() if each.check == "store"]
                if found[0].level is Severity.WRONG:
                    break
            assert found[0].what.startswith("full_page_writes is off")
            assert found[0].do == "set full_page_writes = on in postgresql.conf, and: pg_ctl reload"
        finally:
            set_to("ALTER SYSTEM RESET full_page_writes")
