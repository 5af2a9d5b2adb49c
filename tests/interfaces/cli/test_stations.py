"""Commands of stations, nodes and logins, as a person and as a program sees them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import postroom
from postroom.errors import NodeDown
from postroom.interfaces.cli import logins
from postroom.interfaces.cli.logins import Login
from postroom.stations.forms.reader import parse
from postroom.stations.mail import mail
from postroom.stations.queries.images import Image
from postroom.store.tables.registry import Registry

from ..conftest import Run
from . import test_terminal
from .test_terminal import PROGRAM, at_terminal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMS = """\
type MEETING ANNOUNCEMENT
| To: ______________  KEY: ___________ |
| From: ____________________________   |
| Subject: ___________________________ |
| Response: __________________________ |
field To       string required
field From     string automatic signature
field KEY      key    automatic
field Subject  string required
field Response string free
index To

type FEE
| Payer: _________ Fee: ______ |
| Paid: _____ Tags: __________ |
field Payer string required
field Fee   decimal free
field Paid  boolean once
field Tags  list of string free
"""
MEETING = "MEETING ANNOUNCEMENT"
FILLED = """\
+--------------------------------------+
|         MEETING ANNOUNCEMENT         |
+--------------------------------------+
| To: Simon_________  KEY: {key} |
| From: Dennis______________________   |
| Subject: office automation__________ |
| Response: __________________________ |
+--------------------------------------+
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the logins of a test are kept."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "postroom" / "logins.json"


@pytest.fixture
def office(run: Run, tmp_path: Path) -> Run:
    """Dennis at this room, logged in; Simon on the node north."""
    (tmp_path / "office.form").write_text(FORMS)
    assert run("load", "office.form").code == 0
    assert run("node", "add", "north", "north.db").out == "north is a node\n"
    assert run("station", "add", "Dennis", stdin="d\n").out == "Dennis is a station on node control\n"
    assert run("station", "add", "Simon", "--node", "north", stdin="s\n").code == 0
    assert run("login", "Dennis", stdin="d\n").out == "Dennis is logged in for 12 hours\n"
    return run


def created(run: Run, type: str, *fields: str) -> str:
    key: str = run("create", type, *fields, "--json").json["key"]
    return key


def sketch(**said: str) -> str:
    """The form of a fee, filled in."""
    form = parse(FORMS, "office.form")[1]
    return form.shown(dict(said.items()))


# --- nodes and stations ---


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


# --- logins ---


def test_a_login_stands_for_its_station_until_it_ends(office: Run, state: Path, tmp_path: Path) -> None:
    assert (state.stat().st_mode & 0o777, state.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    kept = json.loads(state.read_text())
    assert kept.keys() == {str(tmp_path / "postroom.db")}
    assert kept[str(tmp_path / "postroom.db")].keys() == {"station", "token"}
    assert created(office, "FEE", "Payer=IBM")
    assert office("list", "--room", "../" + tmp_path.name + "/postroom.db").code == 0
    assert office("list", "--room", "sqlite:///postroom.db").code == 0
    assert office("list", "--as", "Dennis").code == 0
    assert office("list", "--as", "Simon").err.startswith("postroom: argument-invalid: password: set POSTROOM_PASSWORD")
    assert office("list", "--as", "Simon", stdin="wrong\n").err.startswith("postroom: principal-refused: Simon:")
    unknown = office("get", "--as", "Bob", stdin="b\n")
    assert unknown.err == (
        "postroom: principal-refused: Bob: there is no such principal, or the password is not its own; "
        "postroom station list tells the stations\n"
    )
    assert office("list", "--as", "Simon", stdin="s\n").err == "no message\n"
    with postroom.open(tmp_path / "postroom.db") as room:
        room.stations.logout(*Login(**kept[str(tmp_path / "postroom.db")]))
    ended = office("list")
    assert (ended.code, ended.err) == (
        1,
        "postroom: principal-refused: Dennis: this login has ended; log in again with: postroom login\n",
    )
    asked = office("list", "--as", "Dennis", stdin="d\n")
    assert (asked.code, asked.err) == (0, "the login of Dennis has ended\n")


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


def test_a_broken_file_of_logins_is_as_none(office: Run, state: Path, tmp_path: Path) -> None:
    for said in ("", "{", "[]", '{"ROOM": []}', '{"ROOM": {"station": 1}}', "\xff", "[" * 100_000):
        state.write_bytes(said.replace("ROOM", str(tmp_path / "postroom.db")).encode("latin-1"))
        assert office("list").err.startswith("postroom: argument-invalid: --as"), said[:40]
    assert office("login", "Dennis", stdin="d\n").code == 0
    assert office("list").code == 0


def test_logins_that_cannot_be_kept_are_ended(
    office: Run, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    told = office("login", "Dennis", stdin="d\n")
    assert told.err.startswith("postroom: argument-invalid: login: cannot write ")
    with postroom.open(tmp_path / "postroom.db") as room:
        assert len(room.store.read(lambda tx: tx.principals.secrets("login"))) == 1  # that of before
    assert office("list").err.startswith("postroom: argument-invalid: --as")


def test_logins_are_below_the_home_unless_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    logins.keep("room.db", Login("Dennis", "t"))
    assert (tmp_path / ".local" / "state" / "postroom" / "logins.json").exists()
    assert list((tmp_path / ".local" / "state" / "postroom").iterdir()) == [
        tmp_path / ".local" / "state" / "postroom" / "logins.json"
    ]
    monkeypatch.setattr(Path, "home", _no_home)
    assert logins.login_at("room.db") is None
    with pytest.raises(postroom.PostroomError, match="no home directory"):
        logins.keep("room.db", Login("Dennis", "t"))


def _no_home() -> Path:
    raise RuntimeError


def test_the_file_of_logins_has_no_password_of_a_database(state: Path) -> None:
    logins.keep("postgresql://me:geheim@host/db?password=geheim&options=x", Login("Dennis", "t"))
    assert "geheim" not in state.read_text()
    assert logins.login_at("postgresql://me@host/db?options=x") == Login("Dennis", "t")
    assert logins.login_at("postgresql://me@host/db?options=y") is None


# --- messages ---


def test_load_check_lists_the_problems_of_a_form(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.form").write_text("type A\n| X: ___ |\nfield Y string free\n")
    told = run("load", "--check", "bad.form")
    assert (told.code, told.err.count("postroom: form-invalid: bad.form:")) == (1, 2)
    assert len(run("load", "--check", "bad.form", "--json").json["problems"]) == 2


def test_a_form_is_printed_empty_as_written_and_described(office: Run) -> None:
    assert office("form", MEETING).out == FILLED.replace("{key}", "_" * 11).replace("Simon", "_____").replace(
        "Dennis", "______"
    ).replace("office automation", "_" * 17)
    source = office("form", "FEE", "--source").out
    assert source.startswith("type FEE\n| Payer: _________ Fee: ______ |\n")
    assert "field Tags list of string free\n" in source
    shaped = office("form", MEETING, "--json").json
    assert (shaped["type"], shaped["indexes"]) == (MEETING, ["To"])
    assert isinstance(shaped["version"], int)
    assert shaped["form_fields"][1] == {
        "name": "From",
        "kind": "string",
        "rule": "automatic",
        "function": "signature",
        "many": False,
    }
    assert office("form", "FE").err.startswith("postroom: type-unknown: no message type is named 'FE'; did you mean")


def test_create_takes_fields_forms_and_json(office: Run) -> None:
    key = office("create", "FEE", "Payer=IBM", "Fee=12.50", "Tags=a, b = c").out.strip()
    assert office("next", "FEE", "--json").json["message"] == {
        "key": key,
        "type": "FEE",
        "place": "Dennis",
        "fields": {"Payer": "IBM", "Fee": "12.50", "Paid": None, "Tags": ["a", "b = c"]},
    }
    filled = office("form", MEETING).out.replace("To: _____", "To: Simon").replace("Subject: ___", "Subject: at ten")
    assert office("create", MEETING, stdin=filled).code == 0
    one = office("create", "FEE", "--json", stdin=' {"Payer": "HP", "Fee": 3.10, "Paid": true}').json["key"]
    many = office("create", "FEE", "--json", stdin='[{"Payer": "A"}, {"Payer": "B", "Tags": ["x"]}]').json["keys"]
    assert len(office("create", "FEE", stdin='[{"Payer": "C"}, {"Payer": "D"}]').out.splitlines()) == 2
    assert office("create", "FEE", "--json", stdin="[]").json == {"status": "00", "keys": []}
    listed = office("list", "--json").json["messages"]
    assert [each["key"] for each in listed][2:5] == [one, *many]
    assert (listed[1]["fields"]["Subject"], listed[1]["fields"]["From"]) == ("at ten", "Dennis")
    assert listed[2]["fields"] == {"Payer": "HP", "Fee": "3.10", "Paid": True, "Tags": None}
    assert len(listed) == 7


def test_what_cannot_be_created_is_told_in_one_line(office: Run) -> None:
    cases = [
        (["FEE"], "", "field-refused: FEE, field Payer: it is required"),
        (["FEE", "Payer"], "", "argument-invalid: FIELD=VALUE: 'Payer' has no ="),
        (["FEE", "Payer=a", "Payer=b"], "", "argument-invalid: Payer: this field is named twice"),
        (["FEE", "Payr=a"], "", "field-refused: FEE, field Payr: there is no such field; did you mean Payer?"),
        (["FEE", "Payer=a", "Fee=x"], "", "field-refused: FEE, field Fee: field 'Fee' takes a number"),
        ([MEETING, "To=a", "Subject=b", "From=Eve"], "", "field From: it is automatic"),
        (["FE", "Payer=a"], "", "type-unknown: no message type is named 'FE'"),
        (["FEE"], "hello", "form-invalid: standard input:1:1: this is no line of the form FEE"),
        (["FEE"], "\udcff", "argument-invalid: standard input: byte 1 is not UTF-8"),
        (["FEE"], '{"Payer": ', "json-malformed: the body is not JSON"),
        (["FEE"], '{"Payer": "a"} x', "json-malformed: the body is not JSON"),
        (["FEE"], '[{"Payer": "a"}, 1]', "argument-invalid: standard input: a list of JSON objects"),
        (["FEE"], '[{"Payer": "a"}, {}]', "field-refused: FEE, field Payer: it is required"),
    ]
    for words, stdin, said in cases:
        told = office("create", *words, stdin=stdin)
        assert (told.code, told.out, told.err.count("\n")) == (1, "", 1)
        assert said in told.err
    assert office("list").err == "no message\n"  # all or none


def test_a_refusal_has_its_code_in_json(office: Run) -> None:
    told = office("create", "FEE", "--json")
    assert (told.code, told.json["error"]["code"]) == (1, "field-refused")


def test_a_message_on_standard_input_is_not_taken_for_a_password(
    office: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = [["create", "FEE", "Payer=IBM"], ["create", "FEE"], ["query", "FEE"]]
    for words in commands:
        told = subprocess.run(
            [PROGRAM, *words, "--as", "Simon"],
            cwd=tmp_path,
            input=sketch(Payer="IBM"),
            capture_output=True,
            text=True,
            start_new_session=True,  # without a terminal
            timeout=60,
        )
        assert (told.returncode, told.stdout) == (1, "")
        assert told.stderr.startswith("postroom: argument-invalid: password: not from standard input here: set POST")
    monkeypatch.setenv("POSTROOM_PASSWORD", "s")
    for words in commands:
        assert office(*words, "--as", "Simon", stdin=sketch(Payer="IBM")).code == 0
    monkeypatch.setenv("POSTROOM_PASSWORD", "other")
    for words in commands:
        refused = office(*words, "--as", "Simon", stdin=sketch(Payer="IBM")).err
        assert refused.endswith("(the password came from $POSTROOM_PASSWORD; unset it to be asked on the terminal)\n")


def test_a_password_is_typed_beside_a_message_on_standard_input(
    office: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fee.txt").write_text(sketch(Payer="IBM"))
    script = tmp_path / "with-fee"
    script.write_text(f'#!/bin/sh\nexec {PROGRAM} "$@" < fee.txt\n')
    script.chmod(0o700)
    monkeypatch.setattr(test_terminal, "PROGRAM", script)
    screen = at_terminal(tmp_path, "create", "FEE", "--as", "Simon", typed=(("password of Simon:", "s\n"),))
    assert screen.split()[-1] == office("next", "--as", "Simon", "--json", stdin="s\n").json["message"]["key"]


def test_copies_have_keys_of_their_own(office: Run) -> None:
    key = created(office, MEETING, "To=Simon", "Subject=x")
    one = office("copy", key, "--json").json
    assert one == {"status": "00", "key": one["keys"][0], "keys": one["keys"]}
    three = office("copy", key, "3").out.split()
    assert len({key, one["key"], *three}) == 5
    assert "key" not in office("copy", key, "2", "--json").json
    assert office("next", "--after", three[1], "--json").json["message"]["fields"]["KEY"] == three[2]
    assert office("copy", key, "0").err.startswith("postroom: argument-invalid: copies:")
    assert office("copy", "00009.00009").err.startswith("postroom: message-elsewhere: message 00009.00009 is not in")
    assert office("copy", "x").err.startswith("postroom: key-invalid:")


def test_modify_prints_the_form(office: Run) -> None:
    key = created(office, MEETING, "To=Simon", "Subject=office automation")
    changed = office("modify", key, "Response=yes").out
    assert changed == FILLED.format(key=key).replace("Response: ___", "Response: yes")
    shaped = office("modify", key, "Response=", "--json").json
    assert (shaped["key"], shaped["place"], shaped["fields"]["Response"]) == (key, "Dennis", None)
    assert "cannot be modified" in office("modify", key, "To=Eve").err
    assert office("modify", key, "Response").err.startswith("postroom: argument-invalid: FIELD=VALUE")
    assert office("modify", key).code == 2
    assert office("modify", key, "Response=x", "--as", "Simon", stdin="s\n").err.startswith(
        f"postroom: message-elsewhere: message {key} is not in the database of Simon: find it with: postroom locate"
    )


def test_list_and_next_go_by_keys(office: Run) -> None:
    assert office("list").err == office("next").err == "no message\n"
    assert office("next", "--json").json == {"status": "00", "message": None}
    first = created(office, MEETING, "To=Simon", "Subject=office automation, and all that goes with it")
    second = created(office, "FEE", "Payer=IBM", "Tags=a,b")
    third = created(office, "FEE", "Payer=HP", "Fee=3")
    listed = office("list").out.splitlines()
    assert [line.split()[0] for line in listed] == ["key", first, second, third]
    said = listed[1].partition("ANNOUNCEMENT")[2].strip()
    assert said == "To: Simon, From: Dennis, Subject: office automation, and al…"
    assert listed[2].split(maxsplit=1)[1] == "FEE                   Payer: IBM, Tags: a, b"
    assert [line.split()[0] for line in office("list", "FEE", "--limit", "1").out.splitlines()] == ["key", second]
    assert office("list", "--after", first, "--json").json["messages"][1]["key"] == third
    assert office("list", "FEE", "--after", third, "--json").json == {"status": "00", "messages": []}
    assert office("list", "--limit", "0").err.startswith("postroom: argument-invalid: limit:")
    assert office("list", "FE").err.startswith("postroom: type-unknown:")
    assert office("next").out.startswith(f"{first}\n+---")
    assert office("next", "FEE").out.startswith(f"{second}\n+---")
    assert office("next", "--after", second, "--json").json["message"]["key"] == third
    assert office("next", "--after", third).err == f"no message after {third}\n"
    assert office("next", "--after", "x").err.startswith("postroom: key-invalid:")


# --- mail ---


def test_a_message_is_shipped_seen_in_the_mailbox_and_got(office: Run) -> None:
    keys = [created(office, MEETING, "To=Simon", f"Subject={said}") for said in ("one", "office automation")]
    assert office("show", keys[1]).out == f"{keys[1]} at Dennis\n" + FILLED.format(key=keys[1])
    shipped = office("ship", *keys, "Simon")
    assert shipped.out == "".join(f"{key} shipped to Simon\n" for key in keys)
    assert office("ship", keys[0], "Simon").err.startswith("postroom: message-elsewhere:")
    assert office("locate", keys[0]).out == "mailbox:Simon\n"
    assert office("show", keys[1]).out == f"{keys[1]} at mailbox:Simon\n" + FILLED.format(key=keys[1])
    assert office("login", "Simon", stdin="s\n").code == 0
    assert office("mail").out.splitlines()[1] == f"{keys[0]}  {MEETING}"
    assert office("mail", "--json").json["mail"] == [{"key": key, "type": MEETING} for key in keys]
    assert office("get", "--limit", "1").out == f"{keys[0]}\n"
    assert office("get", "--json").json == {"status": "00", "keys": [keys[1]]}
    assert office("mail").err == office("get").err == "no mail\n"
    assert office("get", "--json").json == {"status": "00", "keys": []}
    assert office("mail", "--json").json == {"status": "00", "mail": []}
    assert office("show", keys[1]).out == f"{keys[1]} at Simon\n" + FILLED.format(key=keys[1])
    assert office("show", keys[1], "--json").json["type"] == MEETING
    assert office("locate", keys[1], "--json").json == {"status": "00", "key": keys[1], "place": "Simon"}
    assert [event["verb"] for event in office("trace", keys[1], "--json").json["events"]][:2] == ["create", "ship"]
    back = office("ship", keys[0], "Dennis", "--json").json
    assert back == {"status": "00", "shipped": [{"key": keys[0], "to": "Dennis", "delivered": True}]}
    assert office("ship", keys[1], "Denis").err.startswith(
        "postroom: station-unknown: there is no station Denis (postroom"
    )
    assert office("ship", keys[1]).code == 2
    assert office("station", "remove", "Simon").err.startswith("postroom: station-in-use:")
    assert office("node", "remove", "north").err.startswith("postroom: station-in-use:")


def test_a_cut_way_is_told(office: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    office("login", "Simon", stdin="s\n")
    key = created(office, "FEE", "Payer=IBM")

    def cut(*_: Any) -> None:
        raise NodeDown(node="control", why="cut")

    with monkeypatch.context() as patch:
        patch.setattr(mail, "deliver", cut)
        assert office("ship", key, "Dennis").out == f"{key} has left for Dennis and will be delivered\n"


def test_a_damaged_message_is_not_read_as_a_form(office: Run, tmp_path: Path) -> None:
    key = created(office, "FEE", "Payer=IBM")
    _damage(tmp_path, "IBM", "HAL")
    assert office("show", key).out.startswith(f"key: {key}\nqueue: Dennis\n")
    assert office("show", key, "--json").json["corrupt"] is True


def _damage(folder: Path, what: str, instead: str) -> None:
    import sqlite3

    store = sqlite3.connect(folder / "postroom.db")
    store.execute("UPDATE messages SET body = replace(body, ?, ?)", (what, instead))
    store.commit()
    store.close()


# --- dossiers ---


def test_dossiers_hold_messages_of_their_station(office: Run) -> None:
    keys = [created(office, "FEE", f"Payer={name}") for name in "abc"]
    assert office("dossier", "list").err == "none; begin one with: postroom dossier add NAME KEY\n"
    assert office("dossier", "add", "travel", keys[2], keys[0]).out == "2 added to travel\n"
    assert office("dossier", "add", "travel", keys[0], keys[1], "--json").json == {"status": "00", "added_count": 1}
    assert office("dossier", "list").out == "dossier  messages\ntravel   3\n"
    assert office("dossier", "list", "--json").json == {
        "status": "00",
        "dossiers": [{"name": "travel", "message_count": 3}],
    }
    shown = office("dossier", "show", "travel").out.splitlines()
    assert [line.split()[0] for line in shown] == ["key", keys[2], keys[0], keys[1]]
    assert office("dossier", "remove", "travel", keys[0]).out == "1 removed from travel\n"
    assert office("dossier", "remove", "travel", keys[0], keys[1], "--json").json == {
        "status": "00",
        "removed_count": 1,
    }
    assert [each["key"] for each in office("dossier", "show", "travel", "--json").json["messages"]] == [keys[2]]
    assert office("dossier", "show", "travl").err.startswith("postroom: dossier-unknown: Dennis has no dossier travl (")
    assert office("dossier", "add", "travel", "00009.00009").err.startswith("postroom: message-elsewhere:")
    assert office("dossier", "add", "travel").code == 2


# --- queries ---


@pytest.fixture
def fees(office: Run) -> Run:
    said = [{"Payer": name, "Fee": fee} for name, fee in (("IBM", 5), ("HP", 10), ("DEC = x", 15), ("Sun", 20))]
    assert office("create", "FEE", stdin=json.dumps(said)).code == 0
    return office


def test_a_condition_is_what_stands_behind_the_field(fees: Run) -> None:
    cases: list[tuple[str, set[str]]] = [
        ("Fee=10", {"HP"}),
        ("Fee==10", {"HP"}),
        ("Fee=>10", {"DEC = x", "Sun"}),
        ("Fee>10", {"DEC = x", "Sun"}),
        ("Fee >= 10", {"HP", "DEC = x", "Sun"}),
        ("Fee<10", {"IBM"}),
        ("Fee<=10", {"IBM", "HP"}),
        ("Fee<>10", {"IBM", "DEC = x", "Sun"}),
        ("Fee=<>10", {"IBM", "DEC = x", "Sun"}),
        ("Fee=10..15", {"HP", "DEC = x"}),
        ("Payer=*P*", {"HP"}),
        ('Payer="IBM" "HP"', {"IBM", "HP"}),
        ('Payer="DEC = x"', {"DEC = x"}),
        ("Fee=", {"IBM", "HP", "DEC = x", "Sun"}),
    ]
    for condition, found in cases:
        answer = fees("query", "FEE", condition, "--json").json
        assert answer["seq"] is None
        assert {image["fields"]["Payer"] for image in answer["images"]} == found, condition


def test_a_query_is_a_table_a_number_or_a_form_on_standard_input(fees: Run) -> None:
    told = fees("query", "FEE", "Fee>10", "Payer=S*")
    assert told.out.splitlines()[0].split() == ["key", "place", "fields"]
    assert told.out.splitlines()[1].split(maxsplit=1)[1] == "Dennis  Payer: Sun, Fee: 20"
    assert fees("query", "FEE", "Fee>10", "--count").out == "2\n"
    assert fees("query", "FEE", "Fee>10", "--count", "--json").json == {"status": "00", "seq": None, "count": 2}
    assert fees("query", "FEE", "--count").out == "4\n"
    assert fees("query", "FEE", "--count", stdin=sketch(Payer="IBM")).out == "1\n"
    assert fees("query", "FEE", "--count", stdin=sketch()).out == "4\n"
    none = fees("query", "FEE", "Fee>100")
    assert (none.code, none.out, none.err) == (0, "", "no message found\n")
    assert fees("query", "FEE", "Fee>1", "--as", "Simon").err.startswith("postroom: argument-invalid: password:")


def test_what_cannot_be_asked_is_told_in_one_line(fees: Run) -> None:
    cases = [
        (["FEE", "Fee"], "", "argument-invalid: FIELD=CONDITION: 'Fee' is not a field with a condition"),
        (["FEE", ">1"], "", "argument-invalid: FIELD=CONDITION: '>1' is not a field with a condition"),
        (["FEE", "Fee>1", "Fee<3"], "", "argument-invalid: Fee: this field is named twice"),
        (["FEE", "Fee>x"], "", "form-invalid: field Fee, character 2: field 'Fee' takes a number"),
        (["FEE", "Fe>1"], "", "form-invalid: field Fe: type FEE has no field 'Fe'"),
        (["FE", "Fee>1"], "", "type-unknown:"),
        (["FEE"], "hello", "form-invalid: standard input:1:1: this is no line of the form FEE"),
        (["FEE", "Fee>1", "--into", "a b"], "", "argument-invalid: into: 'a b' is not a name"),
    ]
    for words, stdin, said in cases:
        told = fees("query", *words, stdin=stdin)
        assert (told.code, told.out, told.err.count("\n")) == (1, "", 1)
        assert told.err.startswith(f"postroom: {said}")


def test_damaged_messages_are_named(fees: Run, tmp_path: Path) -> None:
    key = fees("next", "--json").json["message"]["key"]
    _damage(tmp_path, "IBM", "HAL")
    assert fees("query", "FEE").err == f"left out, because they are damaged: {key}\n"
    assert fees("query", "FEE", "--count").out == "3\n"
    assert fees("query", "FEE", "--json").json["damaged"] == [key]


def test_temporary_tables_are_listed_shown_and_dropped(fees: Run) -> None:
    assert fees("table", "list").err == "none; make one with: postroom query TYPE --into NAME\n"
    kept = fees("query", "FEE", "Fee>10", "--into", "big")
    assert (len(kept.out.splitlines()), kept.err) == (3, "2 saved as big; query them with: postroom sql\n")
    assert fees("table", "list").out.splitlines()[1].split() == ["big", "FEE", "2", "local"]
    assert fees("table", "list", "--json").json == {
        "status": "00",
        "tables": [{"name": "big", "type": "FEE", "image_count": 2, "seq": None}],
    }
    assert fees("table", "show", "big").out == kept.out
    assert len(fees("table", "show", "big", "--json").json["images"]) == 2
    assert fees("table", "show", "bg").err.startswith("postroom: album-unknown: Dennis has no temporary table bg (")
    assert fees("table", "drop", "big").out == "dropped big\n"
    assert fees("table", "drop", "big").err.startswith("postroom: album-unknown:")
    fees("query", "FEE", "--into", "all", "--count")
    assert fees("table", "drop", "all", "--json").json == {"status": "00", "table": "all"}


def test_local_queries_do_without_spark(fees: Run, tmp_path: Path) -> None:
    script = (
        "import sys\nfrom postroom.interfaces.cli.main import main\n"
        "sys.argv = ['postroom', 'query', 'FEE', 'Fee>1', '--into', 'all', '--count']\nmain()\n"
        "assert not {'pyspark', 'pyarrow', 'pandas'} & sys.modules.keys()"
    )
    told = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (told.returncode, told.stdout) == (0, "4\n"), told.stderr


def test_queries_over_nodes_and_sql(fees: Run, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom.room.stations.spark_session", lambda _master, _conf: spark)
    first = fees("next", "--json").json["message"]["key"]
    fees("ship", first, "Simon")
    monkeypatch.setenv("POSTROOM_PASSWORD", "s")
    assert fees("query", "FEE", "--scope", "stations=Simon", "--count", "--as", "Simon").out == "0\n"
    everywhere = fees("query", "FEE", "Fee<20", "--scope", "global", "--into", "all", "--json")
    assert [image["place"] for image in everywhere.json["images"]] == ["mailbox:Simon", "Dennis", "Dennis"]
    assert isinstance(everywhere.json["seq"], int)
    fees("get", "--as", "Simon")
    told = fees("query", "FEE", "--scope", "global", "--timeout", "100")
    assert [line.split()[:2] for line in told.out.splitlines()][:2] == [["key", "place"], [first, "Simon"]]
    counted = fees("query", "FEE", "--scope", "group", "--count", "--json").json
    assert (counted["count"], counted["seq"] > everywhere.json["seq"]) == (3, True)
    assert fees("table", "list", "--json").json["tables"][0]["seq"] == everywhere.json["seq"]
    asked = fees("sql", "SELECT Payer, Paid IS NULL AS unpaid, array('x', 'y') AS l FROM all ORDER BY Fee")
    assert [line.split() for line in asked.out.splitlines()][:2] == [
        ["Payer", "unpaid", "l"],
        ["IBM", "true", "x,", "y"],
    ]
    shaped = fees("sql", "SELECT count(*) AS n FROM all", "--json").json
    assert shaped == {"status": "00", "columns": ["n"], "rows": [[3]]}
    assert fees("sql", "DROP TABLE all").err.startswith("postroom: sql-refused: the statement is refused:")
    assert fees("query", "FEE", "--scope", "nowhere").err.startswith("postroom: argument-invalid: scope: 'nowhere'")
    assert fees("query", "FEE", "--scope", "stations=Smon").err.startswith("postroom: station-unknown:")
    assert fees("query", "FEE", "--scope", "group", "--timeout", "0").err.startswith("postroom: argument-invalid: time")


def test_a_summary_is_short() -> None:
    from postroom.interfaces.cli.stations import summary

    form = parse(FORMS, "office.form")[1]
    image = Image("00001.00001", "Dennis", form, json.dumps({"Payer": "x" * 100, "Paid": True}))
    assert summary(image) == f"Payer: {'x' * 52}…"
    assert summary(Image("00001.00001", "Dennis", form, json.dumps({"Payer": "a", "Paid": False}))) == (
        "Payer: a, Paid: false"
    )
