"""The commands on a room: load, trace, locate, show, journal, outbox; which room; errors."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import postroom
from postroom.version import __version__

from ...conftest import Run
from ..conftest import damage


def test_trace_locate_and_show(run: Run) -> None:
    run("queue", "create", "q")
    key = run("send", "q", "--body", "hello", "--property", "a=b").out.strip()
    assert run("locate", key, "--json").json == {"status": "00", "key": key, "place": "q"}
    assert run("locate", key).out == "q\n"
    run("receive", "q")
    traced = run("trace", key, "--json").json
    assert traced["key"] == key
    assert [set(event) for event in traced["events"]] == [{"seq", "key", "time", "verb", "from", "to", "by"}] * 2
    assert [event["verb"] for event in traced["events"]] == ["put", "take"]
    assert "put" in run("trace", key).out
    shown = run("show", key)
    assert "properties: {'a': 'b'}" in shown.out
    assert shown.out.endswith("\nhello\n")
    assert run("show", key, "--json").json["body"] == "hello"
    run("queue", "mode", "discard", "q")
    assert "processed and deleted" in run("locate", key).err
    assert run("locate", key, "--json").json == {"status": "00", "key": key, "place": None}
    assert run("trace", "00009.00009").err.startswith("postroom: message-unknown:")
    assert run("trace", "nonsense").err.startswith("postroom: key-invalid:")


def test_a_damaged_message_is_told_as_one(run: Run, tmp_path: Path) -> None:
    run("queue", "create", "q")
    key = run("send", "q", "--body", "pay 100").out.strip()
    damage(tmp_path, "100", "900")
    for set_aside in (False, True):
        if set_aside:
            assert run("receive", "q").err.startswith("postroom: message-corrupt:")
        said = f"{key} is damaged: it does not match its hash, and nobody will receive it; see: postroom trace {key}\n"
        located, shown = run("locate", key), run("show", key)
        assert (located.out, located.err) == ("q\n", said)
        assert (shown.out, shown.err) == (f"key: {key}\nqueue: q\n", said)
        assert run("why", key).out == said
        assert all(run(verb, key, "--json").json["corrupt"] is True for verb in ("locate", "show", "why"))


def test_trace_with_causes(run: Run) -> None:
    run("queue", "create", "q")
    run("queue", "create", "answers")
    asked = run("send", "q", "--body", "hello").out.strip()
    run("receive", "q")
    answer = run("send", "answers", "--body", "yes", "--cause", asked).out.strip()
    shown = run("trace", answer, "--causes").out.splitlines()
    assert shown[0].split() == ["key", "type", "time", "by", "history"]
    assert shown[1].startswith(f"{asked} ")
    assert "q; taken by " in shown[1]
    assert shown[2].startswith(f"  {answer} *")
    assert shown[2].endswith("answers")
    told = run("trace", asked, "--causes", "--json").json
    assert (told["key"], told["complete"], told["silent"]) == (asked, True, [])
    first, second = told["messages"]
    assert (first["key"], first["depth"], first["led_to"], first["place"]) == (asked, 0, [answer], "q")
    assert (second["causes"], second["depth"], second["place"]) == ([asked], 1, "answers")
    assert [event["verb"] for event in first["events"]] == ["put", "take"]
    with postroom.open("postroom.db") as room:
        sphere = room.sphere("pay")
        sphere.send("q", "order", compensation="cancel", cause=asked)
        sphere.send("answers", "done", when="commit", cause=asked)
        sphere.abort("no money")
    undone = run("trace", asked, "--causes").out.splitlines()[3:]
    assert [line.split("  ")[-1].partition(" by ")[0] for line in undone] == [
        "q (in sphere pay, withdrawn); withdraw",
        f"COMP.Q (in sphere pay, undoes {undone[0].split()[0]}); withdraw",
        "COMP.Q (in sphere pay, on commit); withdraw",
    ]
    assert run("trace", "00009.00009", "--causes").err.startswith("postroom: message-unknown:")
    assert run("send", "q", "--body", "x", "--cause", "00009.00009").err.startswith("postroom: message-unknown:")
    assert run("send", "q", "--also", "answers", "--body", "x", "--cause", asked).code == 1


def test_verify_compares_the_room_with_its_journal(run: Run, tmp_path: Path) -> None:
    run("queue", "create", "q")
    for body in ("a", "b"):
        key = run("send", "q", "--body", body).out.strip()
    run("receive", "q")
    assert run("verify").out == ("verified: 4 journal entries, 2 message(s) in 1 queue(s), 0 gone\n")
    assert run("verify", "--json").json == {
        "status": "00",
        "lines": 4,
        "message_count": 2,
        "departed": 0,
        "queue_count": 1,
        "differences": [],
        "archived": 0,
        "older": 0,
        "uncovered": 0,
    }
    with postroom.open(tmp_path / "postroom.db") as room:
        room.store.transact("send", lambda tx: tx.session.run("UPDATE messages SET state = 0"))
    found = run("verify")
    assert found.code == 1
    assert found.err.startswith("postroom: journal-differs: 2 difference(s) between the room and its journal")
    assert f"message {key}" in found.out
    assert "state 1" in found.out
    told = run("verify", "--json")
    assert (told.code, told.err) == (1, "")
    assert [each["differs"] for each in told.json["differences"]] == ["counts of queue 1", f"message {key}"]


def test_a_load_that_changes_a_password_needs_the_present_one_and_says_what_it_changed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.qdl").write_text('01 INPUT-QUEUE (A) PASSWORD IS "OLD"\n99')
    run("load", "t.qdl")
    (tmp_path / "t.qdl").write_text('01 INPUT-QUEUE (A) PASSWORD IS "NEW"\n99')
    refused = run("load", "t.qdl", stdin="OLD\n")
    assert refused.err == (
        "postroom: password-needed: the load would change the password of A, and the current password was not given; "
        "give it, or override as the operator: load --change-passwords, or change_passwords=True\n"
    )
    monkeypatch.setenv("POSTROOM_PASSWORD", "WRONG")
    assert run("load", "t.qdl").err.startswith("postroom: password-wrong: wrong password for A (it came from $POSTROOM")
    monkeypatch.setenv("POSTROOM_PASSWORD", "OLD")
    assert run("load", "t.qdl").out.endswith("passwords changed: A\n")
    monkeypatch.delenv("POSTROOM_PASSWORD")
    (tmp_path / "t.qdl").write_text("01 INPUT-QUEUE (A)\n99")
    assert run("load", "t.qdl", "--change-passwords", "--json").json["passwords"] == ["A"]
    assert run("disable", "A", stdin="NEW\n").err.startswith("postroom: password-missing")


def test_load_reports_what_changed_and_check_lists_every_problem(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.qdl").write_text("01 INPUT-QUEUE (A)\n99")
    assert run("load", "--check", "t.qdl").out == "1 entries, no problem found; nothing was loaded\n"
    assert not (tmp_path / "postroom.db").exists()
    assert run("load", "t.qdl").out == "version 1: 1 added, 0 kept, 0 removed\nadded: INP_0000\n"
    assert run("load", "t.qdl", "--json").json == {
        "status": "00",
        "version": 1,
        "added": [],
        "changed": [],
        "passwords": [],
        "kept": ["INP_0000"],
        "removed": [],
    }
    (tmp_path / "bad.qdl").write_text('01 INPUT-QUEUE (A) PASSWORD IS ""\n03 SUB-QUEUE-1 (B)\n99')
    checked = run("load", "--check", "bad.qdl")
    assert checked.code == 1
    assert checked.err.splitlines() == [
        "postroom: description-invalid: bad.qdl:1:1: the password of A must be letters and digits, at least one "
        "[password-form]",
        "postroom: description-invalid: bad.qdl:2:1: SUB-QUEUE-1 stands at level 02, not 03 [clause-level]",
        "postroom: description-invalid: bad.qdl:2:1: level 03 needs a level 02 directly above it [level-skipped]",
    ]
    assert len(run("load", "--check", "bad.qdl", "--json").json["problems"]) == 3
    loaded = run("load", "bad.qdl")
    assert "(and 2 more" in loaded.err
    assert loaded.err.count("\n") == 1


def test_the_room_comes_from_the_option_the_environment_or_the_working_directory(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = run("accept")
    assert missing.code == 1
    assert "postroom load FILE.qdl" in missing.err
    assert not (tmp_path / "postroom.db").exists()
    run("queue", "create", "here")
    monkeypatch.setenv("POSTROOM_URL", str(tmp_path / "env.db"))
    run("queue", "create", "from-environment")
    run("--room", "option.db", "queue", "create", "before")
    run("queue", "create", "after", "--room", "option.db")
    assert {file.name for file in tmp_path.glob("*.db")} == {"postroom.db", "env.db", "option.db"}
    queues = run("accept", "--room", "option.db", "--json").json["queues"]
    assert [count["queue"] for count in queues] == ["before", "after"]
    assert run("--json", "accept").json["queues"][0]["queue"] == "from-environment"


def test_a_message_that_was_not_sent_yet_says_where_to_look(run: Run, tmp_path: Path) -> None:
    """Its history had the first line alone, and the reason was to be found under the number of the effect."""
    (tmp_path / "out.demaq").write_text("create queue out kind outgoingGateway mode persistent port partner")
    run("gateway", "add", "partner", "http", "address=http://127.0.0.1:9/", "backoff=600")
    run("load", "out.demaq")
    key = run("send", "out", "--body", "x").out.strip()
    assert run("outbox", "list").out.splitlines()[1].split() == ["1", "gateway", "pending", "0", "out", key]
    with postroom.open(tmp_path / "postroom.db") as room:
        assert room.engine.run_senders(report=lambda *_: room.engine.stop()) == 1
    told = run("trace", key)
    assert [line.split()[1] for line in told.out.splitlines()[1:]] == ["put", "not-sent"]
    assert "attempt=1, retry=True, outcome=http://127.0.0.1:9: ConnectError" in told.out
    assert told.err == f"{key} was not sent yet, and will be tried again: postroom outbox list\n"
    run("outbox", "drop", "1")
    dropped = run("trace", key)
    assert "dropped from the outbox" in dropped.out.splitlines()[-1]
    assert dropped.err == ""


def test_an_effect_can_be_dropped_and_numbers_are_never_given_twice(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.qdl").write_text('01 INPUT-QUEUE (A) COMMAND LINE IS "true"\n99')
    run("load", "t.qdl")
    run("send", "A", "--body", "x")
    assert run("outbox", "drop", "1").out == "1 was dropped\n"
    assert run("outbox", "drop", "1").err.startswith("postroom: outbox-unknown:")
    assert run("outbox", "retry", str(10**30)).err.startswith("postroom: outbox-unknown:")
    run("receive", "A")
    run("send", "A", "--body", "y")
    assert [one["effect"] for one in run("outbox", "list", "--json").json["effects"]] == [2]


def test_odd_files_and_numbers_are_refused(run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.qdl")
    (tmp_path / "zero.qdl").symlink_to("/dev/zero")
    (tmp_path / "folder.qdl").mkdir()
    for name in ("pipe.qdl", "zero.qdl", "folder.qdl", "a\udcff.qdl", "nul\0.qdl"):
        assert run("load", "--check", name).err.startswith("postroom: file-unreadable:"), name
    run("queue", "create", "q")
    assert run("journal", "--last", str(10**30)).err.startswith("postroom: argument-invalid:")
    assert run("send", "q", "--body", "x", "--idempotency-key", "\udcff").err.startswith("postroom: argument-invalid:")
    assert run("--room", "x" * 300, "accept").err.startswith("postroom: store-unavailable:")
    assert run("--room", "a\udcff.db", "accept").err.startswith("postroom: url-invalid:")


def test_version_and_help(run: Run) -> None:
    assert run("--version").out == f"postroom {__version__}\n"
    help = run("--help").out
    for word in ("send", "receive", "accept", "hierarchy", "First steps"):
        assert word in help


def test_hierarchy_of_an_empty_room_says_what_to_do(run: Run) -> None:
    run("queue", "create", "q")
    assert run("hierarchy").err == "this room has no queue description: postroom load FILE.qdl\n"
