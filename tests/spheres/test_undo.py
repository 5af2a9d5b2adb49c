"""Undo through every lens: what rules, arcs, counters and procedures made of a sphere's message shares its outcome."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.here import evaluate_here as evaluate_rules_and_arcs_here
from tests.stations.world import CLAIM, desk

import postroom
from postroom.errors import NotInSphere, ProgramInvalid, PropertyInvalid, SphereAborted, SphereOver
from postroom.room import Postroom
from postroom.stations.procedures.evaluation import evaluate_here
from postroom.store.kernel.queues import SYSTEM_ERRORS

from .invariants import check

PROGRAM = """
create queue orders kind basic mode persistent
create queue bills kind basic mode persistent
create queue notes kind basic mode persistent
create rule bill for orders
if (//amount) then do enqueue <bill>{xs:integer(//amount)}</bill> into bills
create rule refuse for orders
if (//refused) then do abort sphere concat("no ", string(//refused))
create rule note for bills
if (/bill > 100) then do enqueue <note/> into notes
"""
GRAPH = """domain d space A : [n: int] space B : [n: int] space C : [n: int]
arc b : A -> B merge arc c : B -> C transform [n: n] => [n: 10 % n]"""
FORMS = f"""\
{CLAIM}counter front at North takes CLAIM from claims
procedure copy at South
  precondition pre : CLAIM
    Amount: < 100
  destination here on pre copy 0 leave
  destination there on pre copy 1 ship North
procedure refuse at South
  precondition pre : CLAIM
    Amount: >= 100
  destination here on pre copy 0 abort "too much"
"""


@pytest.fixture
def room(url: str, tmp_path: Path) -> Iterator[Postroom]:
    with postroom.open(url) as opened:
        opened._parts.interpreter.evaluate = evaluate_here
        for station in ("North", "South"):
            opened._parts.network.add_station(station, "control", None)
        opened.queues.create("claims")
        files = {"shop.demaq": PROGRAM, "stocks.flow": GRAPH, "claims.form": FORMS}
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        opened.load(*(tmp_path / name for name in files))
        evaluate_rules_and_arcs_here(opened)
        opened._parts.runner._stages += (opened._parts.interpreter, opened._parts.counter_stage)
        yield opened
        check(opened)
        assert opened.journal.verify().differences == ()


def bodies(room: Postroom, queue: str) -> list[str]:
    return [message.body for message in room.queues.info(queue)]


def outcomes(room: Postroom, id: str = "s") -> list[tuple[str | None, str]]:
    return [(send.maker, send.outcome) for send in room.spheres.show(id).sends]


# --- only success is processing ---


@pytest.mark.parametrize(
    ("queue", "body"),
    [
        ("orders", "<order><amount>many</amount></order>"),  # FORG0001
        ("claims", "Claimant: Ann\nAmount: much\n"),
    ],
)
def test_a_message_that_led_to_an_error_is_not_processed(room: Postroom, queue: str, body: object) -> None:
    sphere = room.sphere("s")
    sphere.send(queue, body, format="xml" if queue == "orders" else None)
    sphere.require(queue, processing_within=1)
    room.run_until_idle()
    assert len(bodies(room, SYSTEM_ERRORS)) == 1
    assert room.spheres.show("s").sends[0].processed is None
    with pytest.raises(SphereAborted, match="had not processed"):
        sphere.commit()
    assert len(bodies(room, SYSTEM_ERRORS)) == 1, "the error stays, and nothing else is left"


@pytest.mark.parametrize(
    ("queue", "body"),
    [
        ("orders", "<order><amount>7</amount></order>"),
        ("A", {"n": 3}),
        ("claims", "Claimant: Ann\nAmount: 7\n"),
    ],
)
def test_a_message_that_was_worked_on_is_processed(room: Postroom, queue: str, body: object) -> None:
    with room.sphere("s") as sphere:
        sphere.send(queue, body, format="xml" if queue == "orders" else None)
        sphere.require(queue, processing_within=60)
        room.run_until_idle()
    assert room.spheres.show("s").sends[0].processed is not None
    assert bodies(room, SYSTEM_ERRORS) == []


# --- undo ---


def test_what_a_plain_rule_made_is_withdrawn_if_nobody_has_taken_it(room: Postroom) -> None:
    sphere = room.sphere("s")
    sphere.send("orders", "<order><amount>700</amount></order>", format="xml")
    room.run_until_idle()
    assert bodies(room, "notes") == ["<note/>"]
    sphere.abort()
    assert bodies(room, "bills") == bodies(room, "notes") == bodies(room, SYSTEM_ERRORS) == []
    assert outcomes(room) == [(None, "passed on"), ("rule bill", "passed on"), ("rule note", "withdrawn")]


def test_what_a_plain_rule_made_and_someone_has_is_named(room: Postroom) -> None:
    sphere = room.sphere("s")
    sphere.send("orders", "<order><amount>70</amount></order>", format="xml")
    room.run_until_idle()
    sphere.send("orders", "<order><amount>7</amount></order>", format="xml")
    (bill,) = [room.queues.history("bills").messages[0]]
    sphere.abort("as planned")
    assert outcomes(room)[:2] == [(None, "passed on"), ("rule bill", "passed on")], "a rule has used it up"
    assert bill.body == "<bill>70</bill>"
    again = room.sphere("t")
    again.send("A", {"n": 3})
    room.run_until_idle()
    taken = room.receive("C").message
    assert taken is not None
    again.abort("as planned")
    told = room.spheres.show("t")
    assert [(send.maker, send.outcome) for send in told.sends if send.key == taken.key] == [("arc c", "stands")]
    (error,) = bodies(room, SYSTEM_ERRORS)
    assert "<class>system</class><code>sphere-left</code>" in error
    assert "sphere t was aborted, and arc c made it, someone has taken it, and nobody said what undoes it" in error
    assert f'key="{taken.key}"' in error


def test_what_arcs_made_is_withdrawn(room: Postroom) -> None:
    sphere = room.sphere("s")
    sphere.send("A", {"n": 3})
    room.run_until_idle()
    assert bodies(room, "C") == ['{"n":1}']
    sphere.abort()
    assert bodies(room, "C") == bodies(room, SYSTEM_ERRORS) == []


def test_what_a_counter_made_is_withdrawn_from_the_mailbox(room: Postroom) -> None:
    sphere = room.sphere("s")
    sphere.send("claims", "Claimant: Ann\nAmount: 7\n")
    room.run_until_idle()
    sphere.abort()
    assert list(desk(room, "North").get()) == []
    assert outcomes(room) == [(None, "passed on"), ("counter front", "withdrawn")]


def test_what_a_procedure_made_is_withdrawn_and_what_was_fetched_is_named(room: Postroom) -> None:
    agency = desk(room, "North")
    for id, fetched in (("s", False), ("t", True)):
        sphere = room.sphere(id)
        sphere.mail(agency, "South", "CLAIM", {"Claimant": "Ann", "Amount": 7})
        room.run_until_idle()
        if fetched:
            assert len(agency.get()) == 1
        sphere.abort()
        assert ("procedure copy", "stands" if fetched else "withdrawn") in outcomes(room, id)
        assert list(agency.get()) == []
    (error,) = bodies(room, SYSTEM_ERRORS)
    assert "procedure copy made it" in error


def test_what_is_made_of_a_compensation_stands(room: Postroom) -> None:
    sphere = room.sphere("s")
    undo = postroom.Compensation("<order><amount>8</amount></order>", format="xml")
    sphere.send("orders", "<order><amount>7</amount></order>", format="xml", compensation=undo)
    room.run_until_idle()
    sphere.abort()
    room.run_until_idle()
    assert room.queues.info("bills").messages == []
    assert [message.body for message in room.queues.history("bills")][-1] == "<bill>8</bill>"


def test_a_command_that_has_run_is_named(room: Postroom, tmp_path: Path) -> None:
    description = tmp_path / "tree.qdl"
    description.write_text('01 INPUT-QUEUE (BELL) PASSWORD IS "PW" COMMAND LINE IS "true"\n99\n')
    room.load(description)
    sphere = room.sphere("s")
    sphere.send("BELL", "ring", compensation="do not ring")
    room.run_until_idle()
    sphere.abort()
    (send,) = room.spheres.show("s").sends
    assert (send.outcome, send.why) == ("withdrawn", f"the command of {send.recipient} has run")
    assert f"the command of {send.recipient} has run" in bodies(room, SYSTEM_ERRORS)[0]


# --- votes ---


def test_a_rule_votes_against_the_sphere_of_its_message(room: Postroom) -> None:
    sphere = room.sphere("s")
    sphere.send("orders", "<order><amount>7</amount><refused>credit</refused></order>", format="xml")
    room.run_until_idle()
    assert room.spheres.show("s").sphere.reason == "no credit"
    with pytest.raises(SphereOver):
        sphere.commit()
    room.spheres.compensate()
    assert (sphere.state, bodies(room, "bills")) == ("ABORTED", [])


def test_a_vote_outside_of_a_sphere_does_nothing(room: Postroom) -> None:
    room.send("orders", "<order><refused>credit</refused></order>", format="xml")
    assert room.run_until_idle() == 1
    assert bodies(room, SYSTEM_ERRORS) == []


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ("do abort", "sphere"),
        ('do abort "x"', "sphere"),
        ("do enqueue (do abort sphere 'x') into notes", "do abort cannot stand"),
        ("do enqueue <a/> into notes with sphere value 's'", "set by the system"),
    ],
)
def test_votes_and_properties_that_are_wrong_are_refused(room: Postroom, tmp_path: Path, action: str, why: str) -> None:
    file = tmp_path / "other.demaq"
    file.write_text(f"create module other\ncreate rule bad for notes\nif (/note) then {action}\n")
    with pytest.raises(ProgramInvalid, match=why):
        room.load(file)


def test_a_procedure_votes_against_the_sphere_of_its_message(room: Postroom) -> None:
    sphere = room.sphere("s")
    sphere.mail(desk(room, "North"), "South", "CLAIM", {"Claimant": "Ann", "Amount": 700})
    room.run_until_idle()
    assert room.spheres.show("s").sphere.reason == "too much"
    with pytest.raises(SphereOver):
        sphere.commit()


# --- nobody says that a message belongs to a sphere but the sphere ---


def test_a_forged_membership_is_refused(room: Postroom) -> None:
    with room.sphere("s"):
        with pytest.raises(PropertyInvalid, match="only a sphere sets it"):
            room.send("claims", "x", properties={"sphere": "s"})
        with pytest.raises(PropertyInvalid, match="only a sphere sets it"):
            room.send_many("claims", ["x"], properties={"sphere": "s"})


def test_whoever_acknowledges_what_no_sphere_waits_for_is_told(room: Postroom) -> None:
    with room.sphere("s") as sphere:
        sphere.send("claims", "x", when="commit")
    message = room.receive("claims").message
    assert message is not None
    with pytest.raises(NotInSphere):
        message.acknowledge()
