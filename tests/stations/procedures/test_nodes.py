"""Procedures at stations of other nodes, beside queries over all of them, and on Spark."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.conftest import Rooms

import postroom
from postroom import faults
from postroom.errors import LeaseLost
from postroom.room import Postroom
from postroom.stations.places.postmarks import postmarks
from postroom.stations.procedures.evaluation import evaluate_here
from postroom.store.kernel.transaction import Transaction

from .office import office, run
from .test_interpreter import JOIN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHAIN = (
    JOIN
    + """\
procedure on at bob
  precondition order : ORDER
    Status: paid
  action mark on order
    Team: seen
  create receipt : BILL
    No: ?order.No
    Note: ?order.KEY
  destination back on order copy 0 dossier done
  destination kept on order copy 1 ship cid
  destination new on receipt copy 0 ship ann
"""
)


@pytest.fixture(params=["sss", "psp", "spp"])
def places(request: pytest.FixtureRequest, rooms: Rooms) -> list[str]:
    """The stores of the control node and two others, on SQLite or PostgreSQL."""
    return [url for kind in request.param for url in rooms({"s": "sqlite", "p": "postgres"}[kind], 1)]


def spread(places: list[str], folder: Path, procedures: str) -> Postroom:
    """Ann is on one node, bob on another, cid on the control node."""
    nodes = {"north": places[1], "south": places[2]}
    return office(places[0], folder, procedures, {"ann": "north", "bob": "south", "cid": "control"}, nodes)


def test_a_chain_over_three_stores(places: list[str], tmp_path: Path) -> None:
    with spread(places, tmp_path, CHAIN) as room:
        ann, bob, cid = (room.stations._station(name) for name in ("ann", "bob", "cid"))
        order = cid.create("ORDER", No=1)
        cid.ship(order, "ann")
        run(room)
        assert room.journal.locate(order) == "mailbox:ann", "mail of another store is only looked at"
        assert [each.has for each in room.stations.waiting()] == [{"order": order}]
        bill = ann.create("BILL", No=1, Amount="3")
        run(room)
        assert room.journal.locate(bill) == "ann"
        assert room.journal.locate(order) == "bob"
        assert bob.dossiers() == {"done": 1}
        assert bob.show(order).fields["Team"] == "seen"
        (copy,) = cid.mail()
        (receipt,) = ann.mail()
        assert (copy.type, receipt.type) == ("ORDER", "BILL")
        assert [event.verb for event in room.trace(order)].count("get") >= 2
        (waits,) = room.stations.waiting("join")
        assert (waits.has, waits.wants) == ({"bill": receipt.key}, {"order": "ORDER with No = 1"})
        assert room.operations.lag() == 0


def test_mail_that_is_gone_is_not_waited_for(places: list[str], tmp_path: Path) -> None:
    with spread(places, tmp_path, JOIN) as room:
        ann, cid = room.stations._station("ann"), room.stations._station("cid")
        gone, stays = cid.create("ORDER", No=1), cid.create("ORDER", No=1)
        cid.ship([gone, stays], "ann")
        run(room)
        ann.get(1)
        ann.ship(gone, "cid")
        ann.create("BILL", No=1)
        run(room)
        assert (room.journal.locate(gone), room.journal.locate(stays)) == ("mailbox:cid", "mailbox:bob")


def test_what_cannot_be_done_is_told_where_it_is(places: list[str], tmp_path: Path) -> None:
    text = "procedure p at ann\n precondition a : ORDER\n destination d on a copy 0 ship ?a.Item\n"
    with spread(places, tmp_path, text) as room:
        ann = room.stations._station("ann")
        ann.create("ORDER", No=1, Item="nobody")
        late = ann.create("ORDER", No=2, Item="bob")
        run(room)
        assert [each.fields["Code"] for each in ann.dossier("errors")] == ["station-unknown"]
        assert room.journal.locate(late) == "mailbox:bob"


def test_an_engine_that_was_replaced_changes_nothing_at_a_node(places: list[str], tmp_path: Path) -> None:
    with spread(places, tmp_path, JOIN) as room:
        run(room)  # the node has seen a number
        store = room._parts.network.store("north")

        def replaced(tx: Transaction) -> None:
            tx.leases.follow("engine", 10_000)

        store.transact("send", replaced)
        with pytest.raises(LeaseLost):
            store.transact("send", lambda tx: tx.leases.follow("engine", 9_999))


def test_a_node_that_does_not_answer_holds_up_no_other(places: list[str], tmp_path: Path) -> None:
    with spread(places, tmp_path, CHAIN) as room:
        file = Path(places[1])
        if not file.exists():
            pytest.skip("a PostgreSQL that is gone is tested with the stores")
        room._parts.network._forget("north")
        moved = file.with_suffix(".gone")
        file.rename(moved)
        cid = room.stations._station("cid")
        order = cid.create("ORDER", No=1, Status="paid")
        cid.ship(order, "bob")
        run(room)
        assert room.journal.locate(order) == "bob"
        moved.rename(file)
        room._parts.interpreter._paused.clear()
        run(room)


def test_mail_that_a_crash_left_on_its_way_is_handled_in_the_run_that_finds_it(
    places: list[str], tmp_path: Path
) -> None:
    text = "procedure p at cid\n precondition a : ORDER\n destination d on a copy 0 dossier seen\n"
    with spread(places, tmp_path, text + JOIN) as room:
        ann, cid = room.stations._station("ann"), room.stations._station("cid")
        order = ann.create("ORDER", No=1)
        run(room)
        faults.arm("arrive.begun", "raise")
        try:
            with pytest.raises(faults.FaultInjected):
                ann.ship(order, "cid")
        finally:
            faults.disarm()
        assert cid.mail() == [], "it has left and not come"
        run(room)  # looks at the control node first, and finds the mail when it has come to the other
        assert room.journal.locate(order) == "cid"
        assert cid.dossiers() == {"seen": 1}
        assert room.operations.lag() == 0


def test_global_queries_see_every_message_once_while_procedures_move_them(places: list[str], tmp_path: Path) -> None:
    around = "".join(
        f"procedure p_{a} at {a}\n precondition x : ORDER\n destination d on x copy 0 ship {b}\n"
        for a, b in (("ann", "bob"), ("bob", "cid"), ("cid", "ann"))
    )
    from tests.faults.station_workload import query  # reads every part in this process

    with spread(places, tmp_path, around) as room, postroom.open(places[0]) as other:
        other._parts.interpreter.evaluate = evaluate_here
        keys = sorted(room.stations._station("ann").create_many("ORDER", [{"No": n} for n in range(20)]))
        seen: list[list[str]] = []

        class Enough(Exception):
            """They go around for hundreds of steps more; that they end is told elsewhere."""

        def look(_: object) -> None:
            if len(seen) == 11:
                raise Enough
            seen.append(sorted(query(room, "ORDER")))

        with pytest.raises(Enough):
            other.run_until_idle(step_messages=7, progress=look)
        assert all(found == keys for found in seen), [len(found) for found in seen]


def test_on_spark_it_is_the_same(sqlite_url: str, tmp_path: Path, spark: SparkSession) -> None:
    text = CHAIN.replace("Note: ?order.KEY", "Note: spoken_of(?order.KEY)").replace(
        "    Team: seen", "    Team: killer(?order.Item)"
    )
    with office(sqlite_url, tmp_path, text) as room:
        room._parts.interpreter.evaluate = None
        ann, bob = room.stations._station("ann"), room.stations._station("bob")
        ann.create_many("BILL", [{"No": n} for n in range(40)])
        orders = ann.create_many("ORDER", [{"No": n, "Item": "die" if n == 7 else "live"} for n in range(40)])
        room.run_until_idle(master="local[2]")
        places = Counter(room.journal.locate(key) for key in orders)
        assert places == {"bob": 39, "mailbox:bob": 1}
        (told,) = bob.dossier("errors")
        assert told.fields["Messages"] == (orders[7],)
        assert "killed its worker" in str(told.fields["Description"])
        notes = [each.fields["Note"] for each in ann.query("BILL", Note="said*")]
        assert notes == []  # they are mail yet
        ann.get()
        assert len(ann.query("BILL", Note="said*")) == 39


@postroom.function
def spoken_of(key: str) -> str:
    return f"said {key} {postmarks.__name__}"


@postroom.function
def killer(item: str) -> str:
    import os
    import signal

    if item == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return item
