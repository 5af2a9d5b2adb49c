"""What is sent from the command line, and what is refused."""

from __future__ import annotations

from ...conftest import Run


def test_send_takes_the_whole_standard_input_or_body(tree: Run) -> None:
    sent = tree("send", "INP_0000", "--json", stdin="line one\n.not the end in a pipe\nline three\n")
    assert sent.json == {"status": "00", "key": "00001.00001"}
    assert tree("send", "MASTER-QUE", "SUBQ-1", "QUE1A", "--body", "short").out == "00001.00002\n"
    bodies = [message["body"] for message in tree("info", "INP_0000", "--json").json["messages"]]
    assert bodies == ["line one\n.not the end in a pipe\nline three\n", "short"]


def test_unknown_queues_exit_with_1_and_wrong_usage_with_2(tree: Run) -> None:
    unknown = tree("receive", "MASTER-QEU", "--json")
    assert unknown.code == 1
    assert unknown.json["status"] == "20"
    assert "did you mean MASTER-QUE" in unknown.err
    assert unknown.err.count("\n") == 1
    assert tree("send").code == 2
    assert tree("nonsense").code == 2
    assert tree("receive", "INP_0000", "--wait", "soon").code == 2


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


def test_send_to_several_names_who_was_refused(tree: Run) -> None:
    both = tree("send", "OQ3", "--also", "MASTER-QUE/SUBQ-1/QUE1A", "--body", "x", "--json")
    assert (both.code, both.json["status"]) == (0, "00")
    assert [one["queue"] for one in both.json["deliveries"]] == ["OUT_0000", "INP_0000"]
    some = tree("send", "OQ3", "--also", "NOBODY", "--body", "x")
    assert some.code == 1
    assert "queue-unknown" in some.out
    assert tree("send", "OQ3", "--also", "OQ3", "--body", "x", "--idempotency-key", "k").code == 1


def test_a_path_in_one_word_is_answered_with_how_to_write_it(tree: Run) -> None:
    assert "separate words, or with /" in tree("send", "MASTER-QUE SUBQ-1 QUE1A", "--body", "x").err
    assert tree("send", "MASTER-QUE/SUBQ-1/QUE1A", "--body", "x").code == 0


def test_bad_bodies_and_properties_are_refused(tree: Run) -> None:
    assert tree("send", "OQ3", "--format", "xml", "--body", "<a>").err.startswith("postroom: xml-malformed:")
    assert tree("send", "OQ3", "--format", "json", "--body", "{").err.startswith("postroom: json-malformed:")
    assert tree("send", "OQ3", "--body", "x", "--property", "novalue").err.startswith("postroom: argument-invalid:")
    assert tree("send", "OQ3", stdin="\udcff").err.startswith("postroom: argument-invalid: standard input: byte 1")
    assert tree("send", "OQ3", "--body", "x", "--type", "None").err.startswith("postroom: type-unknown:")
    assert tree("accept", "OQ3", "--json").json["queues"][0]["unprocessed"] == 0
