"""The queue commands, their text and their JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..conftest import Run

TREE = """
01 INPUT-QUEUE (MASTER-QUE) PASSWORD IS "MASTER"
   02 SUB-QUEUE-1 (SUBQ-1)
      03 SUB-QUEUE-2 (QUE1A)
   02 SUB-QUEUE-1 (SUBQ-3)
      03 SUB-QUEUE-2 (QUE5)
      03 SUB-QUEUE-2 (QUE6)
01 OUTPUT-QUEUE (OQ3)
99
"""
MESSAGE = {"key", "queue", "type", "format", "body", "properties", "created", "processed", "cause"}


@pytest.fixture
def tree(run: Run, tmp_path: Path) -> Run:
    (tmp_path / "tree.qdl").write_text(TREE)
    assert run("load", "tree.qdl").code == 0
    return run


def test_send_takes_the_whole_standard_input_or_body(tree: Run) -> None:
    sent = tree("send", "INP_0000", "--json", stdin="line one\n.not the end in a pipe\nline three\n")
    assert sent.json == {"status": "00", "key": "00001.00001"}
    assert tree("send", "MASTER-QUE", "SUBQ-1", "QUE1A", "--body", "short").out == "00001.00002\n"
    bodies = [message["body"] for message in tree("info", "INP_0000", "--json").json["messages"]]
    assert bodies == ["line one\n.not the end in a pipe\nline three\n", "short"]


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


def test_accept_counts_in_json_and_in_a_table(tree: Run) -> None:
    tree("send", "INP_0000", "--body", "x")
    answer = tree("accept", "MASTER-QUE", "SUBQ-1", "--json").json
    assert answer == {
        "status": "00",
        "queues": [
            {
                "queue": "INP_0000",
                "path": ["MASTER-QUE", "SUBQ-1", "QUE1A"],
                "unprocessed": 1,
                "processed_count": 0,
                "held": False,
            }
        ],
    }
    table = tree("accept").out.splitlines()
    assert table[0].split() == ["queue", "path", "unprocessed", "processed", "state"]
    assert table[1].split() == ["INP_0000", "MASTER-QUE", "SUBQ-1", "QUE1A", "1", "0"]
    assert len(table) == 5


def test_history_shows_both_times(tree: Run) -> None:
    tree("send", "OQ3", "--body", "out")
    assert tree("history", "OQ3").err == "no processed message\n"
    tree("receive", "OQ3")
    (message,) = tree("history", "OQ3", "--json").json["messages"]
    assert message["processed"] > message["created"]
    assert "out" in tree("history", "OQ3").out
    assert tree("info", "OQ3").err == "no unprocessed message\n"


def test_disable_and_enable_take_the_password_from_the_environment_or_standard_input(
    tree: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = tree("disable", "MASTER-QUE", "--json", stdin="MASTER\n")
    assert held.json == {"status": "00", "changed": ["INP_0000", "INP_0001", "INP_0002"]}
    assert tree("disable", "MASTER-QUE").out == "already on hold\n"
    assert tree("disable", "MASTER-QUE", "--json").json == {"status": "15", "changed": []}
    refused = tree("send", "INP_0000", "--body", "x", "--json")
    assert refused.code == 1
    assert refused.json["status"] == "92"
    assert refused.json["error"]["code"] == "queue-held"
    assert refused.err.startswith("postroom: queue-held: INP_0000 is on hold")
    assert "held" in tree("accept").out
    wrong = tree("enable", "MASTER-QUE", "--json", stdin="nope\n")
    assert (wrong.code, wrong.json["status"]) == (1, "40")
    assert tree("enable", "MASTER-QUE", stdin="").err.startswith("postroom: argument-invalid: password")
    monkeypatch.setenv("POSTROOM_PASSWORD", "MASTER")
    assert tree("enable", "MASTER-QUE").out == "enabled: INP_0000, INP_0001, INP_0002\n"
    assert tree("enable", "MASTER-QUE").out == "already enabled\n"
    assert tree("disable", "MASTER-QUE", "--input-only").code == 0
    assert "input held" in tree("accept").out
    assert tree("disable", "MASTER-QUE", "--input-only", "--output-only").code == 1
    output = tree("disable", "MASTER-QUE", "--output-only").out
    assert output == "on hold for output: INP_0000, INP_0001, INP_0002\n"
    assert "output held" in tree("accept").out
    assert tree("send", "INP_0000", "--body", "kept", "--json").json["status"] == "10"
    monkeypatch.setenv("POSTROOM_PASSWORD", "nope")
    assert tree("disable", "MASTER-QUE", "--output-only", "--json").json["status"] == "40"  # before "already"


def test_following_goes_on_through_a_hold(tree: Run) -> None:
    tree("disable", "MASTER-QUE", stdin="MASTER\n")
    assert tree("receive", "MASTER-QUE").err.startswith("postroom: queue-held")
    assert tree("receive", "MASTER-QUE", "--follow", "--wait", "0.1").code == 0


def test_a_refused_password_says_that_it_came_from_the_environment(tree: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = tree("disable", "MASTER-QUE", stdin="nope\n")
    assert wrong.err == "postroom: password-wrong: wrong password for MASTER-QUE\n"
    monkeypatch.setenv("POSTROOM_PASSWORD", "exported")
    source = "(it came from $POSTROOM_PASSWORD; unset it to be asked, or to give it on standard input)"
    said = f"wrong password for MASTER-QUE {source}"
    wrong = tree("disable", "MASTER-QUE", "--json", stdin="MASTER\n")
    assert (wrong.code, wrong.err) == (1, f"postroom: password-wrong: {said}\n")
    assert wrong.json["error"] == {"code": "password-wrong", "text": said, "happened": "no"}
    assert source in tree("queue", "password", "MASTER-QUE").err
    assert "POSTROOM_PASSWORD" not in tree("receive", "nowhere").err, "only a refused password is told"
    monkeypatch.delenv("POSTROOM_PASSWORD")
    assert tree("disable", "MASTER-QUE", stdin="MASTER\n").code == 0


def test_hierarchy_prints_what_loads_to_the_same(tree: Run, tmp_path: Path) -> None:
    printed = tree("hierarchy").out
    assert printed.startswith('01 INPUT-QUEUE (MASTER-QUE) PASSWORD HASH IS "$argon2id$')
    (tmp_path / "copy.qdl").write_text(printed)
    assert tree("--room", "other.db", "load", "copy.qdl").code == 0
    assert tree("--room", "other.db", "hierarchy").out == printed
    shape = tree("hierarchy", "--json").json
    assert shape["levels"][0] == {
        "path": ["MASTER-QUE"],
        "level": 1,
        "role": "input",
        "leaf": False,
        "command": None,
        "timeout": None,
        "has_password": True,
    }


def test_unknown_queues_exit_with_1_and_wrong_usage_with_2(tree: Run) -> None:
    unknown = tree("receive", "MASTER-QEU", "--json")
    assert unknown.code == 1
    assert unknown.json["status"] == "20"
    assert "did you mean MASTER-QUE" in unknown.err
    assert unknown.err.count("\n") == 1
    assert tree("send").code == 2
    assert tree("nonsense").code == 2
    assert tree("receive", "INP_0000", "--wait", "soon").code == 2


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


def test_an_unknown_queue_is_told_with_what_may_have_been_meant(run: Run) -> None:
    run("queue", "create", "orders")
    far = "; list the queues with: postroom count\n"
    assert run("receive", "desk").err == f"postroom: queue-unknown: there is no queue desk{far}"
    assert run("receive", "ODERS").err.endswith("there is no queue ODERS; did you mean orders?\n")
    assert run("receive", "your desk").err.endswith(f"there is no queue 'your desk'{far}")
    run("queue", "create", "my queue")
    assert run("send", "my", "queue", "--body", "x").err.endswith("no queue my queue; did you mean 'my queue'?\n")
    assert run("receive", "my qeue").err.endswith("no queue 'my qeue'; did you mean 'my queue'?\n")


def test_a_message_behind_the_queue_is_told_where_it_goes(tree: Run) -> None:
    tree("queue", "create", "till")
    said = "is a queue; the message goes with --body: postroom send"
    told = tree("send", "till", '{"a":1}')
    assert (told.code, told.err) == (1, f"postroom: argument-invalid: '{{\"a\":1}}': till {said} till --body …\n")
    assert f"'a': till {said} till --body …" in tree("send", "till", "a", "b", "c/d", "e", "f").err
    path = "MASTER-QUE SUBQ-1 QUE1A"
    assert f"'hello': {path} {said} {path} --body …" in tree("send", *path.split(), "hello").err
    assert tree("send", "MASTER-QUE", "hello", "--body", "x").err.startswith("postroom: queue-unknown")
    assert tree("send", *path.split(), stdin="x").code == 0
    assert tree("send", "MASTER-QUE/SUBQ-1", "QUE1A", stdin="one\ntwo").code == 0


def test_receive_in_an_empty_room_explains_what_to_do_next(run: Run, tmp_path: Path) -> None:
    assert "postroom load FILE.qdl" in run("receive").err
    run("queue", "create", "q")
    run("queue", "remove", "q")
    for words in (("receive",), ("receive", "anything")):
        asked = run(*words)
        assert asked.code == 1
        assert f"the room {tmp_path / 'postroom.db'} has no queues yet" in asked.err
        assert "postroom queue create NAME" in asked.err


def test_single_queues_are_made_set_up_and_removed(run: Run) -> None:
    assert run("queue", "create", "orders", "--with-password", stdin="pw1\n").out == "created orders\n"
    assert run("queue", "create", "orders").code == 1
    assert run("queue", "mode", "discard", "orders").out == "discard: orders\n"
    assert run("queue", "mode", "discard", "orders", "--json").json == {"status": "15", "changed": []}
    assert run("queue", "password", "orders", stdin="pw1\npw2\n").out == "password set\n"
    assert run("disable", "orders", stdin="pw2\n").code == 0
    assert run("enable", "orders", stdin="pw2\n").code == 0
    assert run("queue", "remove", "orders", "--json").json == {"status": "00", "queue": "orders"}
    assert run("accept").err.startswith("this room has no queues yet")


def test_send_to_several_names_who_was_refused(tree: Run) -> None:
    both = tree("send", "OQ3", "--also", "MASTER-QUE/SUBQ-1/QUE1A", "--body", "x", "--json")
    assert (both.code, both.json["status"]) == (0, "00")
    assert [one["queue"] for one in both.json["deliveries"]] == ["OUT_0000", "INP_0000"]
    some = tree("send", "OQ3", "--also", "NOBODY", "--body", "x")
    assert some.code == 1
    assert "queue-unknown" in some.out
    assert tree("send", "OQ3", "--also", "OQ3", "--body", "x", "--idempotency-key", "k").code == 1


def test_nothing_to_receive_can_be_an_exit_code(tree: Run) -> None:
    tree("send", "OQ3", "--body", "x")
    assert tree("receive", "OQ3", "--or-fail").code == 0
    assert tree("receive", "OQ3").code == 0
    assert tree("receive", "OQ3", "--or-fail").code == 3
    assert tree("receive", "OQ3", "--or-fail", "--json").code == 3


def test_a_refusal_names_the_level_whose_password_opens_the_queue(tree: Run) -> None:
    tree("disable", "MASTER-QUE", stdin="MASTER\n")
    assert "enable it with: postroom enable MASTER-QUE" in tree("send", "INP_0001", "--body", "x").err
    assert "enable it with: postroom enable MASTER-QUE" in tree("receive", "MASTER-QUE", "SUBQ-3").err
    assert "name MASTER-QUE, which has one" in tree("enable", "INP_0001").err
    assert tree("queue", "password", "INP_0001", stdin="mine\nmine\n").code == 1  # not without the level's own
    assert tree("queue", "password", "INP_0001", stdin="MASTER\nmine\n").code == 0
    assert tree("enable", "INP_0001", stdin="mine\n").out == "enabled: INP_0001\n"


def test_a_path_in_one_word_is_answered_with_how_to_write_it(tree: Run) -> None:
    assert "separate words, or with /" in tree("send", "MASTER-QUE SUBQ-1 QUE1A", "--body", "x").err
    assert tree("send", "MASTER-QUE/SUBQ-1/QUE1A", "--body", "x").code == 0


def test_refused_commands_make_no_room(run: Run, tmp_path: Path) -> None:
    assert run("load", "missing.qdl").code == 1
    assert run("queue", "create", "a/b").code == 1
    assert list(tmp_path.glob("*.db*")) == []


def test_bad_bodies_and_properties_are_refused(tree: Run) -> None:
    assert tree("send", "OQ3", "--format", "xml", "--body", "<a>").err.startswith("postroom: xml-malformed:")
    assert tree("send", "OQ3", "--format", "json", "--body", "{").err.startswith("postroom: json-malformed:")
    assert tree("send", "OQ3", "--body", "x", "--property", "novalue").err.startswith("postroom: argument-invalid:")
    assert tree("send", "OQ3", stdin="\udcff").err.startswith("postroom: argument-invalid: standard input: byte 1")
    assert tree("send", "OQ3", "--body", "x", "--type", "None").err.startswith("postroom: type-unknown:")
    assert tree("accept", "OQ3", "--json").json["queues"][0]["unprocessed"] == 0


def test_a_table_cannot_be_broken_by_what_a_message_says(tree: Run) -> None:
    tree("send", "OQ3", "--body", "a\x1b[31m\nb\r\tc")
    lines = tree("info", "OQ3").out.splitlines()
    assert len(lines) == 2
    assert "\x1b" not in lines[1]
