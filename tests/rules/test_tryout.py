"""The dry run: it tells what proposed rules would do and changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.rules.conftest import Load

from postroom.errors import ProgramInvalid
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
