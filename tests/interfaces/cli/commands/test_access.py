"""Commands on grants and tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

import postroom

from ...conftest import Run


def test_a_user_gets_a_grant_and_a_token_and_loses_both(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTROOM_PASSWORD", "secret")
    assert run("queue", "create", "orders").code == 0
    assert run("user", "add", "ann").code == 0
    assert run("grant", "add", "ann", "send", "orders").out == "ann send orders: granted\n"
    assert run("grant", "add", "ann", "send", "orders", "--json").json["is_changed"] is False
    assert run("why-not", "ann", "send", "orders").out == "ann may send orders\n"
    refused = run("why-not", "ann", "receive", "orders", "--json")
    assert (refused.code, refused.json["why"], refused.json["is_allowed"]) == (1, "there is no such grant", False)
    assert run("grant", "list").out.split() == ["user", "verb", "object", "ann", "send", "orders"]
    assert run("grant", "list", "ann", "--json").json["grants"][0]["object"] == "orders"
    made = run("token", "create", "ann", "laptop", "--only", "send", "--days", "2", "--json").json
    assert made["token"].startswith("postroom_")
    assert len(made["token"]) > 50
    assert run("token", "create", "ann", "desktop").out.startswith("postroom_")
    listed = run("token", "list", "--json").json["tokens"]
    assert [token["name"] for token in listed] == ["laptop", "desktop"]
    assert [token["name"] for token in run("token", "list", "ann", "--json").json["tokens"]] == ["laptop", "desktop"]
    assert run("token", "list", "ben", "--json").json["tokens"] == []
    assert made["token"] not in run("token", "list").out
    assert run("token", "revoke", listed[0]["id"]).code == 0
    assert run("token", "revoke", listed[1]["id"], "--json").json["id"] == listed[1]["id"]
    assert run("grant", "remove", "ann", "send", "orders").out == "ann send orders: withdrawn\n"
    assert run("grant", "remove", "ann", "send", "orders").out == "ann send orders: there was no such grant\n"
    assert run("token", "revoke", "none").code == 1
    assert run("user", "list").out == "ann\n"
    assert run("user", "remove", "ann").code == 0
    assert run("user", "list").out == ""


def test_a_password_comes_from_a_file_and_sessions_end_by_command(run: Run, tmp_path: Path) -> None:
    (tmp_path / "password.txt").write_text("correct horse\r\nnot this\n")
    assert run("user", "add", "ann", "--password-file", "password.txt").out == "ann is registered\n"
    with postroom.open(f"{tmp_path}/postroom.db") as room:
        token = room.access.sign_in("ann", "correct horse")
        assert room.access.is_signed_in("ann", token)
        assert run("user", "sign-out", "ann", "--json").json["session_count"] == 1
        assert not room.access.is_signed_in("ann", token)
    assert run("user", "sign-out", "ann").out == "ann: 0 session(s) ended\n"
    assert "principal-refused" in run("user", "sign-out", "nobody").err
    refused = run("user", "add", "ann", "--password-file", "password.txt")
    assert "password-needed" in refused.err
    assert run("user", "add", "ann", "--password-file", "password.txt", "--replace").code == 0
    for wrong in ("nowhere.txt", "."):
        assert run("user", "add", "ben", "--password-file", wrong).code == 1
    (tmp_path / "empty.txt").write_text("\n")
    assert "argument-invalid" in run("user", "add", "ben", "--password-file", "empty.txt").err
    assert run("user", "list").out == "ann\n"


def test_a_grant_for_what_is_not_there_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTROOM_PASSWORD", "secret")
    assert run("queue", "create", "orders").code == 0
    assert run("station", "add", "Jane").code == 0
    assert run("user", "add", "ann").code == 0
    for verb, name, kind in (("send", "ordres", "queue"), ("publish", "Trade", "space"), ("work", "Jan", "station")):
        granted = run("grant", "add", "ann", verb, name)
        assert (granted.code, granted.out) == (0, f"ann {verb} {name}: granted\n")
        assert granted.err.startswith(f"there is no {kind} {name} yet")
    for known in (("send", "orders"), ("work", "Jane"), ("look", "station:Jane"), ("operate", "*"), ("load",)):
        assert run("grant", "add", "ann", *known).err == ""
