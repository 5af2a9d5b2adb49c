"""The dry run: it tells what proposed rules would do and changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.rules.conftest import Load

from postroom.errors import ProgramInvalid, QueueHeld, QueueUnknown, TypeUnknown, XmlMalformed
from postroom.model.message import Draft
from postroom.room import Postroom

QUEUES = """create queue a kind basic mode persistent create queue b kind basic mode persistent
create property p as xs:string queue a value string(//k) create slicing s on p
"""
OLD = f"{QUEUES}create rule old for a if (/x) then do enqueue <old/> into b\n"


def everything(room: Postroom) -> Any:
    tables = (
        "SELECT count(*) FROM journal",
        "SELECT count(*) FROM messages",
        "SELECT count(*) FROM slices",
        "SELECT count(*) FROM entries",
        "SELECT count(*) FROM sets",
        "SELECT count(*) FROM versions",
        "SELECT count(*) FROM timers",
    )
    return room.store.read(lambda tx: [tx.session.rows(statement) for statement in tables])


def tried(room: Postroom, tmp_path: Path, text: str, since: datetime | None = None) -> list[dict[str, Any]]:
    file = tmp_path / "proposed.demaq"
    file.write_text(text)
    before = everything(room)
    found = [each.as_dict() for each in room.definitions.try_out(file, since=since)]
    assert everything(room) == before
    return found


def test_it_tells_what_each_stored_message_would_lead_to(load: Load, tmp_path: Path) -> None:
    room = load(OLD)
    first = room.send("a", "<x><k>1</k></x>", format="xml").key
    room.run_until_idle()
    second = room.send("a", "<y><k>1</k>re-try it -check it</y>", format="xml").key
    found = tried(
        room,
        tmp_path,
        """create module proposed
        create rule new for a if (/y) then (do enqueue . into b, do reset s key "1")
        create rule fails for a if (/x) then do enqueue xs:integer("x") into b""",
    )
    assert [(each["key"], each["queue"]) for each in found] == [(first, "a"), (second, "a")]
    (error,) = found[0]["actions"]
    assert (error["action"], error["rule"], error["queue"]) == ("error", "fails", "postroom-errors")
    assert found[1]["actions"] == [
        {"action": "enqueue", "rule": "new", "queue": "b", "body": "<y><k>1</k>re-try it -check it</y>"},
        {"action": "reset", "rule": "new", "slicing": "s", "slicekey": "1"},
    ]


def test_a_changed_module_is_tried_in_the_place_of_the_old(load: Load, tmp_path: Path) -> None:
    room = load(OLD, module="shop")
    room.send("a", "<x><k>1</k></x>", format="xml")
    found = tried(room, tmp_path, f"create module shop {OLD.replace('<old/>', '<new/>')}")
    assert [action["body"] for each in found for action in each["actions"]] == ["<new/>"]


def test_slices_and_queues_are_read_as_they_are(load: Load, tmp_path: Path) -> None:
    room = load(OLD)
    for _ in range(3):
        room.send("a", "<x><k>1</k></x>", format="xml")
    room.send("b", "<z><k>1</k></z>", format="xml")
    found = tried(
        room,
        tmp_path,
        """create module proposed create rule new for s if (true()) then
        do enqueue <c>{count(qs:slice()), count(qs:queue("b")[z/k = "1"]), count(qs:queue())}</c> into b""",
    )
    bodies = [action["body"] for each in found for action in each["actions"] if action["rule"] == "new"]
    assert len(bodies) == 3
    assert set(bodies) == {"<c>3 1 3</c>"}


def test_an_index_that_is_not_there_yet_finds_what_it_would_find(load: Load, tmp_path: Path) -> None:
    room = load(OLD)
    room.send("a", "<x><k>1</k></x>", format="xml")
    room.send("b", "<z><k>1</k></z>", format="xml")
    found = tried(
        room,
        tmp_path,
        """create module proposed create rule new for a
        if (qs:queue("b")[z/k = "1"] and qs:queue("b")[z/k = qs:message()//k]) then do enqueue <found/> into b""",
    )
    assert [action["body"] for each in found for action in each["actions"] if action["rule"] == "new"] == ["<found/>"]


def test_only_messages_from_a_time_on_are_tried(load: Load, tmp_path: Path) -> None:
    room = load(OLD)
    room.send("a", "<x/>", format="xml")
    now = datetime.now(UTC)
    proposed = "create module proposed create rule new for a if (/x) then do enqueue <new/> into b"
    assert len(tried(room, tmp_path, proposed, now - timedelta(hours=1))) == 1
    assert tried(room, tmp_path, proposed, now + timedelta(hours=1)) == []


def test_messages_that_no_proposed_rule_watches_are_not_looked_at(load: Load, tmp_path: Path) -> None:
    room = load(OLD)
    room.send("a", "<x/>", format="xml")
    assert (
        tried(room, tmp_path, "create module proposed create rule new for b if (/x) then do enqueue <n/> into b") == []
    )
    assert tried(room, tmp_path, "create module proposed create collection c") == []


def test_a_wrong_program_is_refused_as_by_a_load(load: Load, tmp_path: Path) -> None:
    room = load(OLD)
    with pytest.raises(ProgramInvalid):
        tried(room, tmp_path, "create rule new for nowhere if (/x) then do enqueue <n/> into b")


def test_one_message_is_tried_by_the_rules_in_force(room: Postroom, load: Load) -> None:
    """With what its queue works out for it; what a send would refuse is refused, and nothing is changed."""
    load(f"{QUEUES}create rule r for s if (count(qs:slice()) > 1) then do enqueue <many/> into b\n", room)
    room.send("a", "<x><k>1</k></x>", format="xml")
    room.run(until_idle=True)
    before = everything(room)
    tried_one = room.definitions.try_message("a", body="<x><k>1</k></x>", format="xml")
    assert tried_one is not None
    assert tried_one.queue == "a"
    assert room.definitions.try_message("b", body="<x/>", format="xml") is None
    with pytest.raises(XmlMalformed):
        room.definitions.try_message("a", body="<x>", format="xml")
    with pytest.raises(QueueUnknown):
        room.definitions.try_message("nowhere", body="x")
    with pytest.raises(TypeUnknown):
        room.definitions.try_message("a", body="<x/>", format="xml", type="NONE")
    assert everything(room) == before
    room.queues.set_password("a", password="key")
    room.queues.disable("a", password="key")
    with pytest.raises(QueueHeld):
        room.definitions.try_message("a", body="<x/>", format="xml")


def test_one_message_that_fails_says_why(room: Postroom, load: Load) -> None:
    load(f"{QUEUES}create rule r for a if (/x) then do enqueue <y>{{xs:integer(/x/n) + 1}}</y> into b\n", room)
    said = [
        found.as_dict()["actions"][0]
        for number in ("3", "odd")
        if (found := room.definitions.try_message("a", body=f"<x><n>{number}</n></x>", format="xml")) is not None
    ]
    assert [(each["action"], each["queue"]) for each in said] == [("enqueue", "b"), ("error", "postroom-errors")]
    assert said[0]["body"] == "<y>4</y>"
    assert "Cannot convert" in said[1]["body"]


def test_an_edited_dead_letter_enters_a_queue_of_rules_as_a_send_does(room: Postroom, load: Load) -> None:
    """With its properties and slices: else rules would never see it in its slice."""
    load(f"{QUEUES}create rule r for s if (count(qs:slice()) = 2) then do enqueue <two/> into b\n", room)
    room.queues.create("dead")
    key = room.send("dead", "<x><k>wrong</k></x>", format="xml").key
    room.send("a", "<x><k>1</k></x>", format="xml")
    room.run(until_idle=True)
    moved = room.consumers.redrive("dead", to="a", keys=[key], edit=lambda _: "<x><k>1</k></x>")
    assert moved.moves == ((key, "a"),)
    room.run(until_idle=True)
    assert [message.body for message in room.queues.peek("b")] == ["<two/>"]
    assert room.journal.verify().differences == ()


def test_an_edit_may_be_a_whole_draft(room: Postroom) -> None:
    room.queues.create("dead")
    room.queues.create("q")
    key = room.send("dead", "text", properties={"old": 1}).key
    draft = Draft.of({"n": 1}, properties={"new": 2})
    room.consumers.redrive("dead", to="q", keys=[key], edit=lambda _: draft)
    (message,) = room.queues.peek("q")
    assert (message.value, dict(message.properties), message.cause) == ({"n": 1}, {"new": 2}, key)
