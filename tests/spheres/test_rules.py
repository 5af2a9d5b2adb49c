"""Rules and spheres: what a rule makes of a sphere's message belongs to the sphere, and can be undone with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import postroom
from postroom.errors import ProgramInvalid, SphereAborted
from postroom.room import Postroom

pytestmark = pytest.mark.usefixtures("spark")

MASTER = "local[2]"
PROGRAM = """
create queue orders kind basic mode persistent
create queue billing kind basic mode persistent
create queue billingUndo kind basic mode persistent
create queue notes kind basic mode persistent
create property amount as xs:integer fixed queue billing value //amount
create slicing byAmount on amount
create rule bill for orders
if (//order) then (
  do enqueue <bill><amount>{string(//amount)}</amount></bill> into billing
    compensate with <cancel>{string(//amount)}</cancel> into billingUndo,
  do enqueue <note/> into notes)
"""


@pytest.fixture
def room(url: str, tmp_path: Path) -> Iterator[Postroom]:
    file = tmp_path / "shop.demaq"
    file.write_text(PROGRAM)
    with postroom.open(url) as opened:
        opened.load(file)
        yield opened


def bodies(room: Postroom, queue: str) -> list[str]:
    return [message.body for message in room.queues.info(queue)]


def order(amount: int) -> str:
    return f"<order><amount>{amount}</amount></order>"


def test_what_a_rule_sends_is_undone_with_the_sphere_of_its_cause(room: Postroom) -> None:
    with pytest.raises(RuntimeError), room.sphere("one") as sphere:
        sphere.send("orders", order(7), compensation="<never-mind/>", format="xml")
        assert room.run_until_idle(master=MASTER) == 1
        assert bodies(room, "billing") == ["<bill><amount>7</amount></bill>"]
        (bill,) = room.queues.info("billing")
        assert bill.properties["sphere"] == "one"
        assert bill.properties["amount"] == 7
        assert room.receive("billing").message is not None
        raise RuntimeError
    assert bodies(room, "billingUndo") == ["<cancel>7</cancel>"]
    assert bodies(room, "orders") == ["<never-mind/>"], "a rule has consumed the order"
    assert [each.outcome for each in room.spheres.show("one").sends] == ["compensated", "compensated", "withdrawn"]
    (undo,) = room.queues.info("billingUndo")
    assert undo.properties["compensates"] == bill.key
    assert undo.cause == bill.key


def test_what_nobody_has_taken_disappears_from_its_slice_too(room: Postroom) -> None:
    with pytest.raises(RuntimeError), room.sphere("one") as sphere:
        sphere.send("orders", order(7), format="xml")
        room.run_until_idle(master=MASTER)
        assert len(room.journal.slice("byAmount", "7")) == 1
        raise RuntimeError
    assert bodies(room, "billing") == bodies(room, "billingUndo") == []
    assert room.journal.slice("byAmount", "7") == []
    assert room.trace(bill_key(room))[-1].verb == "withdraw"


def bill_key(room: Postroom) -> str:
    key = room.spheres.show("one").sends[1].key
    assert key is not None
    return key


def test_a_committed_sphere_leaves_nothing_to_undo(room: Postroom) -> None:
    with room.sphere("one") as sphere:
        sphere.send("orders", order(7), format="xml")
        room.run_until_idle(master=MASTER)
    assert bodies(room, "billing") == ["<bill><amount>7</amount></bill>"]
    assert bodies(room, "COMP.Q") == bodies(room, "billingUndo") == []


def test_outside_of_a_sphere_the_clause_does_nothing(room: Postroom) -> None:
    room.send("orders", order(3), format="xml")
    assert room.run_until_idle(master=MASTER) == 1
    assert bodies(room, "billing") == ["<bill><amount>3</amount></bill>"]
    assert bodies(room, "billingUndo") == []
    assert "sphere" not in next(iter(room.queues.info("notes"))).properties


def test_a_rule_that_comes_late_sends_nothing_that_would_stand(room: Postroom) -> None:
    sphere = room.sphere("one")
    sphere.send("orders", order(7), format="xml", compensation="<never-mind/>")
    room.queues.set_password("ABORTING", password="p")
    room.queues.disable("ABORTING", password="p")  # nothing is undone now
    sphere.abort()
    assert room.run_until_idle(master=MASTER) == 1
    assert bodies(room, "billing") == bodies(room, "billingUndo") == bodies(room, "notes") == []
    room.queues.enable("ABORTING", password="p")
    assert room.spheres.compensate().compensated == 1
    assert bodies(room, "orders") == ["<never-mind/>"]


def test_an_arc_that_fails_has_not_processed(room: Postroom, tmp_path: Path) -> None:
    file = tmp_path / "stocks.flow"
    file.write_text("domain d space A : [n: int] space C : [n: int] arc c : A -> C transform [n: n] => [n: 10 % n]")
    room.load(file)
    sphere = room.sphere("one")
    sphere.send("A", {"n": 0})
    sphere.require("A", processing_within=1)
    room.run_until_idle(master=MASTER)
    assert "divided by zero" in bodies(room, "postroom-errors")[0]
    with pytest.raises(SphereAborted, match="A had not processed"):
        sphere.commit()


def test_a_rule_that_consumes_a_message_has_processed_it(room: Postroom) -> None:
    with room.sphere("one") as sphere:
        sphere.send("orders", order(7), format="xml")
        sphere.require("orders", processing_within=60)
        room.run_until_idle(master=MASTER)
    (sent, *_) = room.spheres.show("one").sends
    assert sent.received is not None
    assert sent.processed is not None
    with pytest.raises(SphereAborted, match="orders had not processed"), room.sphere("two") as sphere:
        sphere.send("orders", order(7), format="xml")
        sphere.require("orders", processing_within=0.1)


@pytest.mark.parametrize(
    ("clause", "why"),
    [
        ("compensate with <c/> into nowhere", "no queue nowhere"),
        ("compensate with <c/>", "into"),
        ("compensate <c/> into notes", "compensate"),
        ("compensate with do enqueue <c/> into notes into notes", "do enqueue cannot stand"),
    ],
)
def test_a_clause_that_is_wrong_is_refused(room: Postroom, tmp_path: Path, clause: str, why: str) -> None:
    file = tmp_path / "other.demaq"
    file.write_text(
        f"create module other\ncreate rule bad for notes\nif (/note) then do enqueue <a/> into notes {clause}\n"
    )
    with pytest.raises(ProgramInvalid, match=why):
        room.load(file)


def test_explain_names_where_compensations_go(room: Postroom) -> None:
    assert room.definitions.explain("bill").writes == ("billing", "billingUndo", "notes")
