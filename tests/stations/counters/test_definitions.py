"""Counters: messages of queues as mail, mail as messages of queues; once, in their order, and never in silence."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.faults.here import evaluate_here as evaluate_rules_and_arcs_here
from tests.stations.world import desk

import postroom
from postroom import faults
from postroom.engine.steps.failures import SYSTEM_ERRORS
from postroom.errors import DefinitionUnknown, FormInvalid, QueueWatched, StationInUse
from postroom.model.definitions import Position
from postroom.model.key import key_number, key_text
from postroom.room import Postroom
from postroom.stations.counters import definitions as counters
from postroom.stations.counters.definitions import parse
from postroom.stations.forms.reader import read
from postroom.stations.places.network import CONTROL
from postroom.stations.procedures.evaluation import evaluate_here
from postroom.stations.queries.node_answers import Part, read_part
from postroom.stations.queries.query import Scope, _Query
from postroom.stations.queries.reading import Plan
from postroom.store.tables.tracking import MAILBOXES

CLAIM = """\
type CLAIM
| Claimant: ____________ KEY: ______ DATE: ______ |
| Amount: ______ Loss Date: ________ Clerk: _____ |
| Items: ________________________________________ |
field Claimant string required
field Amount decimal required
field Loss Date date free
field Items list of string free
field Clerk string automatic signature
field KEY key automatic
field DATE date automatic
index Claimant
"""
IN = "counter front at North takes CLAIM from claims\n"
OUT = "counter back at Archive gives to settled\n"
LINES = "Claimant: Ann\nAmount: 12.50\nLoss Date: 2026-11-30\nItems: roof\nItems: door\n"
XML = (
    "<CLAIM><Claimant>Ann</Claimant><Amount>12.50</Amount><Loss_Date>2026-11-30</Loss_Date>"
    "<Items>roof</Items><Items>door</Items></CLAIM>"
)
JSON = {"Claimant": "Ann", "Amount": "12.50", "Loss Date": "2026-11-30", "Items": ["roof", "door"]}


@pytest.fixture
def room(url: str, tmp_path: Path) -> Iterator[Postroom]:
    """North is on a node of its own, Archive on the control node."""
    with postroom.open(url) as room:
        room.add_node("far", str(tmp_path / "far.db"))
        yield furnished(room, "far")


@pytest.fixture
def here(sqlite_url: str) -> Iterator[Postroom]:
    """All in one file, where the store is of no matter."""
    with postroom.open(sqlite_url) as room:
        yield furnished(room, "control")


def furnished(room: Postroom, node: str) -> Postroom:
    room._interpreter.evaluate = evaluate_here
    room._network.add_station("North", node, None)
    room._network.add_station("Archive", "control", None)
    for queue in ("claims", "settled"):
        room.create_queue(queue, password="letmein")
    return room


def load(room: Postroom, folder: Path, text: str, name: str = "claims.form") -> None:
    (folder / name).write_text(text)
    room.load(folder / name)


def errors(room: Postroom) -> list[str]:
    return [message.body for message in room.info(SYSTEM_ERRORS)]


# --- in ---


@pytest.mark.parametrize(
    ("body", "format"), [(LINES, "text"), (XML, "xml"), (JSON, "json")], ids=["lines", "xml", "json"]
)
@pytest.mark.parametrize("type", [None, "CLAIM"])
def test_a_message_becomes_mail_whatever_it_is_written_in(
    room: Postroom, tmp_path: Path, body: Any, format: str, type: str | None
) -> None:
    load(room, tmp_path, CLAIM + IN)
    sent = room.send("claims", body, format=format, type=type)
    assert room.lag() == 1
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
NOTE = "type NOTE\n| Subject: ____ |\nfield Subject string free\n"


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
    assert [message.cause for message in room.info(SYSTEM_ERRORS)] == [each.key for each in room.history("claims")][:7]


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
    room.disable("claims", password="letmein")
    assert room.run_until_idle() == 0
    (shown,) = room.counters()
    assert (shown.waiting, shown.state) == (1, "claims is on hold")
    room.enable("claims", password="letmein")
    assert room.run_until_idle() == 1


def test_a_message_that_was_damaged_is_set_aside(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path, CLAIM + IN)
    damaged, sound = room.send("claims", JSON), room.send("claims", JSON)
    change = ("UPDATE messages SET body = ? WHERE key = ?", ("{}", key_number(damaged.key)))
    room.store.transact("send", lambda tx: tx.session.run(*change))
    room.run_until_idle()
    (mail,) = desk(room, "North").mail()
    assert room.show(mail.key).cause == sound.key


# --- out ---


def test_mail_goes_into_a_queue(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path, CLAIM + OUT)
    north = desk(room, "North")
    keys = [north.create("CLAIM", Claimant=name, Amount=1) for name in ("Ann", "Bob")]
    for key in keys:
        north.ship(key, "Archive")
    assert room.lag() == 2
    assert room.run_until_idle() == 2
    found = list(room.info("settled"))
    assert [message.cause for message in found] == keys
    assert [message.value["Claimant"] for message in found] == ["Ann", "Bob"]
    assert {(message.type, message.format) for message in found} == {("CLAIM", "json")}
    assert [event.by for event in room.trace(found[0].key)] == ["counter back"]
    assert desk(room, "Archive").mail() == []
    assert [image.key for image in desk(room, "Archive").query("CLAIM")] == []


def test_mail_passes_the_doors_of_its_queue(room: Postroom, tmp_path: Path) -> None:
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
    (message,) = room.info("checked")
    assert message.properties["amount"] == "7.5"
    assert [each.key for each in room.slice("byAmount", "7.5")] == [message.key]


def test_mail_waits_for_a_queue_on_hold(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path, CLAIM + OUT)
    north = desk(room, "North")
    key = north.create("CLAIM", Claimant="Ann", Amount=1)
    north.ship(key, "Archive")
    room.disable("settled", password="letmein", input_only=True)
    room.run_until_idle()
    assert [mail.key for mail in desk(room, "Archive").mail()] == [key]
    (shown,) = room.counters()
    assert shown.state == "waits for settled, which is on hold"
    room.enable("settled", password="letmein")
    room.run_until_idle()
    assert [message.cause for message in room.info("settled")] == [key]


def test_mail_that_a_crash_has_left_on_its_way_is_brought(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path, CLAIM + OUT)
    north = desk(room, "North")
    key = north.create("CLAIM", Claimant="Ann", Amount=1)
    faults.arm("arrive.begun", "raise")
    with pytest.raises(faults.FaultInjected):
        north.ship(key, "Archive")
    assert room.lag() == 0
    room.run_until_idle()
    assert [message.cause for message in room.info("settled")] == [key]


def test_a_node_that_does_not_answer_holds_up_no_counter(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path, CLAIM + IN + OUT)
    archive = desk(room, "Archive")
    archive.ship(archive.create("CLAIM", Claimant="Ann", Amount=1), "Archive")
    room.send("claims", JSON)
    room._network._forget("far")
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
    (given,) = room.info("settled")
    (error,) = room.info(SYSTEM_ERRORS)
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
    outcomes = [show.outcome for show in here.show_sphere("s1").sends]
    assert outcomes == (["compensated"] * 2 + ["withdrawn"] * 2 if taken else ["withdrawn"] * 2)
    sender.get()
    came = sorted(str(image.fields["Amount"]) for image in sender.messages("CLAIM"))
    assert came == (["-12.50"] if taken else [])  # what the counter had made nobody has taken: it is gone
    left = [message.value["Amount"] for message in here.info("settled")]
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
    (given,) = room.info("settled")
    assert given.cause is not None
    assert room.show(given.cause).cause == large.key
    assert [room.show(mail.key).cause for mail in desk(room, "North").mail()] == [small.key]


# --- what is refused ---

REFUSED = [
    ("counter-stations", "counter c at Nobody takes CLAIM from claims", "there is no station Nobody"),
    ("counter-types", "counter c at North takes CLAIMS from claims", "there is no type CLAIMS; did you mean CLAIM?"),
    ("counter-queues", "counter c at North takes CLAIM from clams", "there is no queue clams; did you mean claims?"),
    ("counter-queues", "counter c at North gives to station:North", "not for everyone's messages"),
    ("counter-sources", "counter c at North takes CLAIM from claims\n" + IN, "taken by counter c"),
    ("counter-sources", "counter c at Archive gives to claims\n" + OUT, "the mail of Archive are taken by counter c"),
    ("counter-sources", "counter c at North takes CLAIM from ruled", "are taken by rules"),
    ("counter-sources", "counter c at North takes CLAIM from postroom-errors", "taken by people alone"),
    ("counter-types", "counter c at North takes PROCEDURE ERROR from claims", "there is no type PROCEDURE ERROR"),
    ("counter-loops", "counter c at North gives to claims\n" + IN, "would come back to North"),
    ("name-twice", IN + IN, "counter front is already at "),
    ("syntax", "counter c at North", "counter NAME at STATION takes TYPE from QUEUE"),
    ("syntax", "counter c at North takes from claims", "counter NAME at STATION takes TYPE from QUEUE"),
]


@pytest.mark.parametrize(("rule", "text", "what"), REFUSED, ids=[each[0] for each in REFUSED])
def test_what_breaks_a_rule_is_refused_with_its_place(
    here: Postroom, tmp_path: Path, rule: str, text: str, what: str
) -> None:
    (tmp_path / "rules.demaq").write_text(
        "create queue ruled kind basic mode persistent\ncreate rule r for ruled\n"
        "if (true()) then do enqueue <a/> into settled\n"
    )
    here.load(tmp_path / "rules.demaq")
    here.store.transact("station", lambda tx: tx.queues.create("station:North", "station", path="station:North"))
    before = here.catalog()
    with pytest.raises(FormInvalid, match=r"claims\.form:1[34]:1: ") as refusal:
        load(here, tmp_path, CLAIM + text)
    assert what in str(refusal.value)
    assert refusal.value.facts["rule"] == rule
    with pytest.raises(FormInvalid):
        here.check(tmp_path / "claims.form")
    assert here.catalog() == before
    assert here.counters() == []


def test_a_long_loop_is_found(here: Postroom, tmp_path: Path) -> None:
    text = (
        "counter a at North takes CLAIM from claims\ncounter b at North gives to settled\n"
        "counter c at Archive takes CLAIM from settled\ncounter d at Archive gives to claims\n"
    )
    with pytest.raises(FormInvalid, match="counter-loops"):
        load(here, tmp_path, CLAIM + text)


def test_the_mail_of_a_station_with_a_counter_is_not_for_procedures(here: Postroom, tmp_path: Path) -> None:
    load(here, tmp_path, CLAIM + OUT)
    keep = "procedure keep at Archive\n  precondition claim : CLAIM\n"
    with pytest.raises(FormInvalid, match="the mail of Archive is handled by procedure keep") as refusal:
        load(here, tmp_path, keep, "keep.form")
    assert "claims.form:13:1" in str(refusal.value), "the place of the counter, which was there first"
    assert here.procedures() == []


def test_others_may_not_take_what_a_counter_takes(here: Postroom, tmp_path: Path) -> None:
    made = "create queue made kind basic mode persistent\n"
    (tmp_path / "rules.demaq").write_text(made)
    here.load(tmp_path / "rules.demaq")
    load(here, tmp_path, CLAIM + "counter c at North takes CLAIM from made\n")
    (tmp_path / "rules.demaq").write_text(
        f"{made}create rule r for made\nif (true()) then do enqueue <a/> into settled\n"
    )
    with pytest.raises(QueueWatched, match="the messages of made are taken by counters"):
        here.load(tmp_path / "rules.demaq")
    here.remove_counter("c")
    assert here.load(tmp_path / "rules.demaq").added == ("rule r",)


def test_a_station_with_a_counter_cannot_go(here: Postroom, tmp_path: Path) -> None:
    load(here, tmp_path, CLAIM + OUT)
    with pytest.raises(StationInUse, match="counter back is there; postroom counter remove back"):
        here.remove_station("Archive")
    here.remove_counter("back")
    here.remove_station("Archive")
    with pytest.raises(DefinitionUnknown, match="counter back"):
        here.remove_counter("back")


def test_a_queue_that_has_gone_is_told_of_and_may_come_back(here: Postroom, tmp_path: Path) -> None:
    load(here, tmp_path, CLAIM + OUT)
    north = desk(here, "North")
    north.ship(north.create("CLAIM", Claimant="Ann", Amount=1), "Archive")
    here.remove_queue("settled")
    assert here.run_until_idle() == 0
    (shown,) = here.counters()
    assert (shown.waiting, shown.state) == (1, "there is no queue settled any more")
    load(
        here, tmp_path, "type NOTE\n| Text: ___ |\nfield Text string free\n", "note.form"
    )  # this is no matter of the load
    here.create_queue("settled")
    assert here.run_until_idle() == 1


def test_loading_again_changes_nothing_and_a_new_version_replaces(here: Postroom, tmp_path: Path) -> None:
    load(here, tmp_path, CLAIM + IN)
    version = here.store.read(lambda tx: tx.definitions.version())
    load(here, tmp_path, CLAIM + IN)
    assert here.store.read(lambda tx: tx.definitions.version()) == version
    load(here, tmp_path, "counter front at Archive takes CLAIM from settled\n")
    here.send("claims", JSON)
    here.send("settled", JSON)
    assert here.run_until_idle() == 1
    (mail,) = desk(here, "Archive").mail()
    assert mail.type == "CLAIM"


def test_a_path_of_a_description_is_a_queue_and_a_level_is_none(here: Postroom, tmp_path: Path) -> None:
    (tmp_path / "tree.qdl").write_text(
        "01 INPUT-QUEUE (TREE)\n   02 SUB-QUEUE-1 (NORTH)\n   02 SUB-QUEUE-1 (SOUTH)\n99\n"
    )
    (tmp_path / "claims.form").write_text(CLAIM + "counter c at North takes CLAIM from TREE NORTH\n")
    here.load(tmp_path / "tree.qdl", tmp_path / "claims.form")
    here.send(("TREE", "NORTH"), JSON)
    assert here.run_until_idle() == 1
    with pytest.raises(FormInvalid, match="name one, not a level"):
        load(here, tmp_path, "counter d at North takes CLAIM from TREE\n")


def test_what_is_printed_parses_back_to_itself() -> None:
    for row in ("counter a at North takes MEETING NOTE from TREE NORTH", "counter b at Archive gives to settled"):
        assert str(parse(row, Position("f", 1))) == row
    office = read(CLAIM + "  counter  a at North   takes CLAIM from  q # here\n", "f.form")
    (counter,) = office.counters
    assert (str(counter), counter.position) == ("counter a at North takes CLAIM from q", Position("f.form", 13, 3))
    assert office.count == 2


def test_without_a_room_only_what_files_say_is_checked() -> None:
    office = read(CLAIM + IN, "f.form")
    counters.check(counters.proposed(None, office.counters, ["CLAIM"], {}))
    with pytest.raises(FormInvalid, match="counter-types"):
        counters.check(counters.proposed(None, office.counters, [], {}))


# --- others meanwhile ---


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
        engine._interpreter.evaluate = evaluate_here
        running = pool.submit(engine.run)
        others = pool.submit(change)
        try:
            for each in [pool.submit(send), pool.submit(send), pool.submit(move)]:
                each.result(timeout=60)
            until(lambda: room.lag() == 0)
        finally:
            done.set()
            engine.stop()
        running.result(timeout=30)
        others.result(timeout=30)
    causes = [room.show(str(message.cause)).cause for message in room.info("settled")]
    assert sorted(map(str, causes)) == sorted(sent)
    assert errors(room) == []


def until(ready: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.05)


# --- queries by example meanwhile ---


def opened(room: Postroom) -> _Query:
    """A query over the control node that is open, and yet to be read."""
    query = _Query(room._network, Plan("CLAIM", ()), Scope((CONTROL,), None), "someone", 60)
    query._begin()
    query._open_node(CONTROL)
    query.undecided = room.store.transact("query-open", query._open_mailboxes)
    return query


def in_mailboxes(room: Postroom, query: _Query) -> list[str]:
    rows = read_part(0, Part(CONTROL, room._network.url, MAILBOXES), query.number, Plan("CLAIM", ()), None).to_pylist()
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


# --- try ---


def test_try_tells_what_proposed_counters_would_do_and_changes_nothing(here: Postroom, tmp_path: Path) -> None:
    load(here, tmp_path, CLAIM)
    fits, misfit = here.send("claims", LINES), here.send("claims", "Claimant: Bob")
    archive = desk(here, "North")
    mail = archive.create("CLAIM", Claimant="Cid", Amount=3)
    archive.ship(mail, "Archive")
    (tmp_path / "new.form").write_text(IN + OUT)
    before = here.store.read(lambda tx: tx.journal.newest())
    told = [each.as_dict() for each in here.try_out(tmp_path / "new.form")]
    assert [(each["key"], each["queue"]) for each in told] == [
        (fits.key, "claims"),
        (misfit.key, "claims"),
        (mail, "mailbox:Archive"),
    ]
    actions = [each["actions"][0] for each in told]
    assert [(each["action"], each["rule"], each["queue"]) for each in actions] == [
        ("enqueue", "front", "mailbox:North"),
        ("error", "front", SYSTEM_ERRORS),
        ("enqueue", "back", "settled"),
    ]
    assert '"Amount":"12.50"' in actions[0]["body"]
    assert "field 'Amount' is required" in actions[1]["body"]
    assert list(here.try_out(tmp_path / "new.form", since=datetime.now(UTC) + timedelta(hours=1))) == []
    assert here.store.read(lambda tx: tx.journal.newest()) == before
    (tmp_path / "new.form").write_text(IN.replace("North", "Nobody"))
    with pytest.raises(FormInvalid, match="no station Nobody"):
        list(here.try_out(tmp_path / "new.form"))


def test_try_asks_the_doors(here: Postroom, tmp_path: Path) -> None:
    (tmp_path / "claims.flow").write_text("domain d\nspace Out : [Claimant: string, Loss_Date: date]\n")
    here.load(tmp_path / "claims.flow")
    load(here, tmp_path, CLAIM)
    north = desk(here, "North")
    for given in ({"Loss Date": "2026-11-30"}, {}):
        north.ship(north.create("CLAIM", {"Claimant": "Ann", "Amount": 1, **given}), "Archive")
    (tmp_path / "new.form").write_text(OUT.replace("settled", "Out"))
    bodies = [each.as_dict()["actions"][0]["body"] for each in here.try_out(tmp_path / "new.form")]
    assert bodies[0] == '{"Claimant":"Ann","Loss_Date":"2026-11-30"}'
    assert "the field Loss_Date is missing" in bodies[1]


# --- all together ---

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
    here._runner._stages += (here._interpreter, here._handing)
    here.send("CLAIMS", "Claimant: Ann\nAmount: 12.50\n", type="CLAIM")
    here.send("CLAIMS", "Claimant: Bob\nAmount: 5\n", type="CLAIM")
    here.run_until_idle()
    north = desk(here, "North")
    (key,) = north.get()
    north.ship(key, "Archive")
    here.run_until_idle()
    (given,) = here.info("Out")
    assert given.value == {"Claimant": "Ann", "Clerk": "North", "Amount": "12.50"}
    assert given.cause == key
    made = here.trace(key)[0]
    assert made.detail is not None
    assert (made.by, made.detail["from"]) == ("counter front", "Desk")
    taken = here.trace(str(made.detail["cause"]))  # events that were taken are not kept, and can be traced
    assert [(event.verb, event.by) for event in taken] == [("put", "arc large"), ("take", "counter front")]
