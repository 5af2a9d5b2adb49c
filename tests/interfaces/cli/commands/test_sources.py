"""Commands on sources, as a person and as a program sees them."""

from __future__ import annotations

import pytest

from ...conftest import Run


def test_a_source_is_created_disabled_enabled_and_removed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTROOM_PASSWORD", "SECRET")
    run("queue", "create", "in")
    assert run("source", "list").err == "none; create one with: postroom source create NAME\n"
    assert run("source", "create", "TERM-1", "--with-password", "--input", "in").out == "created TERM-1\n"
    assert run("send", "in", "--body", "hello", "--source", "TERM-1").code == 0
    assert run("source", "disable", "TERM-1").out == "disabled: TERM-1\n"
    assert run("source", "disable", "TERM-1").out == "already disabled\n"
    assert "source-held" in run("send", "in", "--body", "hello", "--source", "TERM-1").err
    assert run("source", "list").out.split() == "source state input output TERM-1 disabled in".split()
    assert run("source", "enable", "TERM-1", "--json").json == {"status": "00", "changed": ["TERM-1"]}
    assert run("source", "list", "--json").json["sources"][0]["enabled"] is True
    assert run("source", "remove", "TERM-1").out == "removed TERM-1\n"
    assert "source-unknown" in run("source", "disable", "TERM-1").err


def test_segments_are_sent_and_received_with_their_end_keys(run: Run) -> None:
    run("queue", "create", "in")
    sent = run("send", "in", "--segment", "one\nline", "--segment", "two", "--group")
    assert sent.code == 0
    first = run("receive", "in", "--area", "4", "--json").json
    assert (first["message"]["body"], first["end_key"], first["num_chars"], first["current_char"]) == (
        "one\n",
        "0",
        11,
        4,
    )
    for wrong in (("--segment", "a", "--body", "b"), ("--group", "--body", "a"), ("--segment", "a", "--also", "in")):
        assert run("send", "in", *wrong).code == 1
