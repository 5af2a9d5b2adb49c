"""Rooms that every earlier version has made: opened, verified and worked on by the present one, on both stores."""

from __future__ import annotations

import gzip
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from tests.faults.here import evaluate_here
from tests.faults.upkeep_workload import write_here
from tests.golden.make import COMMITS, KEPT, file_of

import postroom
from postroom.engine import archiving
from postroom.room import Postroom
from postroom.store import schema_of
from postroom.store.migrations import MIGRATIONS
from postroom.store.postgres import store as postgres
from postroom.store.upkeep import portable

#: Since this one every line of the journal says all that a replay needs.
WHOLE = 7
QUICK = {("sqlite", 1), ("sqlite", 6), ("sqlite", 14), ("sqlite", 25), ("postgres", 1), ("postgres", 25)}
SCHEMAS = (*COMMITS, *KEPT)
#: They came together with a later one, so that no room ever ended with them.
AT_ONCE = (19, 20, 21, 26)


def on_sqlite(schema: int, tmp_path: Path) -> str:
    file = tmp_path / "room.db"
    file.write_bytes(gzip.decompress(file_of(schema).read_bytes()))
    return str(file)


def on_postgres(schema: int, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same rows in tables as that version made them."""
    monkeypatch.setattr(postgres, "MIGRATIONS", MIGRATIONS[:schema])
    postgres.PostgresStore(url, actor="golden").close()
    monkeypatch.undo()
    with psycopg.connect(url) as connection:
        portable.read(connection, Path(on_sqlite(schema, tmp_path)), lambda done, total: None)
    return url


def test_there_is_one_of_every_version() -> None:
    assert set(SCHEMAS) == set(range(1, len(MIGRATIONS))) - set(AT_ONCE)
    assert all(file_of(schema).is_file() for schema in SCHEMAS)


#: In every run the first and the last on PostgreSQL, and some on SQLite; all of them with the slow batteries.
CASES = [
    pytest.param(kind, schema, marks=() if (kind, schema) in QUICK else pytest.mark.slow)
    for kind in ("sqlite", "postgres")
    for schema in SCHEMAS
]


@pytest.mark.parametrize(("kind", "schema"), CASES)
def test_a_room_of_an_earlier_version_goes_on(
    kind: str, schema: int, tmp_path: Path, empty_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "sqlite":
        url = on_sqlite(schema, tmp_path)
    else:
        url = on_postgres(schema, tmp_path, empty_postgres_url, monkeypatch)
    assert schema_of(url) == (schema, len(MIGRATIONS))
    with postroom.open(url) as room:
        found = room.journal.verify()
        assert (found.differences, found.older > 0) == ((), schema < WHOLE)
        assert [each for each in room.operations.diagnose(deep=True) if each.level == "wrong"] == []
        works(room, schema, tmp_path)
        assert room.journal.verify().differences == ()
        room.backup(tmp_path / "copy")
        monkeypatch.setattr(archiving, "spark_writer", lambda spark: write_here)
        room.journal.archive(timedelta(0), tmp_path / "old")
        assert room.journal.verify(archives=True).differences == ()
    assert schema_of(url) == (len(MIGRATIONS), len(MIGRATIONS))


def works(room: Postroom, schema: int, folder: Path) -> None:
    """Something of every capability that was there."""
    old = {queue.queue: queue.unprocessed for queue in room.queues.accept().queues}
    first = room.receive("plain").message
    assert first is not None
    assert first.body == "2"
    assert [event.verb for event in room.trace(first.key)] == ["put", "take"]
    again = room.send("plain", {"n": 4}, properties={"who": "Ann"}, idempotency_key="once")
    assert room.queues.accept("plain").queues[0].unprocessed == old["plain"] - 1, "its receipt is known"
    assert room.show(again.key).value == {"n": 4}
    room.queues.enable("CLAIMS", password="CLAIMS")
    received = room.receive("CLAIMS").message
    assert received is not None
    assert received.body == "roof"
    room.queues.create("new").send("x", cause=first.key)
    if schema >= 2:
        engine = evaluate_here(room)
        engine.run_until_idle()
        assert room.queues.accept("outgoing").queues[0].unprocessed == 2
        assert room.engine.sweep() >= 0
    if schema >= 3:
        assert room.queues.accept("Out").queues[0].unprocessed == 2
        room.publish("In", {"n": 3})
    if schema >= 4:
        jane = room.station("Jane", "pw")
        (key,) = jane.get()
        jane.modify(key, Text="read")
        assert room.journal.locate(key) == "Jane"
        assert len(room.trace(key)) >= 4
    if schema >= 5:
        assert len(room.stations.procedures()) == 1
    if schema >= 6:
        assert {each.id: each.state for each in room.spheres.all()} == {"good": "COMMITTED", "bad": "ABORTED"}
        room.spheres.machine(["NEW", "PAID"], [("NEW", "PAID")]).move("order", "PAID")
        room.engine.set_retention("spheres", timedelta(0))
        assert room.engine.sweep() == 2
    if schema >= 7:
        second = room.queues.info("plain").messages
        assert room.trace([*second][-1].key, causes=True).messages
    works_on(room, schema)


def works_on(room: Postroom, schema: int) -> None:
    """With what is in hand, with rights, partners, selectors and sums."""
    if schema >= 14:
        again, first = (room.receive("leased", lease=60).message for _ in range(2))
        assert again is not None
        assert first is not None
        assert again.body == "in hand", "whoever had it has ended without a word"
        assert (first.body, first.attempts) == ("next", 1)
        again.done()
        first.release()
        assert [message.body for message in room.queues.info("leased")] == ["next"]
    if schema >= 16:
        assert room.access.why_not("Ann", "send", "leased") is None
        assert room.access.why_not("Ann", "receive", "leased") is not None
    if schema >= 17:
        assert [gateway["gateway"] for gateway in room.gateways.all()] == ["partner"]
    if schema >= 22:
        other = room.receive("chosen", where="region = 'US'").message
        assert other is not None
        assert other.body == "US"
        room.publish("Sales", {"shop": "north", "n": 4})
        evaluate_here(room).run_until_idle()
        assert [message.value["n"] for message in room.queues.info("Sums")] == [3, 7]
