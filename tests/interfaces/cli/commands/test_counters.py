"""Commands on counters, as a person and as a program sees them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ...conftest import Run

FORM = """\
type CLAIM
| Claimant: ____________ Amount: ______ KEY: _______ |
field Claimant string required
field Amount decimal required
field KEY key automatic
"""
COUNTERS = "counter front at Simon takes CLAIM from claims\ncounter back at Oscar gives to settled\n"


@pytest.fixture
def desk(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("POSTROOM_PASSWORD", "pw")
    (tmp_path / "desk.form").write_text(FORM + COUNTERS)
    for words in (("queue", "create", "claims"), ("queue", "create", "settled")):
        assert run(*words).code == 0
    for station in ("Simon", "Oscar"):
        assert run("station", "add", station).code == 0
    return run


def test_counters_are_loaded_listed_shown_and_removed(desk: Run, tmp_path: Path) -> None:
    assert desk("counter", "list").err == "none; load some with: postroom load FILE.form\n"
    assert desk("load", "--check", "desk.form").code == 0
    assert "added: CLAIM, counter front, counter back" in desk("load", "desk.form").out
    desk("send", "claims", "--body", "Claimant: Ann\nAmount: 1")
    lines = [line.split() for line in desk("counter", "list").out.splitlines()]
    assert lines == [
        ["counter", "station", "way", "type", "queue", "waiting", "state"],
        ["front", "Simon", "takes", "CLAIM", "claims", "1", "open"],
        ["back", "Oscar", "gives", "settled", "0", "idle"],
    ]
    front, back = desk("counter", "list", "--json").json["counters"]
    assert front == {
        "name": "front",
        "station": "Simon",
        "way": "takes",
        "type": "CLAIM",
        "queue": "claims",
        "waiting_count": 1,
        "state": "open",
        "where": "desk.form:6:1",
        "version": front["version"],
    }
    assert desk("counter", "show", "back", "--json").json == {"status": "00", **back}
    assert desk("counter", "show", "front").out.splitlines() == [
        "counter front at Simon takes CLAIM from claims",
        f"written: desk.form:6:1, since version {front['version']}",
        "waiting: 1 message(s)",
        "state:   open",
    ]
    assert [each["name"] for each in desk("catalog", "--json").json["definitions"] if each["what"] == "counter"] == [
        "front",
        "back",
    ]
    assert desk("counter", "show", "fron").err.startswith(
        "postroom: definition-unknown: there is no counter fron (postroom"
    )
    assert desk("counter", "remove", "front").out == "removed front\n"
    assert desk("counter", "remove", "back", "--json").json == {"status": "00", "counter": "back"}
    gone = desk("counter", "remove", "front")
    assert (gone.code, gone.err.split(":")[1]) == (1, " definition-unknown")


def test_run_hands_over_and_tells_of_errors(desk: Run, tmp_path: Path) -> None:
    desk("load", "desk.form")
    for body in ("Claimant: Ann\nAmount: 1", "Claimant: Bob"):
        desk("send", "claims", "--body", body)
    said = desk("run", "--until-idle").err
    assert "messages=2 created=2 failures=1 lag=0" in said
    assert "1 of them with an error message" in said
    (mail,) = desk("mail", "--as", "Simon", "--json").json["mail"]
    assert mail["type"] == "CLAIM"
    assert "counter=front, from=claims, cause=" in desk("trace", mail["key"]).out


def test_try_tells_what_counters_would_do(desk: Run, tmp_path: Path) -> None:
    (tmp_path / "types.form").write_text(FORM)
    desk("load", "types.form")
    key = desk("send", "claims", "--body", "Claimant: Ann\nAmount: 1", "--json").json["key"]
    told = desk("try", "desk.form")
    first, action = told.out.splitlines()
    assert first == f"{key} in claims:"
    assert action.startswith('  front: enqueue mailbox:Simon: {"Claimant":"Ann","Amount":"1"')
    assert told.err == "1 message(s) tried; nothing was changed\n"
    assert desk("mail", "--as", "Simon").out == ""


def test_what_is_wrong_is_told_with_its_place(desk: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.form").write_text(f"{FORM}counter c at Nobody takes CLAIM from clams\n")
    told = desk("load", "bad.form")
    assert told.code == 1
    assert told.err.startswith("postroom: form-invalid: bad.form:6:1: counter c: there is no station Nobody")
    assert "and 1 more" in told.err
