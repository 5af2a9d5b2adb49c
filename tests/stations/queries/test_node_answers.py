"""What one node answers to a query over nodes, as data that travels."""

from __future__ import annotations

from pathlib import Path

import pyarrow
from tests.stations.world import desk, network

from postroom.model.types import Kind
from postroom.stations.queries.conditions import Condition
from postroom.stations.queries.node_answers import Job, Part, packed, read_part, unpacked
from postroom.stations.queries.reading import Asked, Plan
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.tracking import MAILBOXES, STATIONS

PLAN = Plan("NOTE", (Asked("Count", Kind.INT, True, (Condition("..", 1, 3, Kind.INT),)),))


def test_a_job_travels_without_the_urls_of_nodes() -> None:
    job = Job([Part("north", "postgresql://me:secret@host/db", STATIONS)], 7, PLAN, frozenset(["A"]), True)
    text = job.packed()
    assert "secret" not in text
    assert Job.unpacked(text, [part.url for part in job.parts]) == job


def test_a_node_answers_with_its_messages_their_number_or_why_it_cannot(url: str, tmp_path: Path) -> None:
    def opened(tx: Transaction) -> int:
        number = tx.tracking.number("test", 60.0)
        for place in (STATIONS, MAILBOXES):
            tx.tracking.open(number, place, "test", 60.0)
        return number

    with network(url, tmp_path, {}, {"A": "control", "B": "control"}) as room:
        keys = desk(room, "A").create_many("NOTE", [{"To": "x", "Count": number} for number in range(5)])
        desk(room, "A").ship(keys[1], "B")
        number = room.store.transact("query-open", opened)
        here, mail = Part("control", url, STATIONS), Part("control", url, MAILBOXES)
        answers = [read_part(place, part, number, PLAN, None) for place, part in enumerate((here, mail))]
        column = pyarrow.chunked_array([packed(answer).column(0) for answer in answers])
        table = unpacked(column)
        assert [(row["part"], row["place"]) for row in table.rows()] == [(0, "A"), (0, "A"), (1, "mailbox:B")]
        assert read_part(0, here, number, PLAN, None, whole=False).rows()[0]["key"] == 2, "only counted"
        assert read_part(0, here, number, PLAN, frozenset(["B"])).key == []
        (late,) = read_part(0, here, number + 1, PLAN, None).rows()
        assert late["error"] == "query-expired"
    (gone,) = read_part(0, Part("x", str(tmp_path / "nowhere.db"), STATIONS), 1, PLAN, None).rows()
    assert "nowhere.db" in gone["error"]
