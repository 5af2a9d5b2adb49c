"""One vocabulary for JSON. The fixture ``run`` compares every document that any test of commands prints with it."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest
from tests.interfaces import shapes
from tests.interfaces.conftest import Run

from postroom.interfaces.cli import output

FORM = """\
type NOTE
| To: ________ Text: ________ |
field To string required
field Text string free
procedure pair at Desk
  precondition a : NOTE
    Text: <> ""
  precondition b : NOTE
    To: ?a.To
"""


@pytest.fixture
def desk(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("POSTROOM_PASSWORD", "secret")
    for name in ("Desk", "Lamp"):
        assert run("station", "add", name, "--json").code == 0
    with open("note.form", "w") as file:
        file.write(FORM)
    assert run("load", "note.form", "--json").code == 0
    return run


def test_names_mean_one_thing_wherever_stations_say_them(desk: Run) -> None:
    me = ("--as", "Desk", "--json")
    key = desk("create", "NOTE", "To=x", *me).json["key"]
    desk("modify", key, "Text=y", *me)
    places = {
        desk("show", key, "--json").json["queue"],
        desk("locate", key, "--json").json["place"],
        desk("query", "NOTE", *me).json["images"][0]["place"],
        desk("list", *me).json["messages"][0]["place"],
        *(event["to"] for event in desk("trace", key, "--json").json["events"]),
        *(event["to"] for event in desk("journal", "--json").json["events"] if event["key"] == key),
    }
    assert places == {"Desk"}, "one place has one name"
    assert desk("dossier", "add", "d", key, *me).json["added_count"] == 1
    assert desk("dossier", "list", *me).json["dossiers"] == [{"name": "d", "message_count": 1}]
    assert desk("dossier", "remove", "d", key, *me).json["removed_count"] == 1
    assert desk("node", "list", "--json").json["nodes"][0]["station_count"] == 2
    (procedure,) = desk("procedure", "list", "--json").json["procedures"]
    assert isinstance(procedure["version"], int)
    assert "since" not in procedure
    assert desk("procedure", "disable", "pair", "--json").json["is_changed"] is True
    assert desk("procedure", "disable", "pair", "--json").json["is_changed"] is False
    assert desk("waiting", "--json").json == {"status": "00", "waiting": [], "missing": []}
    assert desk("trace", key, "--values", "--json").json["events"][1]["values"] == {"Text": "y"}
    assert desk("show", key, "--edition", "9", "--json").json["error"]["code"] == "argument-invalid"
    for words in (
        ["get"],
        ["mail"],
        ["next"],
        ["copy", key],
        ["ship", key, "Lamp"],
        ["form", "NOTE"],
        ["table", "list"],
    ):
        assert desk(*words, *(me if words[0] != "form" else ("--json",))).json["status"] == "00"


def test_every_name_of_a_shape_is_in_the_vocabulary_and_no_document_escapes() -> None:
    names = shapes.SCHEMA["$defs"]["names"]
    every = [shape for command in shapes.COMMANDS.values() for shape in shapes.several(command)]
    assert all(set(shape["required"]) <= set(shape["properties"]) <= set(names) for shape in every)
    assert not any(shape["additionalProperties"] for shape in every)
    assert all(each["description"] for each in names.values())
    shape = shapes.COMMANDS["locate"]
    assert not shapes.problems({"status": "00", "key": "00001.00001", "place": None}, shape, "d")
    assert shapes.problems({"status": "00", "key": 1, "place": None}, shape, "d") == ["d.key is no string or null: 1"]
    assert shapes.problems({"status": "00", "key": "k"}, shape, "d") == ["d lacks place"]
    assert shapes.problems({"status": "00", "key": "k", "place": "p", "at": "x"}, shape, "d")
    with pytest.raises(AssertionError, match="begins with its status"):
        shapes.check(["locate"], {"key": "k", "place": "p"})
    with pytest.raises(AssertionError, match="no shape for what this command prints"):
        shapes.check(["--room", "locate", "nothing"], {"status": "00", "key": "k", "place": "p"})
    with pytest.raises(AssertionError, match="none of what it may be"):
        shapes.check(["explain", "a"], {"status": "00", "arc": "a", "rule": "r"})
    with pytest.raises(AssertionError, match="lacks tables"):
        shapes.check(["graph"], {"status": "00", "version": 1, "domains": [], "spaces": [], "arcs": []})
    with pytest.raises(AssertionError, match="has lines"):
        shapes.check(["count"], {"status": "00", "queues": [], "lines": 1})


def test_a_name_has_one_type_and_one_meaning() -> None:
    """Once `kept` was a list, a number and a time, and the description had to tell of which command it spoke."""
    names = shapes.SCHEMA["$defs"]["names"]
    assert {name: found for name, each in names.items() if len(found := types(each)) != 1}.keys() == {"body"}
    assert [name for name, each in names.items() if re.search("[;,] of ", each["description"])] == []
    assert list(names) == sorted(names)


def types(name: dict[str, Any]) -> set[str]:
    """The JSON types that a name may have, besides null; the items of a list belong to its type."""
    if "anyOf" in name:
        return set().union(*map(types, name["anyOf"]))
    if "$ref" in name:
        return {"object"}
    some = [name["type"]] if isinstance(name["type"], str) else name["type"]
    items = "/".join(sorted(types(name["items"]))) if "items" in name else ""
    return {f"{each} {items}".strip() for each in some if each != "null"}


def test_a_number_of_things_is_no_list_of_them() -> None:
    names = shapes.SCHEMA["$defs"]["names"]
    assert {name for name in names if name.endswith("_count")} >= {"aborted_count", "queue_count", "row_count"}
    assert all(names[name]["type"] == "integer" for name in names if name.endswith("_count"))


def test_numbers_of_json_keep_their_digits_wherever_a_message_is_printed(run: Run) -> None:
    body = '{"total": 3.10, "big": 12345678901234567890.123456789012345678, "less": [1E2, 70]}'
    for name in ("q", "again"):
        assert run("queue", "create", name).code == 0
    for _ in range(4):
        key = run("send", "q", "--format", "json", "--body", body, "--json").json["key"]
    assert run("send", "q", "--format", "json", "--body", body.replace(", ", ",\n")).code == 0, "of several lines"
    for words in ("peek q", f"show {key}", "info q", "receive q", "history q", "receive q --lease 30"):
        assert f'"body": {body}' in run(*words.split(), "--json").out, words
    assert f'"body": {body}' in run("receive", "q", "--format", "jsonl").out
    assert run("export", "q", "--file", "q.jsonl").code == 0
    assert run("send", "again", "--messages", "--file", "q.jsonl").code == 0
    assert [run("receive", "again").out for _ in range(2)] == [body.replace(": ", ":").replace(", ", ",") + "\n"] * 2


def test_a_long_body_is_cut_at_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert output.excerpt("a\n b" * 400) == " ".join(("a\n b" * 400).split())
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert output.excerpt("x" * 1_000) == f"{'x' * 400} …"
    assert output.excerpt("a\n b") == "a b"
