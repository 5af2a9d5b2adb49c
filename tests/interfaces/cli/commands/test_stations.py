"""Commands of stations, as a person and as a program sees them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests.stations.forms.test_drawing import automatic, filled_forms

from postroom.errors import NodeDown
from postroom.model.types import FieldValue, plain
from postroom.stations.forms.form import Form
from postroom.stations.forms.reader import parse
from postroom.stations.mail import mail
from postroom.stations.queries.images import Image

from ...conftest import Run
from .. import test_terminal
from ..conftest import FORMS, created, damage, sketch
from ..test_terminal import PROGRAM, at_terminal

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
        "filled": "automatic",
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


def refused(office: Run, type: str, drawn: str) -> str:
    told = office("create", type, stdin=drawn)
    assert (told.code, told.out, told.err.count("\n")) == (1, "", 1)
    return told.err.removeprefix("postroom: form-invalid: standard input:")


def test_a_form_that_was_shown_is_created_anew_when_its_automatic_fields_are_emptied(office: Run) -> None:
    key = created(office, MEETING, "To=Simon", "Subject=office automation")
    shown = office("show", key).out
    assert shown == f"{key} at Dennis\n{FILLED.format(key=key)}"
    assert refused(office, MEETING, shown) == (
        "5:28: KEY: it is automatic: leave it empty, the system writes it [field-fixed]\n"
    )
    shown = shown.replace(f"KEY: {key}", "KEY: ___________")
    assert refused(office, MEETING, shown).startswith("6:9: From: it is automatic: leave it empty")
    again = office("create", MEETING, stdin=shown.replace("From: Dennis", "From: ______")).out.strip()
    assert office("show", again).out == f"{again} at Dennis\n{FILLED.format(key=again)}"


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(filled_forms())
def test_every_form_that_is_shown_is_created_anew(office: Run, pair: tuple[Form, dict[str, FieldValue]]) -> None:
    form, said = pair
    Path("any.form").write_text(str(form))
    assert office("load", "any.form").code == 0
    fields = json.dumps({name: plain(value) for name, value in said.items()})
    key = office("create", form.name, stdin=fields).out.strip()
    shown = office("show", key).out
    if automatic(form):
        assert "leave it empty, the system writes it [field-fixed]\n" in refused(office, form.name, shown)
        shown = f"{key} at Dennis\n{form.shown(said)}"
    again = office("create", form.name, stdin=shown).out.strip()
    before, after = (office("show", each, "--json").json["body"] for each in (key, again))
    assert {**before, **{name: after[name] for name in automatic(form)}} == after


def test_a_value_in_a_drawn_form_is_refused_with_its_place(office: Run) -> None:
    assert refused(office, "FEE", sketch(Payer="IBM", Fee="much")).startswith("4:25: Fee: field 'Fee' takes a number")
    assert refused(office, "FEE", sketch(Payer="IBM", Paid="maybe")).startswith("5:9: Paid: field 'Paid' takes")
    assert refused(office, "FEE", sketch(Fee="3")).startswith("4:10: Payer: it is required: it must be entered")
    assert refused(office, "FEE", "Payer: IBM\nFee: much\n").startswith("2:6: Fee: field 'Fee' takes a number")
    told = office("query", "FEE", stdin=sketch(Payer="IBM", Fee=">much"))
    assert told.err.startswith("postroom: form-invalid: standard input:4:26: Fee: ")
    assert refused(office, "FEE", "Fee: 3").startswith("postroom: field-refused: FEE, field Payer: it is required")


def test_only_the_line_that_show_prints_stands_above_a_drawn_form(office: Run) -> None:
    key, drawn = created(office, "FEE", "Payer=IBM"), sketch(Payer="IBM")
    other = created(office, MEETING, "To=Simon", "Subject=rooms")
    for heading in ("00009.00009 at Nowhere", "00009.00009", f"{key} at Nowhere", f"{other} at Dennis"):
        said = "1:2: this line stands above no FEE that there is; leave it out [form-heading]\n"
        assert refused(office, "FEE", f" {heading}\n{drawn}") == said
        assert office("query", "FEE", stdin=f" {heading}\n{drawn}").err.endswith(said)
    for twice in (f"{key} at Dennis\n{key} at Dennis\n{drawn}", f"Payer: IBM\n{key} at Dennis\n"):
        assert refused(office, "FEE", twice).startswith("2:1: this is no line of the form FEE")
    for heading in (f"{key} at Dennis", key):
        assert office("create", "FEE", stdin=f"{heading}\n{drawn}").code == 0
    assert office("query", "FEE", "--count", stdin=f"{key} at Dennis\n{drawn}").out == "3\n"


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
    assert back == {"status": "00", "shipped": [{"key": keys[0], "station": "Dennis", "delivered": True}]}
    assert office("ship", keys[1], "Denis").err.startswith(
        "postroom: station-unknown: there is no station Denis (postroom"
    )
    assert office("ship", keys[1]).code == 2
    assert office("station", "remove", "Simon").err.startswith("postroom: station-in-use:")
    assert office("user", "remove", "Simon").err.startswith("postroom: principal-in-use: Simon is not removed: it is")
    assert office("node", "remove", "north").err.startswith("postroom: station-in-use:")


def test_what_was_shipped_is_taken_back_until_it_was_got(office: Run) -> None:
    keys = [created(office, MEETING, "To=Simon", f"Subject={said}") for said in ("one", "two")]
    office("ship", *keys, "Simon")
    assert office("take-back", keys[0]).out == f"{keys[0]}\n"
    assert office("locate", keys[0]).out == "Dennis\n"
    assert office("get", "--as", "Simon", stdin="s\n").out == f"{keys[1]}\n"
    late = office("take-back", keys[1])
    assert late.err.startswith("postroom: message-elsewhere:")
    assert office("locate", keys[1]).out == "Simon\n"


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
    damage(tmp_path, "IBM", "HAL")
    assert office("show", key).out.startswith(f"key: {key}\nqueue: Dennis\n")
    assert office("show", key, "--json").json["corrupt"] is True


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


def test_a_summary_is_short() -> None:
    from postroom.interfaces.cli.commands.stations import summary

    form = parse(FORMS, "office.form")[1]
    image = Image("00001.00001", "Dennis", form, json.dumps({"Payer": "x" * 100, "Paid": True}))
    assert summary(image) == f"Payer: {'x' * 52}…"
    assert summary(Image("00001.00001", "Dennis", form, json.dumps({"Payer": "a", "Paid": False}))) == (
        "Payer: a, Paid: false"
    )
