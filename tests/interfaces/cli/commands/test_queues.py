"""Commands on queues: counts, holds, the tree, single queues."""

from __future__ import annotations

from pathlib import Path

import pytest

from ...conftest import Run


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


def test_a_refusal_names_the_level_whose_password_opens_the_queue(tree: Run) -> None:
    tree("disable", "MASTER-QUE", stdin="MASTER\n")
    assert "enable it with: postroom enable MASTER-QUE" in tree("send", "INP_0001", "--body", "x").err
    assert "enable it with: postroom enable MASTER-QUE" in tree("receive", "MASTER-QUE", "SUBQ-3").err
    assert "enable it with: postroom enable MASTER-QUE" in tree("receive", "INP_0001", "--lease", "10").err
    tree("queue", "create", "single")
    tree("send", "single", "--body", "x")
    assert "enable it with: postroom enable MASTER-QUE" in tree("move", "single", "--to", "INP_0001").err
    assert "enable it with: postroom enable MASTER-QUE" in tree("redrive", "single", "--to", "INP_0001").err
    assert "name MASTER-QUE, which has one" in tree("enable", "INP_0001").err
    assert tree("queue", "password", "INP_0001", stdin="mine\nmine\n").code == 1  # not without the level's own
    assert tree("queue", "password", "INP_0001", stdin="MASTER\nmine\n").code == 0
    assert tree("enable", "INP_0001", stdin="mine\n").out == "enabled: INP_0001\n"


def test_a_table_cannot_be_broken_by_what_a_message_says(tree: Run) -> None:
    tree("send", "OQ3", "--body", "a\x1b[31m\nb\r\tc")
    lines = tree("info", "OQ3").out.splitlines()
    assert len(lines) == 2
    assert "\x1b" not in lines[1]
