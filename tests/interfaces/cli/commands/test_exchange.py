"""Files for other programs, by command."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.interfaces.conftest import Run
from tests.stations.world import NOTE


def test_the_journal_is_written_as_an_event_log(run: Run, tmp_path: Path) -> None:
    run("queue", "create", "q")
    run("send", "q", "--body", "1")
    assert run("export", "--xes", "log.xes").out == "log.xes: 1 event(s) of 1 case(s)\n"
    assert run("export", "--ocel", "log.json").out == "log.json: 1 event(s) of 1 object(s)\n"
    told = run("export", "--xes", "log.xes.gz", "--case", "cause", "--json").json
    assert told == {
        "status": "00",
        "file": "log.xes.gz",
        "event_count": 1,
        "case_count": 1,
        "room_event_count": 1,
        "damaged_count": 0,
    }
    assert {each.name for each in tmp_path.glob("log*")} == {"log.xes", "log.xes.gz", "log.json"}


def test_an_export_says_what_it_wants(run: Run) -> None:
    run("queue", "create", "q")
    for words in ((), ("--xes", "a.xes", "--ocel", "a.json"), ("--ocel", "a.json", "--case", "cause")):
        assert run("export", *words).code == 1
    assert "exists" in [run("export", "--xes", "a.xes").err for _ in range(2)][1]


def test_a_file_is_sent_and_a_queue_exported(run: Run, tmp_path: Path) -> None:
    run("queue", "create", "q")
    (tmp_path / "a.csv").write_text("id,item\n17,paper\n18,pen\n")
    assert run("send", "q", "--file", "a.csv").out == "2 message(s) sent to q\n"
    assert run("send", "q", "--file", "a.csv").out == "0 message(s) sent to q, 2 were sent before\n"
    assert run("send", "q", "--file", "a.csv", "--idempotency-key", "2", "--json").json == {
        "status": "00",
        "file": "a.csv",
        "queue": "q",
        "sent_count": 2,
        "skipped_count": 0,
    }
    assert run("export", "q", "--file", "q.jsonl").out == "q.jsonl: 4 message(s)\n"
    assert run("export", "q", "--processed", "--file", "p.jsonl", "--json").json["message_count"] == 0
    run("queue", "create", "copy")
    assert run("send", "copy", "--messages", "--file", "q.jsonl").out == "4 message(s) sent to copy\n"
    assert run("receive", "copy").out == '{"id":"17","item":"paper"}\n'
    for words in (("--body", "x"), ("--also", "copy"), ("--cause", "00001.00001")):
        assert run("send", "q", "--file", "a.csv", *words).code == 1
    assert run("send", "q", "--messages").code == 1
    refused = run("send", "q", "--file", "a.txt")
    assert (refused.code, "file-unreadable" in refused.err) == (1, True)
    for odd in ("--file x.csv", "q --xes x.xes", "--xes x.xes --processed"):
        assert run("export", *odd.split()).code == 1


def test_received_messages_are_lines_of_json(run: Run) -> None:
    run("queue", "create", "q")
    run("send", "q", "--format", "json", "--body", '{"id": 17}', "--property", "p=1")
    run("send", "q", "--body", "two\nlines")
    first = run("receive", "q", "--format", "jsonl").json
    assert (first["body"], first["properties"], first["format"]) == ({"id": 17}, {"p": "1"}, "json")
    rest = run("receive", "q", "--follow", "--wait", "0", "--format", "jsonl")
    assert (rest.json["body"], rest.out.count("\n")) == ("two\nlines", 1)
    assert run("receive", "q", "--format", "jsonl").out == ""
    assert run("receive", "q", "--segment", "--format", "jsonl").code == 1


def test_a_segment_of_json_is_a_string(run: Run) -> None:
    run("queue", "create", "q")
    run("send", "q", "--format", "json", "--body", '{"id":\n17}')
    assert run("receive", "q", "--segment", "--json").json["message"]["body"] == '{"id":'
    assert run("receive", "q", "--segment", "--json").json["message"]["body"] == "17}"


def test_forms_are_filled_in_from_a_file(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTROOM_PASSWORD", "secret")
    (tmp_path / "note.form").write_text(NOTE)
    run("load", "note.form")
    run("station", "add", "ann")
    (tmp_path / "notes.csv").write_text("To,Count,Text\nBob,1,call\nCid,,\n")
    keys = run("create", "NOTE", "--file", "notes.csv", "--as", "ann").out.split()
    assert len(keys) == 2
    shown = run("query", "NOTE", "--as", "ann", "--json").json["images"]
    assert [(each["fields"]["To"], each["fields"]["Count"]) for each in shown] == [("Bob", 1), ("Cid", None)]
    for name, text, said in (
        ("bad.csv", "To,Count\nBob,1\nCid,many\n", "Count"),
        ("list.jsonl", "[1]\n", "line 1"),
        ("lines.txt", "x\n", "line 1"),
    ):
        (tmp_path / name).write_text(text)
        refused = run("create", "NOTE", "--file", name, "--as", "ann")
        assert (refused.code, said in refused.err) == (1, True)
    assert run("create", "NOTE", "To=x", "--file", "notes.csv", "--as", "ann").code == 1
    assert len(run("query", "NOTE", "--as", "ann", "--json").json["images"]) == 2, "all or none"


def test_an_export_says_how_many_messages_it_leaves_out(run: Run) -> None:
    run("queue", "create", "q")
    for words in ((), (), ("--delay", "600")):
        assert run("send", "q", "--body", "x", *words).code == 0
    assert run("receive", "q", "--lease", "60").code == 0
    exported = run("export", "q", "--file", "q.jsonl")
    assert (exported.code, exported.out) == (0, "q.jsonl: 1 message(s)\n")
    assert exported.err.endswith("2 message(s) that are leased or wait for their time are not in it\n")
    assert "not in it" not in run("export", "q", "--file", "p.jsonl", "--processed").err
