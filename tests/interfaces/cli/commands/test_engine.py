"""The command that runs the engine: what it prints for a person and for a program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import postroom

from ...conftest import Run

PROGRAM = Path(sys.executable).with_name("postroom")


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
    assert verbs[-5:] == ["done", "release-lease", "release-lease", "lease", "release-lease"]
    assert len(run("journal", "--last", "2").out.splitlines()) == 3
    assert run("outbox", "retry", "99").err.startswith("postroom: outbox-unknown:")


def test_a_failed_effect_is_shown_and_revived(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom.engine.dispatch.OUTBOX_BACKOFF_SECONDS", 0.01)
    (tmp_path / "fail.sh").write_text("echo the door is locked\necho more\nexit 3\n")
    (tmp_path / "t.qdl").write_text(f'01 INPUT-QUEUE (A) COMMAND LINE IS "sh {tmp_path}/fail.sh"\n99')
    run("load", "t.qdl")
    run("send", "INP_0000", "--body", "x")
    told = run("run", "--until-idle").err
    assert told.count("will be tried again") == 2
    assert "see postroom outbox list" in told
    assert "failed" in run("outbox", "list").out
    assert run("outbox", "list").out.endswith(" exit 3: the door is locked\n")
    assert run("outbox", "retry", "1").out == "1 is pending again\n"
    assert [one["done"] for one in run("run", "--until-idle", "--json").json["effects"]] == [False] * 3
    (tmp_path / "t.qdl").write_text('01 INPUT-QUEUE (A) COMMAND LINE IS "echo mended"\n99')
    run("load", "t.qdl")
    run("outbox", "retry", "1")
    assert run("run", "--until-idle").err == "echo mended -arg INP_0000: exit 0\n1 effect(s) done\n"


def test_a_running_engine_says_at_once_that_a_queue_waits_for_another(run: Run, tmp_path: Path) -> None:
    program = "create queue in kind basic mode persistent create queue large kind basic mode persistent\n"
    (tmp_path / "p.demaq").write_text(f"{program}create rule sort for in if (//n) then do enqueue <l/> into large\n")
    run("load", "p.demaq")
    run("queue", "password", "large", stdin="pw\n")
    run("disable", "large", stdin="pw\n")
    run("send", "in", "--format", "xml", "--body", "<n/>")
    with subprocess.Popen([PROGRAM, "run"], cwd=tmp_path, stderr=subprocess.PIPE, text=True) as engine:
        assert engine.stderr is not None
        try:
            lines = [engine.stderr.readline() for _ in range(2)]
            assert "in waits: large is on hold; free it with: postroom enable large\n" in lines
            assert run("waiting").err.splitlines()[1] == "1 message(s) wait for the engine, which runs"
        finally:
            engine.terminate()


def test_senders_send_and_evaluate_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "p.demaq").write_text(
        "create queue orders kind basic mode persistent\n"
        "create queue out kind outgoingGateway mode persistent interface command port file\n"
        "create rule pass for orders if (/a) then do enqueue <b/> into out\n"
    )
    run("gateway", "add", "file", "command", "command=tee sent")
    run("load", "p.demaq")
    run("send", "out", "--body", "1")
    run("send", "orders", "--format", "xml", "--body", "<a/>")
    assert run("run", "--senders", "--until-idle").err == "effects=1 failures=0\n1 effect(s) done\n"
    assert run("count", "orders", "--json").json["queues"][0]["unprocessed"] == 1
    run("send", "out", "--body", "2")
    told = run("run", "--senders", "--until-idle", "--json").json
    assert (told["step_count"], told["message_count"], told["ways"]) == (0, 0, {})
    assert [(one["done"], one["retry"]) for one in told["effects"]] == [(True, False)]


@pytest.mark.parametrize("words", [("--master", "local[1]"), ("--conf", "a=b"), ("--spark", "always")])
def test_senders_take_no_settings_of_spark(run: Run, words: tuple[str, str]) -> None:
    ran = run("run", "--senders", *words)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("postroom: argument-invalid: --senders: it starts no Spark")


def test_a_second_process_of_senders_is_refused(run: Run, tmp_path: Path) -> None:
    with postroom.open(str(tmp_path / "postroom.db")) as room:
        room.store.transact("lease", lambda tx: tx.leases.acquire("senders", "elsewhere/7/1", 60))
    ran = run("run", "--senders", "--until-idle")
    assert ran.code == 1
    assert ran.err.startswith("postroom: lease-held: senders is held by process 7 on elsewhere until ")
