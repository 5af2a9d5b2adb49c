"""Commands on gateways: add, list, test, remove, listen."""

from __future__ import annotations

from ...conftest import Run


def test_gateways_are_added_listed_tested_and_removed(run: Run) -> None:
    assert run("gateway", "list").err.startswith("postroom: room-missing:")
    assert run("gateway", "add", "printer", "command", "command=cat -").out == "printer is a gateway\n"
    added = run("gateway", "add", "supplier", "http", "address=https://s.example/", "token=env:T", "--json")
    settings = {"address": "https://s.example/", "token": "env:T"}
    about = {"gateway": "supplier", "transport": "http", "directions": ["out", "reply"], "settings": settings}
    assert added.json == {"status": "00", **about}
    assert [line.split() for line in run("gateway", "list").out.splitlines()] == [
        ["gateway", "transport", "queues", "settings"],
        ["printer", "command", "command=cat", "-"],
        ["supplier", "http", "address=https://s.example/", "token=env:T"],
    ]
    assert run("gateway", "list", "--json").json["gateways"][1]["directions"] == ["out", "reply"]
    assert "can be run" in run("gateway", "test", "printer").out
    assert run("gateway", "test", "printer", "--json").json["gateway"] == "printer"
    assert run("gateway", "test", "no").err.startswith("postroom: gateway-unknown: this room has no gateway no")
    assert run("gateway", "remove", "printer").out == "printer is no longer a gateway\n"
    run("gateway", "remove", "supplier", "--json")
    assert "none; make one with" in run("gateway", "list").err


def test_settings_are_words_with_a_value(run: Run) -> None:
    for words in (["token"], ["path=/a", "path=/b"]):
        assert "a setting is written once, as SETTING=VALUE" in run("gateway", "add", "a", "http", *words).err
    assert "a secret is not written here" in run("gateway", "add", "a", "http", "path=/a", "in-token=s3cret").err


def test_a_server_needs_a_place(run: Run) -> None:
    run("gateway", "add", "a", "fetched")
    assert "say where to listen" in run("gateway", "listen").err
    for place in ("8080", "host:", "host:x", "host:99999", ":80"):
        assert "a place to listen is HOST:PORT" in run("gateway", "listen", "--http", place).err
