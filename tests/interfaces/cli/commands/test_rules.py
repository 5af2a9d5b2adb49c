"""Commands on rule programs, as a person and as a program sees them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.rules.conftest import without_spark

import postroom

from ...conftest import Run

PROGRAM = """create queue a kind basic mode persistent
create queue b kind basic mode persistent
create property k as xs:string queue a value string(//k)
create slicing s on k
create collection c
create rule pass for a if (/x) then do enqueue <y/> into b
create rule done for s if (/done) then do reset
"""


@pytest.fixture
def shop(run: Run, tmp_path: Path) -> Run:
    (tmp_path / "shop.demaq").write_text(PROGRAM)
    assert run("load", "shop.demaq").code == 0
    return run


def processed(tmp_path: Path) -> None:
    with postroom.open(tmp_path / "postroom.db") as room:
        without_spark(room).run_until_idle()


def sent(run: Run, body: str, queue: str = "a") -> str:
    key: str = run("send", queue, "--format", "xml", "--body", body, "--json").json["key"]
    return key


def test_load_tells_what_came_and_what_changed(run: Run, tmp_path: Path) -> None:
    program = tmp_path / "shop.demaq"
    program.write_text(PROGRAM)
    first = run("load", "shop.demaq")
    assert first.out.startswith("version 1: 8 added, 0 kept, 0 removed\nadded: module shop, queue a, queue b,")
    program.write_text(PROGRAM.replace("<y/>", "<z/>").replace("create collection c\n", "\n"))
    again = run("load", "shop.demaq", "--json").json
    assert (again["version"], again["changed"], again["removed"]) == (2, ["rule pass"], ["collection c"])
    assert again["status"] == "00"


def test_definitions_are_written_to_files_that_load_again(shop: Run, tmp_path: Path) -> None:
    assert shop("catalog", "--write", "copy").out == "copy/shop.demaq\n"
    assert shop("--room", "other.db", "load", "copy/shop.demaq").code == 0
    assert shop("--room", "other.db", "catalog", "--write", "again", "--json").json["files"] == ["shop.demaq"]
    assert (tmp_path / "again" / "shop.demaq").read_text() == (tmp_path / "copy" / "shop.demaq").read_text()


def test_nothing_is_written_over_files(shop: Run, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    told = shop("catalog", "--write", "copy")
    assert told.code == 1
    assert "argument-invalid" in told.err
    assert "copy: File exists" in told.err
    assert list((tmp_path / "copy").iterdir()) == []


def test_load_check_lists_every_problem_and_makes_no_room(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.demaq").write_text(
        "create rule one for a if (/x) then do enqueue . into b\ncreate rule two for b if (/x) then do reset"
    )
    told = run("load", "--check", "bad.demaq")
    assert told.code == 1
    assert told.err.count("postroom: program-invalid: bad.demaq:") == 4
    assert "bad.demaq:1:1: rule one: no queue or slicing a" in told.err
    assert "[reset-slicing]" in told.err
    shaped = run("load", "--check", "bad.demaq", "--json")
    assert (shaped.code, shaped.json["status"], len(shaped.json["problems"])) == (1, "99", 4)
    (tmp_path / "good.demaq").write_text(PROGRAM)
    assert run("load", "--check", "good.demaq").out == "8 entries, no problem found; nothing was loaded\n"
    assert not (tmp_path / "postroom.db").exists()


def test_load_check_knows_the_room_there_is(shop: Run, tmp_path: Path) -> None:
    (tmp_path / "more.demaq").write_text("create rule more for b if (/y) then do enqueue . into a")
    assert shop("load", "--check", "more.demaq").code == 0
    assert shop("load", "--check", "more.demaq", "--json").json == {"status": "00", "count": 2}


def test_a_refused_load_is_one_line_and_a_code(shop: Run, tmp_path: Path) -> None:
    (tmp_path / "shop.demaq").write_text("create rule r for nowhere if (/x) then do enqueue . into no")
    told = shop("load", "shop.demaq")
    assert (told.code, told.out, told.err.count("\n")) == (1, "", 1)
    assert told.err.startswith("postroom: program-invalid: shop.demaq:1:1:")
    assert "(and 1 more: postroom load --check lists them)" in told.err
    error = shop("load", "shop.demaq", "--json").json["error"]
    assert (error["code"], error["happened"]) == ("program-invalid", "no")


def test_a_slicing_in_use_goes_with_drop_alone(shop: Run, tmp_path: Path) -> None:
    sent(shop, "<x><k>1</k></x>")
    (tmp_path / "shop.demaq").write_text(
        "create queue a kind basic mode persistent create queue b kind basic mode persistent"
    )
    assert shop("load", "shop.demaq").err.startswith(
        "postroom: slicing-in-use: slicing s cannot be removed: its slice '1'"
    )
    assert shop("load", "--drop", "shop.demaq").code == 0


def test_a_queue_in_use_stays(shop: Run, tmp_path: Path) -> None:
    sent(shop, "<y/>", "b")
    (tmp_path / "shop.demaq").write_text(
        PROGRAM.replace("create queue b kind basic mode persistent\n", "").replace("into b", "into a")
    )
    assert shop("load", "shop.demaq").err.startswith("postroom: queue-in-use: b cannot be removed: it has 1")


def test_catalog_lists_what_is_defined(shop: Run) -> None:
    lines = shop("catalog").out.splitlines()
    assert lines[0].split() == ["what", "name", "where", "version", "since", "by"]
    assert [line.split()[:3] for line in lines[1:3]] == [
        ["module", "shop", "shop.demaq:1:1"],
        ["queue", "a", "shop.demaq:1:1"],
    ]
    found = shop("catalog", "--json").json["definitions"]
    assert [each["what"] for each in found] == [
        "module",
        "queue",
        "queue",
        "property",
        "slicing",
        "collection",
        "rule",
        "rule",
    ]
    one = shop("catalog", "pass")
    assert "body: if (/x) then do enqueue <y/> into b" in one.out
    assert [each["name"] for each in shop("catalog", "pass", "--json").json["definitions"]] == ["pass"]
    assert shop("catalog", "nothing").err.startswith(
        "postroom: definition-unknown: there is no definition nothing (postroom"
    )
    assert shop("catalog", "nothing").code == 1


def test_catalog_of_an_empty_room_says_what_to_do(run: Run) -> None:
    run("queue", "create", "q")
    assert run("catalog").err == "nothing is defined yet; load definitions with: postroom load FILE\n"
    assert run("catalog", "--json").json == {"status": "00", "definitions": []}


def test_explain_tells_what_a_rule_became(shop: Run) -> None:
    told = shop("explain", "done", "--no-plan")
    assert told.out.startswith(
        "rule done (shop.demaq:7:1) for slicing s\nwatches: a\nreads: nothing\nwrites: nothing\nresets: s\n"
    )
    assert "query for messages of a (all rules of the queue):" in told.out
    shaped = shop("explain", "pass", "--no-plan", "--json").json
    assert (shaped["rule"], shaped["writes"], list(shaped["queries"])) == ("pass", ["b"], ["a"])
    assert "spark_plan" not in shaped
    unknown = shop("explain", "pas", "--no-plan")
    assert (unknown.code, "did you mean pass?" in unknown.err) == (1, True)


def test_slice_and_why_tell_what_is_held(shop: Run, tmp_path: Path) -> None:
    key = sent(shop, "<x><k>1</k></x>")
    assert key in shop("slice", "s", "1").out
    assert [each["key"] for each in shop("slice", "s", "1", "--json").json["messages"]] == [key]
    assert shop("slice", "s", "2").err == "the slice 2 of s is empty\n"
    assert shop("slice", "s", "2", "--json").json == {"status": "00", "messages": []}
    assert shop("slice", "t", "1").err.startswith("postroom: definition-unknown:")
    waiting = shop("why", key).out
    assert waiting == "held by slice 1 of s, until a rule resets it\nwaits in a to be processed\n"
    processed(tmp_path)
    assert shop("why", key).out == "held by slice 1 of s, until a rule resets it\n"
    assert shop("why", key, "--json").json == {
        "status": "00",
        "key": key,
        "held_by": [{"slicing": "s", "slicekey": "1"}],
        "removable": False,
    }
    assert shop("why", "00001.99999").err.startswith("postroom: message-unknown:")
    assert shop("why", "x").err.startswith("postroom: key-invalid:")


def test_what_waits_for_a_queue_on_hold_is_told_by_every_command(run: Run, tmp_path: Path) -> None:
    program = "create queue in kind basic mode persistent create queue large kind basic mode persistent\n"
    (tmp_path / "p.demaq").write_text(f"{program}create rule sort for in if (//n) then do enqueue <l/> into large\n")
    run("load", "p.demaq")
    run("queue", "password", "large", stdin="pw\n")
    run("disable", "large", stdin="pw\n")
    key = run("send", "in", "--format", "xml", "--body", "<n/>").out.strip()
    assert run("why", key).out == "waits in in to be processed\n"
    processed(tmp_path)
    free = "large is on hold; free it with: postroom enable large\n"
    assert run("why", key).out == f"waits in in: {free}"
    assert run("why", key, "--json").json["waits_for"] == "large"
    assert run("waiting").err.endswith(f"\nin waits: {free}")
    told = "warning  holds       large: on hold (full), and what waits in in must go there first\n"
    assert told in run("doctor", "--brief").out
    assert ["in", "1", "0", "waits", "for", "large"] in [line.split() for line in run("top").out.splitlines()]


def test_sweep_removes_what_nothing_holds(shop: Run, tmp_path: Path) -> None:
    key = sent(shop, "<x><k>1</k></x>")
    sent(shop, "<done><k>1</k></done>")
    assert shop("sweep").out == "0 message(s) removed\n"
    processed(tmp_path)
    assert shop("why", key).out == "nothing holds it: the next sweep removes it (postroom sweep)\n"
    assert shop("sweep", "--json").json == {"status": "00", "removed_count": 2, "kinds": {"messages": 2}}
    assert shop("why", key).err.startswith("postroom: message-gone:")
    assert "take" in shop("trace", key).out


def test_why_of_a_queue_that_keeps_its_history(run: Run) -> None:
    run("queue", "create", "q")
    key = run("send", "q", "--body", "x", "--json").json["key"]
    run("receive", "q")
    assert run("why", key).out == "q keeps its processed messages; change that with: postroom queue mode\n"


def test_try_tells_all_of_a_body_in_a_pipe(shop: Run, tmp_path: Path) -> None:
    sent(shop, "<x><k>1</k></x>")
    (tmp_path / "long.demaq").write_text(f"create rule long for a if (/x) then do enqueue <n>{'1234 ' * 50}</n> into b")
    assert f"<n>{' '.join(['1234'] * 50)} </n>" in shop("try", "long.demaq").out


def test_try_tells_what_would_happen(shop: Run, tmp_path: Path) -> None:
    key = sent(shop, "<x><k>1</k></x>")
    (tmp_path / "new.demaq").write_text(
        "create rule new for a if (/x) then (do enqueue <n>\n  1</n> into b, do reset s key '1')"
    )
    told = shop("try", "new.demaq")
    assert told.out == f"{key} in a:\n  pass: enqueue b: <y/>\n  new: enqueue b: <n> 1</n>\n  new: reset s key 1\n"
    assert told.err == "1 message(s) tried; nothing was changed\n"
    shaped = shop("try", "new.demaq", "--json").json["tried"]
    assert [(each["key"], len(each["actions"])) for each in shaped] == [(key, 3)]
    assert (
        shop("try", "new.demaq", "--since", "2999-01-01").err
        == "0 message(s) tried, 0 working set(s) would be complete; nothing was changed\n"
    )
    assert shop("try", "new.demaq", "--since", "2000-01-01T00:00:00Z").out == told.out
    assert shop("try", "new.demaq", "--since", "soon").err.startswith("postroom: argument-invalid: --since:")
    assert shop("try", "missing.demaq").err.startswith("postroom: file-unreadable:")
    assert shop("try", "new.txt").err.startswith("postroom: language-unknown:")
    assert shop("info", "b", "--json").json["messages"] == []


def test_collection_load_replaces_master_data(shop: Run, tmp_path: Path) -> None:
    (tmp_path / "one.xml").write_text("<p/>")
    (tmp_path / "two.xml").write_text("<p>2</p>")
    (tmp_path / "bad.xml").write_text("<p>")
    assert shop("collection", "load", "c", "one.xml", "two.xml").out == "version 2: 2 document(s) in c\n"
    assert shop("collection", "load", "c", "one.xml", "--json").json == {
        "status": "00",
        "version": 3,
        "document_count": 1,
    }
    assert shop("collection", "load", "d", "one.xml").err.startswith(
        "postroom: collection-unknown: there is no collection d"
    )
    assert shop("collection", "load", "c", "bad.xml").err.startswith("postroom: xml-malformed:")
    assert shop("collection", "load", "c", "none.xml").err.startswith("postroom: file-unreadable:")


def test_a_door_refuses_with_its_own_code(shop: Run, tmp_path: Path) -> None:
    (tmp_path / "more.demaq").write_text(
        "create queue n kind basic mode persistent create property n as xs:integer queue n value //n"
    )
    shop("load", "more.demaq")
    refused = shop("send", "n", "--format", "xml", "--body", "<x><n>no</n></x>", "--json")
    assert refused.code == 1
    assert (refused.json["status"], refused.json["error"]["code"]) == ("50", "entry-refused")
    assert "FORG0001" in refused.err
