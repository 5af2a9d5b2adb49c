"""What is received on the command line: messages, segments, nothing."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

import postroom

from ...conftest import Run

MESSAGE = {"key", "queue", "type", "format", "body", "properties", "created", "processed", "cause"}


def test_receive_prints_the_message_and_the_queues_it_passed(tree: Run) -> None:
    tree("send", "INP_0002", "--body", "hello")
    got = tree("receive", "MASTER-QUE")
    assert got.out == "hello\n"
    assert got.err == "no unprocessed message in INP_0000\nno unprocessed message in INP_0001\n"
    tree("send", "INP_0001", "--body", "again", "--property", "customer=Oscar")
    answer = tree("receive", "MASTER-QUE", "SUBQ-3", "--json").json
    assert set(answer) == {"status", "message", "passed", "end_of_message"}
    assert set(answer["message"]) == MESSAGE
    assert answer["message"]["properties"] == {"customer": "Oscar"}
    assert (answer["status"], answer["passed"], answer["end_of_message"]) == ("00", [], True)
    empty = tree("receive", "MASTER-QUE", "--json").json
    assert (empty["message"], len(empty["passed"]), empty["end_of_message"]) == (None, 3, False)


def test_segments_tell_the_end_of_the_message(tree: Run) -> None:
    tree("send", "INP_0000", stdin="one\ntwo\n")
    first, second = tree("receive", "INP_0000", "--segment"), tree("receive", "INP_0000", "-s")
    assert (first.out, first.err) == ("one\n", "")
    assert (second.out, second.err) == ("two\n", "end of message\n")


def test_following_goes_on_through_a_hold(tree: Run) -> None:
    tree("disable", "MASTER-QUE", stdin="MASTER\n")
    assert tree("receive", "MASTER-QUE").err.startswith("postroom: queue-held")
    assert tree("receive", "MASTER-QUE", "--follow", "--wait", "0.1").code == 0


def test_whoever_follows_gets_what_was_sent_when_the_hold_has_ended(tmp_path: Path) -> None:
    """In a process of its own, which waits all the time."""
    url = str(tmp_path / "room.db")
    with postroom.open(url) as room:
        room.queues.create("q", password="pw")
        room.queues.disable("q", password="pw", output_only=True)
        room.send("q", "kept")
        words = [sys.executable, "-m", "postroom", "--room", url, "receive", "q", "--follow", "--wait", "60"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as follows:
            assert follows.stdout is not None
            time.sleep(1)
            assert follows.poll() is None, "it has ended at the hold"
            room.queues.enable("q", password="pw")
            try:
                assert follows.stdout.readline() == "kept\n"
            finally:
                follows.terminate()


def test_receive_without_a_queue_names_some(tree: Run) -> None:
    asked = tree("receive")
    assert asked.code == 1
    assert asked.err.endswith("queue: say which queue to receive from, such as: MASTER-QUE, OQ3\n")
    tree("queue", "create", "my queue")
    tree("send", "my queue", "--body", "x")
    assert tree("receive", "--follow").err.endswith("such as: 'my queue', MASTER-QUE, OQ3\n"), "messages wait there"


def test_receive_names_no_queue_that_refuses(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTROOM_PASSWORD", "b")
    run("station", "add", "Bob")
    (tmp_path / "a.form").write_text("type MEMO\n| To: ____ |\nfield To string free\n")
    assert run("load", "a.form").code == 0
    key = run("create", "MEMO", "To=x", "--as", "Bob").out.strip()
    assert run("ship", key, "Bob", "--as", "Bob").code == 0
    (tmp_path / "a.flow").write_text("domain trading\nspace Jobs : [id: int]\n")
    assert run("load", "a.flow").code == 0
    (tmp_path / "a.demaq").write_text("create queue till kind basic mode persistent\n")
    assert run("load", "a.demaq").code == 0
    assert {"station:Bob", "mailbox:Bob", "meta:trading", "postroom-errors"} <= {
        count["queue"] for count in run("accept", "--json").json["queues"]
    }
    assert run("receive").err.endswith("such as: Jobs, till\n")


def test_receive_in_an_empty_room_explains_what_to_do_next(run: Run, tmp_path: Path) -> None:
    assert "postroom load FILE.qdl" in run("receive").err
    run("queue", "create", "q")
    run("queue", "remove", "q")
    for words in (("receive",), ("receive", "anything")):
        asked = run(*words)
        assert asked.code == 1
        assert f"the room {tmp_path / 'postroom.db'} has no queues yet" in asked.err
        assert "postroom queue create NAME" in asked.err


def test_nothing_to_receive_can_be_an_exit_code(tree: Run) -> None:
    tree("send", "OQ3", "--body", "x")
    assert tree("receive", "OQ3", "--or-fail").code == 0
    assert tree("receive", "OQ3").code == 0
    assert tree("receive", "OQ3", "--or-fail").code == 3
    assert tree("receive", "OQ3", "--or-fail", "--json").code == 3


def test_refused_commands_make_no_room(run: Run, tmp_path: Path) -> None:
    assert run("load", "missing.qdl").code == 1
    assert run("queue", "create", "a/b").code == 1
    assert list(tmp_path.glob("*.db*")) == []
