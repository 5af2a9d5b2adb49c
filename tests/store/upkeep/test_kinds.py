"""What grows for ever goes when an operator says so: what nobody needs, and nothing else; the journal agrees."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from time import monotonic, sleep

import pytest
from tests.faults.upkeep_workload import write_here

import postroom
from postroom.diagnosis import storage
from postroom.engine import archiving
from postroom.errors import ArgumentInvalid, SphereUnknown
from postroom.room import Postroom
from postroom.spheres.heartbeat import Heart, beat, still
from postroom.store.kernel.transaction import Transaction

HOUR = 3_600_000_000
FLOW = "domain trade\nspace In : [n: int]\nspace Out : [n: int]\narc all : In -> Out merge\n"
FORM = "type NOTE\n| No: ____ KEY: ___ |\nfield No int required\nfield KEY key automatic\n"


class Time:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000_000

    def __call__(self) -> int:
        self.now += 1
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def room(url: str, time: Time) -> Iterator[Postroom]:
    with postroom.open(url, clock=time) as opened:
        opened.queues.create("q")
        yield opened


def sizes(room: Postroom, *tables: str) -> dict[str, int]:
    def work(tx: Transaction) -> dict[str, int]:
        return {name: tx.session.rows(f"SELECT count(*) FROM {name}")[0][0] for name in tables}

    return room.store.read(work)


def test_nothing_goes_unasked(room: Postroom, time: Time) -> None:
    room.send("q", "x", idempotency_key="once")
    with room.sphere("s") as sphere:
        sphere.send("q", "book", compensation="cancel")
    time.now += 1_000_000 * HOUR
    before = sizes(room, "receipts", "spheres", "journal")
    assert room.engine.retentions() == dict.fromkeys(("spheres", "heartbeats", "visits", "receipts", "meta-events"))
    assert (room.engine.sweepable(), room.engine.sweep()) == ({"messages": 0}, 0)
    assert sizes(room, "receipts", "spheres", "journal") == before


def test_a_retention_is_kept_in_the_store_and_told_in_the_journal(room: Postroom) -> None:
    room.engine.set_retention("spheres", timedelta(days=30))
    room.engine.set_retention("receipts", timedelta(days=7))
    room.engine.set_retention("receipts", None)
    with postroom.open(room.url) as other:
        assert other.engine.retentions()["spheres"] == timedelta(days=30)
        assert other.engine.retentions()["receipts"] is None
    assert [event.verb for event in room.journal.last(3)] == ["retention"] * 3
    assert room.journal.verify().differences == ()
    room.store.transact("retention", lambda tx: tx.session.run("DELETE FROM retentions"))
    assert [each.what for each in room.journal.verify().differences] == ["retention of spheres"]


@pytest.mark.parametrize(
    ("kind", "age", "why"),
    [
        ("cats", timedelta(1), "one of spheres, heartbeats, visits, receipts, meta-events"),
        ("spheres", timedelta(-1), "from 0 to"),
        ("spheres", timedelta(days=40_000), "from 0 to"),
    ],
)
def test_what_is_no_retention_changes_nothing(room: Postroom, kind: str, age: timedelta, why: str) -> None:
    with pytest.raises(ArgumentInvalid, match=why):
        room.engine.set_retention(kind, age)
    assert set(room.engine.retentions().values()) == {None}


def test_a_receipt_that_is_gone_recognises_nothing_and_streams_keep_theirs(room: Postroom, time: Time) -> None:
    first = room.send("q", "x", idempotency_key="old")
    room.store.transact("send", lambda tx: tx.receipts.add("spark:stream:q:1", 1, b"spark"))
    time.now += 2 * HOUR
    young = room.send("q", "x", idempotency_key="young")
    room.engine.set_retention("receipts", timedelta(hours=1))
    assert room.engine.sweepable() == {"messages": 0, "receipts": 1}
    assert (room.engine.sweep(), room.engine.sweep()) == (1, 0)
    assert room.send("q", "x", idempotency_key="young").key == young.key
    assert room.send("q", "x", idempotency_key="old").key != first.key
    assert room.store.read(lambda tx: tx.receipts.find("spark:stream:q:1", b"spark")) == 1
    assert room.journal.verify().differences == ()


def test_ended_spheres_go_with_all_that_they_left(room: Postroom, time: Time, tmp_path: Path) -> None:
    for name in ("one", "two"):
        with room.sphere(name) as sphere:
            sphere.send("q", "book", compensation="cancel")
    bad = room.sphere("three")
    bad.send("q", "book", compensation="cancel")
    bad.abort()
    time.now += 2 * HOUR
    with room.sphere("young") as sphere:
        sphere.send("q", "book")
    room.engine.set_retention("spheres", timedelta(hours=1))
    assert room.engine.sweepable()["spheres"] == 3
    assert room.engine.sweep() == 3
    assert [each.id for each in room.spheres.all()] == ["young"]
    with pytest.raises(SphereUnknown):
        room.spheres.show("one")
    assert sizes(room, "spheres", "tokens", "sends") == {"spheres": 1, "tokens": 1, "sends": 1}
    assert room.queues.accept("q").queues[0].unprocessed == 3, "what was sent stays"
    assert room.journal.verify().differences == ()
    with room.sphere("one") as again:  # its id is free again
        again.send("q", "book")
    archiving.archive(room.store, time.now, tmp_path / "old", write_here)
    time.now += 2 * HOUR
    assert room.engine.sweep() == 2, "also those whose lines are archived"
    assert room.journal.verify(archives=True).differences == ()


def test_what_is_not_settled_stays(room: Postroom, time: Time) -> None:
    """A sphere in doubt, one that has not ended, and whatever ended since that began."""
    with room.sphere("doubtful") as sphere:
        sphere.send("q", "book")
    room.store.transact("settle", lambda tx: tx.spheres.add_branches("doubtful", [("branch", "a database")]))
    time.now += HOUR
    open = room.sphere("open")
    open.send("q", "book", compensation="cancel")
    with room.sphere("later") as sphere:
        sphere.send("q", "book")
    time.now += 5 * HOUR
    room.engine.set_retention("spheres", timedelta(hours=1))
    assert room.engine.sweep() == 0
    open.abort()
    assert room.engine.sweep() == 1, "later; open has ended only now"
    room.store.transact("settle", lambda tx: tx.session.run("DELETE FROM branches"))
    assert room.engine.sweep() == 1
    assert [each.id for each in room.spheres.all()] == ["open"]
    assert room.journal.verify().differences == ()


def beat_by_a_line(tx: Transaction, hearts: list[Heart]) -> None:
    """As earlier versions did: the message of a heart moved to the end of its queue."""
    known = [heart.beat for heart in hearts]
    beat(tx, hearts)
    alive = tx.queues.named("ALIVE.Q")
    assert alive is not None
    for heart, key in zip(hearts, known, strict=True):
        stored = None if key is None or key != heart.beat else tx.messages.find(key)
        if stored is not None:
            tx.messages.move(stored, alive, alive, verb="beat")


def test_old_heartbeats_give_way_to_one_line(room: Postroom, time: Time, tmp_path: Path) -> None:
    hearts = [Heart() for _ in range(3)]
    for _ in range(50):
        time.now += HOUR // 60
        room.store.transact("heartbeat", lambda tx: beat_by_a_line(tx, hearts))
    gone = hearts.pop()
    assert gone.beat is not None
    room.store.transact("heartbeat", lambda tx: still(tx, [gone.beat or 0]))
    with postroom.open(room.url, clock=time) as other:
        born = Heart()
        other.store.transact("heartbeat", lambda tx: beat_by_a_line(tx, [born]))
    hearts.append(born)
    time.now += HOUR // 2
    for _ in range(10):
        time.now += HOUR // 60
        room.store.transact("heartbeat", lambda tx: beat_by_a_line(tx, hearts))
    before = sizes(room, "journal")["journal"]
    room.engine.set_retention("heartbeats", timedelta(minutes=15))
    expected = room.engine.sweepable()["heartbeats"]
    assert expected == room.engine.sweep() > 140
    assert sizes(room, "journal")["journal"] == before - expected + 2, "a retention, and what was removed"
    assert room.journal.verify().differences == ()
    for _ in range(2):
        room.store.transact("heartbeat", lambda tx: beat_by_a_line(tx, hearts))
        assert room.journal.verify().differences == ()
    assert [
        each for each in room.operations.diagnose(deep=True) if each.check == "journal" and each.level != "ok"
    ] == []
    time.now += HOUR
    room.store.transact("heartbeat", lambda tx: beat_by_a_line(tx, hearts[:1]))
    assert room.engine.sweepable()["heartbeats"] == room.engine.sweep() > 0
    assert sizes(room, "messages")["messages"] == 1, "whoever owns nothing and is silent is forgotten"
    room.store.transact("heartbeat", lambda tx: beat_by_a_line(tx, hearts))
    assert room.journal.verify().differences == ()
    archiving.archive(room.store, time.now, tmp_path / "old", write_here)
    time.now += HOUR
    room.store.transact("heartbeat", lambda tx: beat_by_a_line(tx, hearts[:2]))
    time.now += HOUR
    room.store.transact("heartbeat", lambda tx: beat_by_a_line(tx, hearts[:2]))
    assert room.engine.sweep() > 0
    assert room.journal.verify(archives=True).differences == ()


def test_meta_events_that_nobody_reads_go(room: Postroom, time: Time, tmp_path: Path) -> None:
    file = tmp_path / "g.flow"
    file.write_text(FLOW)
    room.load(file)
    room.client("desk").subscribe("In")
    meta = next(queue.name for queue in room.store.read(lambda tx: tx.queues.all()) if queue.kind == "meta")
    old = room.queues.accept(meta).queues[0].unprocessed
    assert old > 0
    time.now += 2 * HOUR
    room.client("other").subscribe("In")
    young = room.queues.accept(meta).queues[0].unprocessed - old
    room.engine.set_retention("meta-events", timedelta(hours=1))
    assert room.engine.sweepable()["meta-events"] == old
    assert (room.engine.sweep(), room.queues.accept(meta).queues[0].unprocessed) == (old, young)
    assert room.journal.verify().differences == ()


def test_visits_go_when_no_store_can_ask_for_them(room: Postroom, time: Time, tmp_path: Path) -> None:
    form = tmp_path / "note.form"
    form.write_text(FORM)
    room.load(form)
    node = str(tmp_path / "north.db")
    room.stations.add_node("north", node)
    room.stations.add("ann", "pw")
    room.stations.add("bob", "pw", "north")
    ann, bob = room.stations._station("ann"), room.stations._station("bob")
    keys = [ann.create("NOTE", No=number) for number in range(3)]
    ann.ship(keys, "bob")
    bob.get()
    bob.ship(keys[:2], "ann")
    ann.get()
    visits = {"control": sizes(room, "visits")["visits"]}
    with postroom.open(node) as north:
        visits["north"] = sizes(north, "visits")["visits"]
        assert visits == {"control": 2, "north": 3}
        north.engine.set_retention("visits", timedelta(0))
        assert north.engine.sweep() == 0, "the control node sees to it"
    time.now += 2 * HOUR
    room.engine.set_retention("visits", timedelta(0))
    room._parts.network.close()
    moved = tmp_path / "away.db"
    Path(node).rename(moved)
    assert room.engine.sweep() == 0, "a node that does not answer may ask"
    moved.rename(node)
    assert room.engine.sweepable()["visits"] == room.engine.sweep() == 2
    with postroom.open(node) as north:
        assert sizes(north, "visits") == {"visits": 1}, "of the message that is there"
    ann.ship(keys[:2], "bob")
    bob.get()
    assert {room.journal.locate(key) for key in keys} == {"bob"}
    assert room.journal.verify().differences == ()


def test_a_running_engine_removes_it_by_itself(url: str) -> None:
    with postroom.open(url) as room:
        room.queues.create("q").send("x", idempotency_key="old")
        room.engine.set_retention("receipts", timedelta(0))
        thread = threading.Thread(target=room.run)
        thread.start()
        try:
            end = monotonic() + 20
            while sizes(room, "receipts")["receipts"] and monotonic() < end:
                sleep(0.05)
            assert sizes(room, "receipts")["receipts"] == 0
        finally:
            room.stop()
            thread.join()
        assert room.journal.verify().differences == ()


def test_the_doctor_names_what_has_grown(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "GROWN_ROWS", 2)
    for number in range(3):
        room.send("q", "x", idempotency_key=f"{number}")
    found = {each.what: each.do for each in room.operations.diagnose() if each.check == "growth"}
    assert found == {
        "3 receipts, and they are kept for ever": "postroom retention set receipts 90d",
        "the journal has 4 entries": "postroom archive --before 90d FOLDER",
    }
    room.engine.set_retention("receipts", timedelta(days=1))
    assert [each.what for each in room.operations.diagnose() if each.check == "growth"] == ["the journal has 5 entries"]
