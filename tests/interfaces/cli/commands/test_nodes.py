"""Commands on a network: nodes, stations, login and logout."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import postroom
from postroom.store.tables.registry import Registry

from ...conftest import Run
from ..conftest import FORMS
from ..test_terminal import at_terminal

if TYPE_CHECKING:
    pass


def test_nodes_are_added_listed_moved_and_removed(run: Run, tmp_path: Path) -> None:
    assert run("node", "list").err.startswith("postroom: room-missing:")
    assert run("node", "add", "north", "north.db", "--json").json == {"status": "00", "node": "north"}
    listed = run("node", "list")
    assert [line.split() for line in listed.out.splitlines()] == [
        ["node", "store", "stations", "answers"],
        ["control", str(tmp_path / "postroom.db"), "0", "yes"],
        ["north", str(tmp_path / "north.db"), "0", "yes"],
    ]
    os.rename(tmp_path / "north.db", tmp_path / "new.db")
    down = run("node", "list", "--json").json["nodes"][1]
    assert (down["answers"], down["why"][:20]) == (False, "there is no store at")
    assert "no: there is no store at" in run("node", "list").out
    assert run("node", "move", "north", "none.db").err.startswith("postroom: node-down: node north does not answer")
    assert run("node", "move", "north", "new.db").out == "north has moved\n"
    assert run("node", "list", "--json").json["nodes"][1]["url"] == str(tmp_path / "new.db")
    assert run("node", "move", "north", "new.db", "--json").json["node"] == "north"
    assert run("node", "remove", "nort").err.startswith("postroom: node-unknown: there is no node nort (postroom node")
    assert run("node", "remove", "north").out == "north is no longer a node\n"
    run("node", "add", "south", "south.db")
    assert run("node", "remove", "south", "--json").json == {"status": "00", "node": "south"}
    assert len(run("node", "list", "--json").json["nodes"]) == 1


def test_what_cannot_be_a_node_is_refused(run: Run) -> None:
    run("station", "add", "Dennis", stdin="d\n")
    for name, url, said in [
        ("control", "n.db", "postroom: argument-invalid: node: 'control' cannot be a name"),
        ("a b", "n.db", "postroom: argument-invalid: node: 'a b' cannot be a name"),
        ("north", "postroom.db", "it is this room, which is the control node"),
        ("north", "ftp://x", "postroom: url-invalid:"),
    ]:
        told = run("node", "add", name, url)
        assert (told.code, told.out, told.err.count("\n")) == (1, "", 1)
        assert said in told.err


def test_the_password_of_a_database_is_not_listed(run: Run, tmp_path: Path, postgres_url: str) -> None:
    secret = f"{postgres_url}&password=geheim"
    refused = run("node", "add", "south", secret)
    assert refused.code == 1
    assert "geheim" not in refused.err
    assert run("node", "add", "south", postgres_url).code == 0
    assert "geheim" not in run("node", "list").out + run("node", "list", "--json").out


def test_stations_are_added_listed_and_removed(run: Run) -> None:
    assert run("station", "add", "Dennis", "--json", stdin="d\n").json == {
        "status": "00",
        "station": "Dennis",
        "node": "control",
    }
    assert run("station", "list").out == "station  node\nDennis   control\n"
    assert run("station", "list", "--json").json == {
        "status": "00",
        "stations": [{"name": "Dennis", "node": "control"}],
    }
    assert run("station", "add", "Dennis", stdin="d\n").err.startswith(
        "postroom: station-taken: station Dennis already exists"
    )
    assert run("station", "add", "Eve", "--node", "nort", stdin="e\n").err.startswith("postroom: node-unknown:")
    assert run("station", "add", "a b", stdin="e\n").err.startswith("postroom: argument-invalid: principal")
    assert run("station", "add", "Eve").err.startswith("postroom: argument-invalid: password")
    assert run("station", "remove", "Denis").err.startswith(
        "postroom: station-unknown: there is no station Denis (postroom"
    )
    assert run("station", "remove", "Dennis").out == "Dennis is no longer a station\n"
    assert run("station", "list").err == "none; make one with: postroom station add NAME\n"
    run("station", "add", "Eve", stdin="e\n")
    assert run("station", "remove", "Eve", "--json").json == {"status": "00", "station": "Eve"}


def test_a_registered_name_becomes_a_station_by_its_own_password(run: Run) -> None:
    run("principal", "add", "Dennis", stdin="d\n")
    assert run("station", "add", "Dennis", stdin="other\n").err.startswith("postroom: principal-refused: Dennis:")
    assert run("station", "add", "Dennis", stdin="d\n").code == 0


def test_a_new_password_is_typed_twice_and_a_known_one_once(tmp_path: Path) -> None:
    twice = (("password of Dennis:", "d\n"), ("again:", "d\n"))
    assert "Dennis is a station" in at_terminal(tmp_path, "station", "add", "Dennis", typed=twice)
    screen = at_terminal(tmp_path, "station", "add", "Dennis", typed=(("password of Dennis:", "d\n"),))
    assert "station-taken" in screen
    (tmp_path / "office.form").write_text(FORMS)
    at_terminal(tmp_path, "load", "office.form")
    words = ("create", "FEE", "Payer=IBM", "--as", "Dennis")
    assert "00002.00001" not in at_terminal(tmp_path, *words, typed=(("password of Dennis:", "x\n"),))
    assert "00001" in at_terminal(tmp_path, *words, typed=(("password of Dennis:", "d\n"),))
    assert "FIELD=VALUE, or standard input" in at_terminal(tmp_path, "create", "FEE", "--as", "Dennis")


def test_logging_in_again_and_out_ends_what_was_before(office: Run, state: Path, tmp_path: Path) -> None:
    first = json.loads(state.read_text())[str(tmp_path / "postroom.db")]
    assert office("login", "Simon", "--json", stdin="s\n").json == {"status": "00", "station": "Simon"}
    second = json.loads(state.read_text())[str(tmp_path / "postroom.db")]
    with postroom.open(tmp_path / "postroom.db") as room:
        known = Registry(room.store)
        assert not known.admits("Dennis", first["token"])
        assert known.admits("Simon", second["token"])
        assert office("logout").out == "Simon is logged out\n"
        assert not known.admits("Simon", second["token"])
    assert json.loads(state.read_text()) == {}
    assert office("logout").err == "nobody is logged in here\n"
    assert office("logout", "--json").json == {"status": "00", "station": None}
    assert office("list").err == (
        "postroom: argument-invalid: --as: say which station acts, or log in once with: postroom login STATION\n"
    )
    office("login", "Simon", stdin="s\n")
    assert office("logout", "--json").json == {"status": "00", "station": "Simon"}


def test_what_cannot_log_in_is_refused(office: Run) -> None:
    assert office("login", "Denis").err.startswith(
        "postroom: station-unknown: there is no station Denis (postroom station list"
    )
    assert office("login", "Dennis", stdin="x\n").err.startswith("postroom: principal-refused: Dennis:")
    office("principal", "add", "operator", stdin="o\n")
    assert office("login", "operator", stdin="o\n").err.startswith("postroom: station-unknown:")
    assert office("list").code == 0  # the login before is what it was
