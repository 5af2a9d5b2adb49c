"""The verbs of the desk, on both stores: after each of them row, index, dossiers, tracking and journal agree."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.stations.world import network

from postroom.errors import NameTaken
from postroom.model.message import Stored
from postroom.room import Postroom
from postroom.stations.places import desk, indexing
from postroom.stations.places.names import database, mailbox
from postroom.stations.queries.reading import Plan, read_mailboxes, read_stations
from postroom.store.kernel.batch import Batch, Take
from postroom.store.kernel.handling import Move, New
from postroom.store.kernel.queues import MAILBOX, STATION, Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.tracking import MAILBOXES, STATIONS

PROPERTIES = '{"form":1}'
EVERYTHING = Plan("NOTE", ())


@pytest.fixture
def room(url: str, tmp_path: Path) -> Iterator[Postroom]:
    with network(url, tmp_path, {}, {"A": "control", "B": "control"}) as opened:
        opened._parts.network.align()
        yield opened
        agrees(opened)


def agrees(room: Postroom) -> None:
    """The index has every message of stations and mailboxes by all that it is found by, and nothing else."""

    def work(tx: Transaction) -> tuple[set[tuple[int, int, str, int]], set[tuple[int, int, str, int]]]:
        expected = set()
        for queue in [*tx.queues.of_kind(STATION), *tx.queues.of_kind(MAILBOX)]:
            for stored in tx.messages.next_of(queue.name, 0, 1000):
                assert (stored.queue, stored.sound) == (queue.name, True)
                entries = indexing.entries(tx.field_index.of_type("NOTE"), stored)
                expected |= {(queue.id, entry.index_id, entry.value, stored.key) for entry in entries}
        rows = tx.session.rows("SELECT queue, filing, value, message FROM filed")
        return expected, {(row[0], row[1], row[2], row[3]) for row in rows}

    expected, present = room.store.read(work)
    assert present == expected
    assert room.journal.verify().differences == ()


def body(text: str) -> str:
    return f'{{"To":"x","KEY":"00001.00001","Count":null,"Text":"{text}"}}'


def put(tx: Transaction, station: str = "A", text: str = "first") -> Stored:
    key = tx.keys.take(1)[0]
    (stored,) = desk.put(tx, desk.database_of(tx, station), [(key, "NOTE", PROPERTIES, body(text))])
    return stored


def found(room: Postroom, queue: str, text: str) -> list[int]:
    """What the index of a field leads to, in one queue."""

    def work(tx: Transaction) -> list[int]:
        (indexed_field,) = [
            indexed_field for indexed_field in tx.field_index.of_type("NOTE") if indexed_field.field == "Text"
        ]
        rows = tx.session.rows("SELECT f.value, f.message, q.name FROM filed f JOIN queues q ON q.id = f.queue")
        assert indexed_field.ready
        return [message for value, message, name in rows if name == queue and text in value]

    return room.store.read(work)


def events(room: Postroom, key: int) -> list[tuple[str, object]]:
    return [(event.verb, event.detail) for event in room.store.read(lambda tx: tx.journal.trace(key))]


def dossiers(room: Postroom) -> dict[str, int]:
    """Those of station A."""
    (queue,) = [
        queue for queue in room.store.read(lambda tx: tx.queues.of_kind(STATION)) if queue.name == database("A")
    ]
    return room.store.read(lambda tx: tx.dossiers.counts(queue))


def opened(tx: Transaction) -> int:
    """A query that is opened now at both places and read later."""
    number = tx.tracking.number("test", 60.0)
    for place in (STATIONS, MAILBOXES):
        tx.tracking.open(number, place, "test", 60.0)
    return number


def seen(room: Postroom, number: int) -> list[tuple[int, str]]:
    """What a query finds, by key: each message as it was when the query was opened."""

    def work(tx: Transaction) -> list[Stored]:
        return read_stations(tx, number, EVERYTHING, None) + read_mailboxes(tx, number, EVERYTHING, None)

    return sorted((stored.key, stored.body) for stored in room.store.read(work))


def test_put(room: Postroom) -> None:
    stored = room.store.transact("create", put)
    assert found(room, database("A"), "first") == [stored.key]
    assert events(room, stored.key) == [("create", None)]
    assert room.store.read(lambda tx: tx.messages.find(stored.key)) == stored


def test_edit_keeps_what_the_message_said_before(room: Postroom) -> None:
    stored = room.store.transact("create", put)
    number = room.store.transact("query-open", opened)

    def work(tx: Transaction) -> Stored:
        return desk.edit(tx, desk.database_of(tx, "A"), stored, body("second"), PROPERTIES, ["Text"])

    edited = room.store.transact("modify", work)
    assert (found(room, database("A"), "first"), found(room, database("A"), "second")) == ([], [stored.key])
    assert events(room, stored.key)[-1] == ("modify", {"fields": ["Text"]})
    assert seen(room, number) == [(stored.key, body("first"))]
    assert room.store.read(lambda tx: tx.messages.editions(stored.key)) == [
        (edited.position, body("first"), PROPERTIES)
    ]


def test_move_ships_out_of_the_database_and_its_dossiers_and_gets_out_of_the_mailbox(room: Postroom) -> None:
    stored = room.store.transact("create", put)
    room.store.transact("dossier", lambda tx: tx.dossiers.add(desk.database_of(tx, "A"), "open", stored.key))
    number = room.store.transact("query-open", opened)

    def ship(tx: Transaction) -> Stored:
        return desk.move(tx, now(tx, stored), desk.database_of(tx, "A"), desk.mailbox_of(tx, "B"), '{"form":2}')

    def get(tx: Transaction) -> Stored:
        return desk.move(tx, now(tx, stored), desk.mailbox_of(tx, "B"), desk.database_of(tx, "B"))

    shipped = room.store.transact("ship", ship)
    assert (shipped.queue, shipped.properties) == (mailbox("B"), '{"form":2}')
    assert found(room, mailbox("B"), "first") == [stored.key]
    assert found(room, database("A"), "first") == []
    assert dossiers(room) == {}
    agrees(room)
    room.store.transact("get", get)
    assert found(room, database("B"), "first") == [stored.key]
    assert events(room, stored.key)[-2:] == [
        ("ship", {"from": "A", "to": "B"}),
        ("get", {"from": mailbox("B"), "to": "B"}),
    ]
    assert seen(room, number) == [(stored.key, body("first"))], "once, wherever it is"


def test_remove(room: Postroom) -> None:
    stored = room.store.transact("create", put)
    room.store.transact("dossier", lambda tx: tx.dossiers.add(desk.database_of(tx, "A"), "open", stored.key))
    number = room.store.transact("query-open", opened)
    room.store.transact("compensate", lambda tx: desk.remove(tx, desk.database_of(tx, "A"), now(tx, stored)))
    assert room.store.read(lambda tx: tx.messages.find(stored.key)) is None
    assert found(room, database("A"), "first") == []
    assert dossiers(room) == {}
    assert events(room, stored.key)[-1][0] == "withdraw"
    assert seen(room, number) == [(stored.key, body("first"))]


def test_release_of_mail_that_a_batch_has_taken(room: Postroom) -> None:
    stored = room.store.transact("create", put)
    room.store.transact("ship", lambda tx: desk.move(tx, stored, desk.database_of(tx, "A"), desk.mailbox_of(tx, "B")))
    number = room.store.transact("query-open", opened)

    def work(tx: Transaction) -> None:
        box, mail = desk.mailbox_of(tx, "B"), now(tx, stored)
        Batch(tx).write([Take(box, mail, sliced=True)], 0)
        desk.release(tx, box, [mail])

    room.store.transact("counter", work)
    assert found(room, mailbox("B"), "first") == []
    assert seen(room, number) == [(stored.key, body("first"))]


def test_apply_makes_many_changes(room: Postroom) -> None:
    first, second = room.store.transact("create", lambda tx: (put(tx), put(tx, text="other")))
    room.store.transact("dossier", lambda tx: tx.dossiers.add(desk.database_of(tx, "A"), "open", first.key))
    number = room.store.transact("query-open", opened)

    def work(tx: Transaction) -> list[Stored]:
        desk.enter(tx, STATIONS, MAILBOXES)
        home, box = desk.database_of(tx, "A"), desk.mailbox_of(tx, "B")
        key = tx.keys.take(1)[0]
        return desk.apply(
            tx,
            [
                Move(now(tx, first), home, box, "ship", body("shipped"), PROPERTIES, "p", '{"from":"A","to":"B"}'),
                Move(now(tx, second), home, home, "leave", second.body, PROPERTIES, "p", "{}"),
                New(key, home, "NOTE", PROPERTIES, body("new"), first.key, "p", "{}"),
            ],
        )

    shipped, left, new = room.store.transact("procedure", work)
    assert (shipped.queue, left.queue, new.queue) == (mailbox("B"), database("A"), database("A"))
    assert found(room, mailbox("B"), "shipped") == [first.key]
    assert found(room, database("A"), "new") == [new.key]
    assert found(room, database("A"), "other") == [second.key]
    assert dossiers(room) == {}
    assert seen(room, number) == [(first.key, body("first")), (second.key, body("other"))]
    assert room.store.transact("procedure", lambda tx: desk.apply(tx, [])) == []


def test_a_message_goes_to_another_store_and_back_before_its_journey_is_concluded(room: Postroom) -> None:
    """One store plays both: what matters is that each commit can be repeated, and comes in any order."""
    stored = room.store.transact("create", put)
    number = room.store.transact("query-open", opened)
    parcel = room.store.transact("ship", lambda tx: desk.depart(tx, stored, desk.database_of(tx, "A"), "B"))
    assert (parcel.verb, parcel.source, parcel.target, parcel.hop) == ("ship", "A", "B", 1)
    assert found(room, database("A"), "first") == []
    agrees(room)

    def arrive(tx: Transaction) -> int:
        return desk.arrive(tx, parcel, desk.mailbox_of(tx, "B"))

    assert room.store.transact("arrive", arrive) == number
    assert found(room, mailbox("B"), "first") == [stored.key]
    assert room.store.read(lambda tx: tx.transfers.pending()) == [], "coming back concludes what was left open"
    room.store.transact("conclude", lambda tx: desk.conclude(tx, parcel, number))
    assert seen(room, number) == [(stored.key, body("first"))]


def test_mail_that_was_fetched_is_shown_to_queries_that_have_been_where_it_goes(room: Postroom) -> None:
    stored = room.store.transact("create", put)
    room.store.transact("ship", lambda tx: desk.move(tx, stored, desk.database_of(tx, "A"), desk.mailbox_of(tx, "B")))
    parcel = room.store.transact("get", lambda tx: desk.depart(tx, now(tx, stored), desk.mailbox_of(tx, "B"), "B"))
    assert (parcel.verb, parcel.source, parcel.target) == ("get", mailbox("B"), "B")
    later = parcel.seen + 1  # a query that has run at the node, and has yet to come to the mailboxes
    room.store.transact("conclude", lambda tx: desk.conclude(tx, parcel, later))
    shown = room.store.read(lambda tx: tx.tracking.shown(later, tx.journal.newest()))
    assert [(message.key, message.queue) for message in shown] == [(stored.key, "B")]
    assert room.store.read(lambda tx: tx.messages.find(stored.key)) is None
    room.store.transact("conclude", lambda tx: desk.conclude(tx, parcel, later))  # again: nothing changes
    assert len(room.store.read(lambda tx: tx.tracking.shown(later, tx.journal.newest()))) == 1


def test_a_queue_of_another_kind_is_no_station(room: Postroom) -> None:
    room.queues.create("plain")
    with pytest.raises(NameTaken, match="plain"):
        room.store.transact("station", lambda tx: desk.queue_of(tx, "plain", STATION))


def now(tx: Transaction, stored: Stored) -> Stored:
    """The message as it is stored now."""
    present = tx.messages.find(stored.key)
    assert present is not None
    return present


def closed(tx: Transaction, number: int) -> None:
    tx.tracking.close(number)


class Walk:
    """Random verbs, one transaction each, and queries that are opened in between and read at the end."""

    def __init__(self, room: Postroom, seed: int) -> None:
        self.room = room
        self.chance = random.Random(seed)
        self.queries: dict[int, list[tuple[int, str]]] = {}  # by number, what was there when it was opened

    def run(self, steps: int) -> None:
        verbs = [self.put, self.edit, self.move, self.move, self.remove, self.apply, self.open]
        for _ in range(steps):
            self.chance.choice(verbs)()

    def present(self, tx: Transaction) -> list[tuple[Queue, Stored]]:
        queues = [queue for station in "AB" for queue in (desk.database_of(tx, station), desk.mailbox_of(tx, station))]
        return [(queue, stored) for queue in queues for stored in tx.messages.next_of(queue.name, 0, 1000)]

    def other(self, tx: Transaction, queue: Queue) -> Queue:
        """Where a message of a queue can go: to any mailbox, or from there to the station itself."""
        if queue.kind == STATION:
            return desk.mailbox_of(tx, self.chance.choice("AB"))
        return desk.database_of(tx, queue.name.partition(":")[2])

    def put(self) -> None:
        self.room.store.transact("create", lambda tx: put(tx, self.chance.choice("AB"), self.text()))

    def edit(self) -> None:
        def work(tx: Transaction) -> None:
            own = [(queue, stored) for queue, stored in self.present(tx) if queue.kind == STATION]
            if own:
                queue, stored = self.chance.choice(own)
                desk.edit(tx, queue, stored, body(self.text()), PROPERTIES, ["Text"])

        self.room.store.transact("modify", work)

    def move(self) -> None:
        def work(tx: Transaction) -> None:
            if present := self.present(tx):
                queue, stored = self.chance.choice(present)
                desk.move(tx, stored, queue, self.other(tx, queue))

        self.room.store.transact("ship", work)

    def remove(self) -> None:
        def work(tx: Transaction) -> None:
            if present := self.present(tx):
                desk.remove(tx, *self.chance.choice(present))

        self.room.store.transact("compensate", work)

    def apply(self) -> None:
        def work(tx: Transaction) -> None:
            changes: list[Move | New] = []
            for queue, stored in self.chance.sample(present := self.present(tx), len(present) // 2):
                target = self.other(tx, queue) if self.chance.random() < 0.7 else queue
                text = stored.body if self.chance.random() < 0.5 else body(self.text())
                changes.append(Move(stored, queue, target, "ship", text, PROPERTIES, "p", '{"from":"A","to":"B"}'))
            home = desk.database_of(tx, "A")
            changes.append(New(tx.keys.take(1)[0], home, "NOTE", PROPERTIES, body(self.text()), 1, "p", "{}"))
            desk.apply(tx, changes)

        self.room.store.transact("procedure", work)

    def open(self) -> None:
        def work(tx: Transaction) -> tuple[int, list[tuple[int, str]]]:
            there = [(stored.key, stored.body) for _, stored in self.present(tx)]
            return opened(tx), sorted(there)

        number, there = self.room.store.transact("query-open", work)
        self.queries[number] = there

    def text(self) -> str:
        return f"text {self.chance.randrange(20)}"


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(n, marks=pytest.mark.slow) for n in range(3, 60))])
def test_random_sequences_of_verbs(room: Postroom, seed: int) -> None:
    walk = Walk(room, seed)
    for _ in range(3):
        walk.run(15)
        agrees(room)
    for number, there in walk.queries.items():
        assert seen(room, number) == there, "a query finds each message once, as it was when the query was opened"
        room.store.transact("query-close", partial(closed, number=number))
    kept = room.store.read(lambda tx: tx.session.rows("SELECT count(*) FROM ghosts"))
    assert kept == [(0,)], "when all is read, nothing is kept for queries"
