"""Movement control in real stores: the transactions of ships, gets and queries in random orders, one at a time.

Three things must hold whatever the order: each message is found once by each query; a part that is read again, however
late, says the same; and a later query never sees an older state of a message than an earlier one did.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from tests.stations.world import desk, network

from postroom.errors import QueryExpired, QueryOvertaken
from postroom.model.body import parse_json
from postroom.model.key import key_text
from postroom.room import Postroom
from postroom.stations.mail import mail
from postroom.stations.places.desk import SHIP
from postroom.stations.places.network import CONTROL
from postroom.stations.queries.node_answers import Part, read_part
from postroom.stations.queries.query import Scope, _Query
from postroom.stations.queries.reading import Plan
from postroom.store.kernel.session import Row
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.tracking import MAILBOXES, STATIONS

HOMES = {"A": "north", "B": "north", "C": "south", "D": CONTROL}
EVERYTHING = Plan("NOTE", ())


class Walk:
    """One random history."""

    def __init__(self, room: Postroom, seed: int) -> None:
        self.room = room
        self.network = room._parts.network
        self.chance = random.Random(seed)
        self.desks = {name: desk(room, name) for name in HOMES}
        self.keys: list[str] = []
        self.query: _Query | None = None
        self.left: list[str] = []  # nodes where the query is yet to be opened
        self.reading: list[tuple[_Query, set[str], dict[Part, list[tuple[str, int]]]]] = []
        self.found: dict[int, dict[str, int]] = {}
        self.serial = 0

    def create(self) -> None:
        self.keys.append(self.chance.choice(list(self.desks.values())).create("NOTE", To="x", Count=0))

    def modify(self) -> None:
        desk = self.chance.choice(list(self.desks.values()))
        for image in desk.messages()[:3]:
            count = image.fields["Count"]
            assert isinstance(count, int)
            desk.modify(image.key, Count=count + 1)

    def ship(self) -> None:
        """The first commit alone; on the control node that is all."""
        desk = self.chance.choice(list(self.desks.values()))
        there = desk.messages()
        if there:
            desk.ship(self.chance.choice(there).key, self.chance.choice(list(HOMES)))

    def get(self) -> None:
        self.chance.choice(list(self.desks.values())).get(limit=self.chance.randint(1, 3))

    def deliver(self) -> None:
        """The second and third commits of something that is leaving, or only the second."""
        node = self.chance.choice([CONTROL, "north", "south"])
        store = self.network.store(node)
        parcels = store.read(lambda tx: tx.transfers.pending())
        if not parcels:
            return
        parcel = self.chance.choice(parcels)
        target = CONTROL if parcel.verb == SHIP else HOMES[parcel.target]
        actors = {parcel.stored.key: None}
        done = self.network.store(target).transact("arrive", lambda tx: mail._arrive(tx, [parcel], actors))
        if self.chance.random() < 0.5:
            store.transact("conclude", lambda tx: mail._conclude(tx, [parcel], done, actors))

    # --- queries, a transaction at a time ---

    def begin(self) -> None:
        if self.query is None:
            self.serial += 1
            self.query = _Query(
                self.network, EVERYTHING, Scope((CONTROL, "north", "south"), None), f"w{self.serial}", 60
            )
            self.query._begin()
            self.existed = set(self.keys)
            self.left = [CONTROL, "north", "south"]
            self.chance.shuffle(self.left)
        elif self.left:
            self.query._open_node(self.left.pop())
        elif self.chance.random() < 0.1:
            self.query.close()  # given up; its number is never heard of again
            self.network.control.transact("query-open", lambda tx: tx.leases.release("queries", self.query.fence))  # type: ignore[union-attr]
            self.query = None
        else:
            query = self.query
            query.undecided = self.network.control.transact("query-open", query._open_mailboxes)
            query.opened.append(CONTROL)
            self.reading.append((query, self.existed, {}))
            self.query = None

    def read(self) -> None:
        """Read one part of an open query, perhaps again."""
        if not self.reading:
            return
        query, existed, parts = self.chance.choice(self.reading)
        urls = self.network.ways()
        every = [Part(node, urls[node], STATIONS) for node in urls] + [Part(CONTROL, self.room.url, MAILBOXES)]
        part = self.chance.choice(every)
        rows = read_part(0, part, query.number, EVERYTHING, None).rows()
        assert not [row["error"] for row in rows if row["error"]]
        found = sorted((row["body"], row["key"]) for row in rows)
        assert parts.setdefault(part, found) == found, "a part that was read again says something else"
        if len(parts) == len(every) and self.chance.random() < 0.5:
            self.finish(query, existed, parts)

    def finish(self, query: _Query, existed: set[str], parts: dict[Part, list[tuple[str, int]]]) -> None:
        late = [(each.body, each.key) for each in query._met_nowhere()]
        rows = [*late, *(row for some in parts.values() for row in some)]
        keys = [key_text(key) for _, key in rows]
        assert len(keys) == len(set(keys)), "counted twice"
        assert existed <= set(keys), f"missed {existed - set(keys)}"
        self.found[query.number] = {key: parse_json(body)["Count"] for (body, _), key in zip(rows, keys, strict=True)}
        query.close()
        self.reading = [each for each in self.reading if each[0] is not query]

    def check_order(self) -> None:
        numbers = sorted(self.found)
        for first, second in pairwise(numbers):
            for key in self.found[first].keys() & self.found[second].keys():
                assert self.found[first][key] <= self.found[second][key], f"{second} is older than {first} at {key}"

    def steps(self) -> Iterator[Callable[[], None]]:
        verbs = [self.create, self.modify, self.ship, self.get, self.deliver, self.begin, self.read]
        weights = [1, 2, 5, 5, 6, 6, 8]
        while True:
            yield self.chance.choices(verbs, weights)[0]


def walk(room: Postroom, seed: int, steps: int, monkeypatch: pytest.MonkeyPatch) -> Walk:
    deliver = mail.deliver
    there = Walk(room, seed)
    for _ in range(6):
        there.create()
    for _, step in zip(range(steps), there.steps(), strict=False):
        # A ship or a get ends after its first commit here; a query that pushes mail on does it in full.
        whole = step in (there.begin, there.read)
        monkeypatch.setattr(mail, "deliver", deliver if whole else lambda *_: {})
        step()
    monkeypatch.setattr(mail, "deliver", deliver)
    for query, _, _ in list(there.reading):
        while any(each[0] is query for each in there.reading):
            there.read()
        assert query.number in there.found
    there.check_order()
    return there


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(n, marks=pytest.mark.slow) for n in range(8, 150))])
def test_random_histories_on_sqlite(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = {name: str(tmp_path / f"{name}.db") for name in ("north", "south")}
    with network(str(tmp_path / "room.db"), tmp_path, nodes, HOMES) as room:
        there = walk(room, seed, 150, monkeypatch)
        assert there.found


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 30))])
def test_random_histories_across_both_stores(
    seed: int, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control node on PostgreSQL, its satellites on SQLite."""
    nodes = {name: str(tmp_path / f"{name}.db") for name in ("north", "south")}
    with network(postgres_url, tmp_path, nodes, HOMES) as room:
        assert walk(room, 1000 + seed, 150, monkeypatch).found


def test_when_all_is_read_nothing_is_kept_for_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = {name: str(tmp_path / f"{name}.db") for name in ("north", "south")}
    with network(str(tmp_path / "room.db"), tmp_path, nodes, HOMES) as room:
        there = walk(room, 5, 200, monkeypatch)
        if there.query is not None:
            there.query.close()
        for node in (CONTROL, "north", "south"):
            mail.recover(room._parts.network, node)
        for node in (CONTROL, "north", "south"):
            store = room._parts.network.store(node)
            for table in ("queries", "ghosts", "shown", "handovers"):
                assert store.read(partial(_rows, f"SELECT count(*) FROM {table}")) == [(0,)], f"{table} at {node}"


def _rows(statement: str, tx: Transaction) -> list[Row]:
    return tx.session.rows(statement)


def test_a_query_that_was_closed_cannot_be_read(tmp_path: Path) -> None:
    with network(str(tmp_path / "room.db"), tmp_path, {}, {"D": CONTROL}) as room:
        query = _Query(room._parts.network, EVERYTHING, Scope((CONTROL,), None), "w1", 60)
        query.open()
        query.close()
        with pytest.raises(QueryExpired):
            room.store.read(lambda tx: tx.tracking.opened(query.number, STATIONS))


def test_the_anomaly_of_x_and_y_cannot_be_reached(tmp_path: Path) -> None:
    """One query would see X before and Y after their changes, another Y before and X after: no order explains that.

    The first is held up between two nodes for so long that the second begins. Then it finds that it was overtaken.
    """
    nodes = {name: str(tmp_path / f"{name}.db") for name in ("north", "south")}
    with network(str(tmp_path / "room.db"), tmp_path, nodes, {"I": "north", "J": "south"}) as room:
        i, j = desk(room, "I"), desk(room, "J")
        x, y = i.create("NOTE", To="x", Count=1), j.create("NOTE", To="y", Count=1)
        scope = Scope((CONTROL, "north", "south"), None)

        def query(number: int) -> _Query:
            return _Query(room._parts.network, EVERYTHING, scope, f"w{number}", 60)

        def seen(query: _Query, node: str) -> list[int]:
            part = Part(node, room._parts.network.ways()[node], STATIONS)
            rows = read_part(0, part, query.number, EVERYTHING, None).rows()
            return [parse_json(row["body"])["Count"] for row in rows]

        first, second = query(1), query(2)
        first._begin()
        first._open_node("north")
        i.modify(x, Count=2)
        room.store.transact("query-open", lambda tx: tx.leases.release("queries", first.fence))
        second.open()
        j.modify(y, Count=2)
        assert (seen(first, "north"), seen(second, "north"), seen(second, "south")) == ([1], [2], [1])
        with pytest.raises(QueryOvertaken):
            first._open_node("south")  # it would see Y as 2, behind a query that saw it as 1
        third = query(3)
        third.open()
        assert (seen(third, "north"), seen(third, "south")) == ([2], [2])
        for each in (first, second, third):
            each.close()
