"""Counters at work: messages of queues become mail, mail goes into queues; once, in order, and with an error if not."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.faults.here import evaluate_here as evaluate_rules_and_arcs_here
from tests.stations.counters.claims import CLAIM, IN, JSON, LINES, NOTE, OUT, errors, load
from tests.stations.world import desk

import postroom
from postroom import faults
from postroom.model.key import key_number, key_text
from postroom.room import Postroom
from postroom.stations.places.network import CONTROL
from postroom.stations.procedures.evaluation import evaluate_here
from postroom.stations.queries.node_answers import Part, read_part
from postroom.stations.queries.query import Scope, _Query
from postroom.stations.queries.reading import Plan
from postroom.store.kernel.queues import SYSTEM_ERRORS
from postroom.store.tables.tracking import MAILBOXES

XML = (
    "<CLAIM><Claimant>Ann</Claimant><Amount>12.50</Amount><Loss_Date>2026-11-30</Loss_Date>"
    "<Items>roof</Items><Items>door</Items></CLAIM>"
)


@pytest.mark.parametrize(
    ("body", "format"), [(LINES, "text"), (XML, "xml"), (JSON, "json")], ids=["lines", "xml", "json"]
)
@pytest.mark.parametrize("type", [None, "CLAIM"])
def test_a_message_becomes_mail_whatever_it_is_written_in(
    room: Postroom, tmp_path: Path, body: Any, format: str, type: str | None
) -> None:
    load(room, tmp_path, CLAIM + IN)
    sent = room.send("claims", body, format=format, type=type)
    assert room.operations.lag() == 1
    assert room.run_until_idle() == 1
    north = desk(room, "North")
    (key,) = north.get()
    image = north.show(key)
    assert image.fields["Amount"] == pytest.approx(12.50)
    said = {name: str(image.fields[name]) for name in ("Claimant", "Amount", "Loss Date", "Items", "Clerk", "KEY")}
    assert said == {
        "Claimant": "Ann",
        "Amount": "12.50",
        "Loss Date": "2026-11-30",
        "Items": "('roof', 'door')",
        "Clerk": "North",
        "KEY": key,
    }
    assert room.show(key).cause == sent.key
    assert room.show(sent.key).processed is not None
    first = room.trace(key)[0]
    assert (first.verb, first.target, first.by) == ("create", "mailbox:North", "counter front")
    assert first.detail == {"counter": "front", "from": "claims", "cause": sent.key}
    assert [event.by for event in room.trace(sent.key) if event.verb == "take"] == ["counter front"]
    assert [found.key for found in north.query("CLAIM", Claimant="Ann")] == [key]


MISFITS = [
    ("Claimant: Ann", "text", None, "body-mismatch", "is required"),
    ("Claimant: Ann\nAmount: much", "text", None, "body-mismatch", "takes a number"),
    ("Claimant: Ann\nAmount: 1\nColour: red", "text", None, "body-mismatch", "no field"),
    ("roof damaged", "text", None, "body-mismatch", "line 1 is not"),
    ("<claim/>", "xml", None, "body-mismatch", "root element"),
    ('["Ann", 1]', "json", None, "body-mismatch", "not an object"),
    ('{"Subject": "x"}', "json", "NOTE", "body-mismatch", "of type NOTE"),
]


def test_what_does_not_fit_is_an_error_message_and_holds_up_nothing(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path, CLAIM + NOTE + IN)
    for body, format, type, _, _ in MISFITS:
        room.send("claims", body, format=format, type=type)
    last = room.send("claims", JSON)
    room.run_until_idle()
    (mail,) = desk(room, "North").mail()
    assert room.show(mail.key).cause == last.key
    told = errors(room)
    assert len(told) == len(MISFITS)
    for said, (_, _, _, code, why) in zip(told, MISFITS, strict=True):
        assert f"<code>{code}</code>" in said
        assert why in said
        assert "<rule>front</rule><queue>claims</queue>" in said
    assert [message.cause for message in room.queues.info(SYSTEM_ERRORS)] == [
        each.key for each in room.queues.history("claims")
    ][:7]


def test_messages_are_taken_in_their_order(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path, CLAIM + IN)
    sent = room.send_many("claims", [{"Claimant": f"c{number}", "Amount": number} for number in range(250)]).keys
    room.run_until_idle(step_messages=120)
    north = desk(room, "North")
    assert [room.show(key).cause for key in north.get()] == list(sent)


def test_what_the_system_writes_is_written_anew(room: Postroom, tmp_path: Path) -> None:
    """What has gone out at one counter can come in at another."""
    load(room, tmp_path, CLAIM + IN)
    room.send("claims", {**JSON, "KEY": "00009.00009", "DATE": "1999-01-01", "Clerk": "someone"})
    room.run_until_idle()
    (key,) = desk(room, "North").get()
    image = desk(room, "North").show(key)
    assert (image.fields["KEY"], image.fields["Clerk"]) == (key, "North")
    assert str(image.fields["DATE"]) != "1999-01-01"


def test_a_queue_on_hold_is_not_taken_from(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path, CLAIM + IN)
    room.send("claims", JSON)
    room.queues.disable("claims", password="letmein")
    assert room.run_until_idle() == 0
    (shown,) = room.stations.counters()
    assert (shown.waiting, shown.state) == (1, "claims is on hold")
    room.queues.enable("claims", password="letmein")
    assert room.run_until_idle() == 1


def test_a_message_that_was_damaged_is_set_aside(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path, CLAIM + IN)
    damaged, sound = room.send("claims", JSON), room.send("claims", JSON)
    change = ("UPDATE messages SET body = ? WHERE key = ?", ("{}", key_number(damaged.key)))
    room.store.transact("send", lambda tx: tx.session.run(*change))
    room.run_until_idle()
    (mail,) = desk(room, "North").mail()
    assert room.show(mail.key).cause == sound.key


def test_mail_goes_into_a_queue(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path, CLAIM + OUT)
    north = desk(room, "North")
    keys = [north.create("CLAIM", Claimant=name, Amount=1) for name in ("Ann", "Bob")]
    for key in keys:
        north.ship(key, "Archive")
    assert room.operations.lag() == 2
    assert room.run_until_idle() == 2
    found = list(room.queues.info("settled"))
    assert [message.cause for message in found] == keys
    assert [message.value["Claimant"] for message in found] == ["Ann", "Bob"]
    assert {(message.type, message.format) for message in found} == {("CLAIM", "json")}
    assert [event.by for event in room.trace(found[0].key)] == ["counter back"]
    assert desk(room, "Archive").mail() == []
    assert [image.key for image in desk(room, "Archive").query("CLAIM")] == []


def test_mail_passes_the_admission_of_its_queue(room: Postroom, tmp_path: Path) -> None:
    (tmp_path / "rules.demaq").write_text(
        "create queue checked kind basic mode persistent\n"
        "create property amount as xs:decimal fixed queue checked value /CLAIM/Amount\n"
        "create slicing byAmount on amount\n"
    )
    (tmp_path / "claims.form").write_text(CLAIM + "counter back at Archive gives to checked\n")
    room.load(tmp_path / "claims.form", tmp_path / "rules.demaq")
    archive = desk(room, "North")
    archive.ship(archive.create("CLAIM", Claimant="Ann", Amount="7.5"), "Archive")
    room.run_until_idle()
    (message,) = room.queues.info("checked")
    assert message.properties["amount"] == "7.5"
    assert [each.key for each in room.journal.slice("byAmount", "7.5")] == [message.key]


def test_mail_waits_for_a_queue_on_hold(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path, CLAIM + OUT)
    north = desk(room, "North")
    key = north.create("CLAIM", Claimant="Ann", Amount=1)
    north.ship(key, "Archive")
    room.queues.disable("settled", password="letmein", input_only=True)
    room.run_until_idle()
    assert [mail.key for mail in desk(room, "Archive").mail()] == [key]
    (shown,) = room.stations.counters()
    assert shown.state == "waits for settled, which is on hold"
    room.queues.enable("settled", password="letmein")
    room.run_until_idle()
    assert [message.cause for message in room.queues.info("settled")] == [key]


def test_mail_that_a_crash_has_left_on_its_way_is_brought(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path, CLAIM + OUT)
    north = desk(room, "North")
    key = north.create("CLAIM", Claimant="Ann", Amount=1)
    faults.arm("arrive.begun", "raise")
    with pytest.raises(faults.FaultInjected):
        north.ship(key, "Archive")
    assert room.operations.lag() == 0
    room.run_until_idle()
    assert [message.cause for message in room.queues.info("settled")] == [key]


def test_a_node_that_does_not_answer_holds_up_no_counter(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path, CLAIM + IN + OUT)
    archive = desk(room, "Archive")
    archive.ship(archive.create("CLAIM", Claimant="Ann", Amount=1), "Archive")
    room.send("claims", JSON)
    room._parts.network._forget("far")
    (tmp_path / "far.db").rename(tmp_path / "gone.db")
    assert room.run_until_idle() == 2


def test_what_belongs_to_a_sphere_stays_in_it(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path, CLAIM + IN + OUT)
    with room.sphere("s1") as sphere:
        sphere.send("claims", JSON)
        sphere.send("claims", {"Claimant": "Bob"})
        room.run_until_idle()
        north = desk(room, "North")
        (key,) = north.get()
        assert room.show(key).properties["sphere"] == "s1"
        north.ship(key, "Archive")
        room.run_until_idle()
    (given,) = room.queues.info("settled")
    (error,) = room.queues.info(SYSTEM_ERRORS)
    assert given.properties["sphere"] == "s1" == error.properties["sphere"]


@pytest.mark.parametrize("taken", [True, False], ids=["taken", "untouched"])
def test_a_sphere_that_fails_undoes_what_a_counter_has_taken(here: Postroom, tmp_path: Path, taken: bool) -> None:
    load(here, tmp_path, CLAIM + IN + OUT)
    sender, undo = desk(here, "North"), {"Claimant": "Ann", "Amount": "-12.50"}
    sphere = here.sphere("s1")
    sphere.send("claims", JSON, compensation=undo)
    sphere.mail(sender, "Archive", "CLAIM", {"Claimant": "Bob", "Amount": 1}, compensation=undo)
    if taken:
        here.run_until_idle()
    sphere.abort()
    here.run_until_idle()
    outcomes = [show.outcome for show in here.spheres.show("s1").sends]
    assert outcomes == (["compensated"] * 2 + ["withdrawn"] * 2 if taken else ["withdrawn"] * 2)
    sender.get()
    came = sorted(str(image.fields["Amount"]) for image in sender.messages("CLAIM"))
    assert came == (["-12.50"] if taken else [])  # what the counter had made nobody has taken: it is gone
    left = [message.value["Amount"] for message in here.queues.info("settled")]
    assert left == (["-12.50"] if taken else [])
    assert errors(here) == []


def test_a_whole_way_with_a_procedure_between_two_counters(room: Postroom, tmp_path: Path) -> None:
    forward = (
        "procedure forward at North\n  precondition claim : CLAIM\n    Amount: > 10\n"
        "  destination on on claim copy 0 ship Archive\n"
    )
    load(room, tmp_path, CLAIM + IN + OUT + forward)
    large, small = room.send("claims", LINES), room.send("claims", {"Claimant": "Bob", "Amount": 1})
    room.run_until_idle()
    (given,) = room.queues.info("settled")
    assert given.cause is not None
    assert room.show(given.cause).cause == large.key
    assert [room.show(mail.key).cause for mail in desk(room, "North").mail()] == [small.key]


@pytest.mark.slow
def test_while_others_send_get_ship_and_load_each_message_is_handed_over_once(
    room: Postroom, url: str, tmp_path: Path
) -> None:
    load(room, tmp_path, CLAIM + NOTE + IN + OUT)
    many, done = 60, threading.Event()
    sent: list[str] = []

    def send() -> None:
        with postroom.open(url) as mine:
            for number in range(many):
                sent.append(mine.send("claims", {"Claimant": f"c{number}", "Amount": number}).key)

    def move() -> None:
        with postroom.open(url) as mine:
            north, left = desk(mine, "North"), 2 * many
            while left and not done.is_set():
                for key in north.get():
                    north.ship(key, "Archive")
                    left -= 1

    def change() -> None:
        with postroom.open(url) as mine:
            for number in itertools.count():
                if done.is_set():
                    return
                load(mine, tmp_path, NOTE.replace("____", "_" * (5 + number % 50)), "note.form")
                desk(mine, "Archive").query("CLAIM")

    with postroom.open(url) as engine, ThreadPoolExecutor() as pool:
        engine._parts.interpreter.evaluate = evaluate_here
        running = pool.submit(engine.run)
        others = pool.submit(change)
        try:
            for each in [pool.submit(send), pool.submit(send), pool.submit(move)]:
                each.result(timeout=60)
            until(lambda: room.operations.lag() == 0)
        finally:
            done.set()
            engine.stop()
        running.result(timeout=30)
        others.result(timeout=30)
    causes = [room.show(str(message.cause)).cause for message in room.queues.info("settled")]
    assert sorted(map(str, causes)) == sorted(sent)
    assert errors(room) == []


def until(ready: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.05)


def opened(room: Postroom) -> _Query:
    """A query over the control node that is open, and yet to be read."""
    query = _Query(room._parts.network, Plan("CLAIM", ()), Scope((CONTROL,), None), "someone", 60)
    query._begin()
    query._open_node(CONTROL)
    query.undecided = room.store.transact("query-open", query._open_mailboxes)
    return query


def in_mailboxes(room: Postroom, query: _Query) -> list[str]:
    rows = read_part(0, Part(CONTROL, room._parts.network.url, MAILBOXES), query.number, Plan("CLAIM", ()), None).rows()
    assert not [row["error"] for row in rows if row["error"]]
    return [key_text(row["key"]) for row in rows]


def test_a_query_sees_mail_as_it_was_when_it_was_opened(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path, CLAIM + IN + OUT)
    archive = desk(room, "Archive")
    key = archive.create("CLAIM", Claimant="Ann", Amount=1)
    archive.ship(key, "Archive")
    room.send("claims", JSON)
    before = opened(room)
    room.run_until_idle()
    after = opened(room)
    assert in_mailboxes(room, before) == [key]
    assert in_mailboxes(room, after) == [mail.key for mail in desk(room, "North").mail()] != [key]
    assert in_mailboxes(room, before) == [key], "read again, it says the same"
    for query in (before, after):
        query.close()


GRAPH = """\
domain claims
space Intake : [Claimant: string, Amount: decimal]
space Desk : [Claimant: string, Amount: decimal]
arc large : Intake -> Desk select [Amount: a > 10]
space Out : [Claimant: string, Clerk: string, Amount: decimal]
"""


RULE = (
    "create rule in for INP_0000 if (/CLAIM/Amount > 0) then do enqueue <c>{/CLAIM/(Claimant|Amount)}</c> into Intake\n"
)


def test_one_claim_as_lines_xml_tuple_and_form(here: Postroom, tmp_path: Path) -> None:
    """From a tree of queues by a rule, an arc and a counter to a desk, and by another counter into a space."""
    files = {
        "tree.qdl": "01 INPUT-QUEUE (CLAIMS)\n99\n",
        "claims.flow": GRAPH,
        "in.demaq": RULE,
        "claims.form": f"{CLAIM}counter front at North takes CLAIM from Desk\ncounter back at Archive gives to Out\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    here.load(*(tmp_path / name for name in files))
    evaluate_rules_and_arcs_here(here)
    here._parts.runner._stages += (here._parts.interpreter, here._parts.counter_stage)
    here.send("CLAIMS", "Claimant: Ann\nAmount: 12.50\n", type="CLAIM")
    here.send("CLAIMS", "Claimant: Bob\nAmount: 5\n", type="CLAIM")
    here.run_until_idle()
    north = desk(here, "North")
    (key,) = north.get()
    north.ship(key, "Archive")
    here.run_until_idle()
    (given,) = here.queues.info("Out")
    assert given.value == {"Claimant": "Ann", "Clerk": "North", "Amount": "12.50"}
    assert given.cause == key
    made = here.trace(key)[0]
    assert made.detail is not None
    assert (made.by, made.detail["from"]) == ("counter front", "Desk")
    taken = here.trace(str(made.detail["cause"]))  # events that were taken are not kept, and can be traced
    assert [(event.verb, event.by) for event in taken] == [("put", "arc large"), ("take", "counter front")]
