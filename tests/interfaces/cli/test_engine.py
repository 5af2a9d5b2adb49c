"""The command that runs the engine: what it prints for a person and for a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..conftest import Run


def test_run_drains_the_outbox_and_tells_what_it_did(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.qdl").write_text('01 INPUT-QUEUE (A) COMMAND LINE IS "echo ran"\n99')
    run("load", "t.qdl")
    run("send", "INP_0000", "--body", "x")
    listed = run("outbox", "list", "--json").json["effects"]
    assert [(one["kind"], one["state"], one["attempts"]) for one in listed] == [("command", "pending", 0)]
    assert "echo ran -arg INP_0000" in run("outbox", "list").out
    assert run("run", "--until-idle").err == "echo ran -arg INP_0000: exit 0\n1 effect(s) done\n"
    assert run("outbox", "list").err == "the outbox is empty\n"
    assert run("run", "--until-idle", "--json").json == {
        "status": "00",
        "step_count": 0,
        "message_count": 0,
        "created_count": 0,
        "failures": 0,
        "blocked": {},
        "ways": {},
        "effects": [],
    }
    verbs = [event["verb"] for event in run("journal", "--json").json["events"]]
    assert verbs[-4:] == ["done", "release-lease", "lease", "release-lease"]
    assert len(run("journal", "--last", "2").out.splitlines()) == 3
    assert run("outbox", "retry", "99").err.startswith("postroom: outbox-unknown:")


def test_a_failed_effect_is_shown_and_revived(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom.engine.dispatch.OUTBOX_BACKOFF_SECONDS", 0.01)
    (tmp_path / "t.qdl").write_text('01 INPUT-QUEUE (A) COMMAND LINE IS "false"\n99')
    run("load", "t.qdl")
    run("send", "INP_0000", "--body", "x")
    told = run("run", "--until-idle").err
    assert told.count("will be tried again") == 2
    assert "see postroom outbox list" in told
    assert "failed" in run("outbox", "list").out
    assert run("outbox", "retry", "1").out == "1 is pending again\n"
    assert [one["done"] for one in run("run", "--until-idle", "--json").json["effects"]] == [False] * 3
    (tmp_path / "t.qdl").write_text('01 INPUT-QUEUE (A) COMMAND LINE IS "echo mended"\n99')
    run("load", "t.qdl")
    run("outbox", "retry", "1")
    assert run("run", "--until-idle").err == "echo mended -arg INP_0000: exit 0\n1 effect(s) done\n"
