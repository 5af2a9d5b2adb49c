"""What holds on the control node holds on others: who did what, where a message comes from, what waits for what."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import postroom
from postroom.errors import FormInvalid
from postroom.room import Postroom
from postroom.stations.procedures.evaluation import evaluate_here

from .office import load, office, run
from .test_nodes import CHAIN

HERE = dict.fromkeys(("ann", "bob", "cid"), "control")
SPREAD = {"ann": "north", "bob": "south", "cid": "control"}


def world(folder: Path, homes: dict[str, str], procedures: str) -> Postroom:
    nodes = {name: str(folder / f"{name}.db") for name in ("north", "south")} if homes is SPREAD else {}
    return office(str(folder / "control.db"), folder, procedures, homes, nodes)


@pytest.mark.parametrize("homes", [HERE, SPREAD], ids=["control", "satellites"])
def test_the_journal_names_whoever_acted(tmp_path: Path, homes: dict[str, str]) -> None:
    with world(tmp_path, homes, CHAIN) as room:
        ann, cid = room.stations._station("ann"), room.stations._station("cid")
        order = cid.create("ORDER", No=1)
        cid.ship(order, "ann")
        ann.create("BILL", No=1, Amount="3")
        run(room)
        run(room)
        acted = [(event.verb, event.by) for event in room.trace(order)]
        assert acted[:2] == [("create", "cid"), ("ship", "cid")]
        assert {by for _, by in acted[2:]} == {"procedure join", "procedure on"}, "no person has done anything since"


FROM = """\
procedure mine at ann
  precondition a : ORDER
  origin o on a from me
  destination d on a copy 0 dossier mine
procedure theirs at ann
  precondition a : ORDER
  precondition b : BILL
    No: ?a.No
  origin o on a not from me
  destination d on a copy 0 dossier theirs
"""


@pytest.mark.parametrize("homes", [HERE, SPREAD], ids=["control", "satellites"])
def test_me_is_the_station_s_own_database(tmp_path: Path, homes: dict[str, str]) -> None:
    with world(tmp_path, homes, FROM) as room:
        ann, cid = room.stations._station("ann"), room.stations._station("cid")
        made, got, mail = ann.create("ORDER", No=1), cid.create("ORDER", No=2), cid.create("ORDER", No=3)
        cid.ship(got, "ann")
        assert ann.get() == [got]
        cid.ship(mail, "ann")
        ann.create("BILL", No=3)
        run(room)
        run(room)
        assert sorted(each.key for each in ann.dossier("mine")) == sorted([made, got])
        assert [each.key for each in ann.dossier("theirs")] == [mail], "a procedure has fetched it from the mailbox"


WANTS = """\
procedure pay at ann
  precondition order : ORDER
  precondition bill : BILL
    No: ?order.No
    Amount: > 100 <= 20
    Note: <> ""
  origin known on bill from bob, me
procedure far at bob
  precondition order : ORDER
  precondition bill : BILL
    No: ?order.No
"""


def test_waiting_tells_a_sketch_s_own_conditions_and_answers_without_a_node_that_is_down(tmp_path: Path) -> None:
    with world(tmp_path, SPREAD, WANTS) as room:
        for name in ("ann", "bob"):
            room.stations._station(name).create("ORDER", No=7)
        run(room)
        assert {each.procedure: each.wants for each in room.stations.waiting()} == {
            "pay": {"bill": 'BILL with No = 7, Amount: > 100 <= 20, Note: <> "" from bob, me'},
            "far": {"bill": "BILL with No = 7"},
        }
        assert room.stations.waiting().missing == {}
    shutil.move(tmp_path / "south.db", tmp_path / "elsewhere.db")
    with postroom.open(str(tmp_path / "control.db")) as again:
        again._parts.interpreter.evaluate = evaluate_here
        found = again.stations.waiting()
        assert [each.procedure for each in found] == ["pay"]
        assert list(found.missing) == ["south"]
        assert found.as_dict()["missing"] == [{"node": "south", "why": found.missing["south"]}]
        assert again.operations.lag() == 0


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("destination d on a copy 0 ship Nobody", "3:3: procedure p: there is no station Nobody [destination-value]"),
        ("destination d on a copy 0 ship anm", "3:3: procedure p: there is no station anm; did you mean ann?"),
        ("destination d on a copy 0 ship ann after 3 weeks", "3:38: after NUMBER seconds, minutes, hours or days"),
        ("destination d on a copy 0 ship ann after a while", "3:38: after NUMBER seconds, minutes, hours or days"),
        ("destination d on a copy 0 ship ann after", "3:38: after NUMBER seconds, minutes, hours or days"),
        ("origin o on a from bob, Nobody", "3:3: procedure p: there is no station Nobody [origin-stations]"),
    ],
)
def test_ship_to_nobody_or_after_weeks_is_refused_at_load(tmp_path: Path, line: str, where: str) -> None:
    with world(tmp_path, HERE, "") as room:
        before = room.store.read(lambda tx: tx.definitions.version())
        with pytest.raises(FormInvalid) as caught:
            load(room, tmp_path, f"procedure p at ann\n  precondition a : ORDER\n  {line}\n")
        assert where in str(caught.value)
        assert room.store.read(lambda tx: tx.definitions.version()) == before
        load(room, tmp_path, "procedure p at later\n  precondition a : ORDER\n  destination d on a copy 0 ship later\n")
