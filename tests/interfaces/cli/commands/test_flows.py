"""Commands on flows, as a person and as a program sees them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.faults.here import evaluate_here

import postroom
from postroom.room.queues import RoomQueues

from ...conftest import Run

GRAPH = """domain trading
allow operator : disableArc
space NYSE : [issue: string, price: int]
space Big : [issue: string, price: int]
table seats : [issue: string, city: string] from "seats.csv"
arc big : NYSE -> Big select [price: p > 75]
"""


@pytest.fixture
def desk(run: Run, tmp_path: Path) -> Run:
    (tmp_path / "trading.flow").write_text(GRAPH)
    (tmp_path / "seats.csv").write_text("issue,city\nIBM,Armonk\n")
    assert run("load", "trading.flow").code == 0
    return run


def flow(tmp_path: Path) -> None:
    with postroom.open(tmp_path / "postroom.db") as room:
        evaluate_here(room).run_until_idle()


def test_load_check_lists_the_problems_of_a_flow(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.flow").write_text("domain d space A : [n: int] arc a : A -> B merge arc b : C -> A merge")
    told = run("load", "--check", "bad.flow")
    assert told.code == 1
    assert told.err.count("postroom: flow-invalid: bad.flow:1:") == 2
    assert "[arc-ends]" in told.err
    assert not (tmp_path / "postroom.db").exists()


def test_publish_takes_literals_json_files_and_standard_input(desk: Run, tmp_path: Path) -> None:
    assert desk("publish", "NYSE", '["IBM", 80]').out == "00001.00004\n"
    assert desk("publish", "NYSE", '{"issue": "HP", "price": 1}', "--json").json["key"] == "00001.00005"
    (tmp_path / "trades.txt").write_text('["a", 1]\n\n["b", 2]\n')
    assert desk("publish", "NYSE", "--file", "trades.txt").out == "2 event(s) published\n"
    assert desk("publish", "NYSE", "--json", stdin='["c", 3]\n').json["keys"] == ["00001.00008"]
    first = desk("publish", "NYSE", '["d", 4]', "--idempotency-key", "k").out
    assert desk("publish", "NYSE", '["d", 4]', "--idempotency-key", "k").out == first
    bodies = [each["body"]["issue"] for each in desk("info", "NYSE", "--json").json["messages"]]
    assert bodies == ["IBM", "HP", "a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["NYSE", '["IBM", "x"]'], "postroom: event-invalid: price: a value of type int is wanted."),
        (
            ["NYES", "[1]"],
            "definition-unknown: there is no space NYES (postroom catalog lists everything); did you mean NYSE?\n",
        ),
        (["NYSE", "x", "--file", "y"], "postroom: argument-invalid: --file: give an event or a file, not both"),
        (
            ["NYSE", "--file", "none.txt"],
            "postroom: file-unreadable: cannot read none.txt: No such file or directory (looked for from the "
            "working directory)",
        ),
        (["NYSE", "--idempotency-key", "k"], "postroom: argument-invalid: --idempotency-key"),
        (["meta:trading", 'DisableArc: ["big"]'], "may not disableArc in the domain trading; allowed to: operator"),
        (["meta:trading", 'Boom: ["big"]'], "postroom: event-invalid: there is no tag Boom"),
    ],
)
def test_what_cannot_be_published_is_told_in_one_line(desk: Run, words: list[str], said: str) -> None:
    told = desk("publish", *words)
    assert (told.code, told.out) == (1, "")
    assert said in told.err
    assert told.err.count("\n") == 1


def test_a_client_subscribes_receives_leaves_and_goes(desk: Run, tmp_path: Path) -> None:
    made = desk("subscribe", "NYSE", "[price: p > 75]", "--as", "me")
    assert made.out == "arc me_NYSE : NYSE -> me select [price: p > 75]\n"
    desk("publish", "NYSE", '["IBM", 80]')
    flow(tmp_path)
    assert desk("receive", "me").out == '{"issue":"IBM","price":80}\n'
    assert desk("disconnect", "--as", "me", "--broker", "north").out == "disconnected: arc me_NYSE : NYSE -> me\n"
    listed = desk("subscriptions")
    assert listed.out.splitlines()[1].split() == ["me", "NYSE", "[price:", "p", ">", "75]", "no", "no"]
    assert desk("connect", "--as", "me", "--json").json["subscriptions"][0]["connected"] is True
    events = [each["body"] for each in desk("info", "meta:trading", "--json").json["messages"]]
    assert [event["broker"] for event in events if "DisableArc" in event["action"]] == ["north"]
    assert desk("unsubscribe", "--as", "me").out == "unsubscribed: arc me_NYSE : NYSE -> me\n"
    assert desk("subscriptions").err.startswith("there are no subscriptions")
    assert desk("unsubscribe", "--as", "me").code == 1


def test_a_subscription_tells_when_a_space_is_stored_no_longer(desk: Run) -> None:
    told = desk("subscribe", "Big", "--as", "me", "--durable")
    assert told.out == "arc me_Big : Big -> me select any durable\n"
    assert told.err.startswith("Big now passes its events on: subscribe to get them")
    assert desk("subscribe", "Big", "--as", "you").err == ""


def test_a_registered_name_shows_its_password(desk: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert desk("principal", "list").err.startswith("none; register one")
    assert desk("principal", "add", "operator", stdin="secret\n").out == "operator is registered\n"
    refused = desk("publish", "meta:trading", 'DisableArc: ["big"]', "--as", "operator", stdin="guess\n")
    assert refused.err.startswith("postroom: principal-refused: operator: there is no such principal, or")
    assert refused.err.endswith("; postroom principal list tells the names\n")
    assert desk("publish", "meta:trading", 'DisableArc: ["big"]', "--as", "operator", stdin="secret\n").code == 0
    token = desk("principal", "add", "service", "--token", "--json").json["token"]
    monkeypatch.setenv("POSTROOM_PASSWORD", token)
    assert desk("subscribe", "NYSE", "--as", "service").code == 0
    refused = desk("publish", "meta:trading", 'EnableArc: ["big"]', "--as", "operator", stdin="secret\n")
    assert "(the password came from $POSTROOM_PASSWORD; unset it to be asked, or to give it on" in refused.err
    monkeypatch.delenv("POSTROOM_PASSWORD")
    for lines, code in (("guess\nother\n", "principal-refused: operator"), ("secret\n", "argument-invalid: password")):
        assert desk("principal", "add", "operator", stdin=lines).err.startswith(f"postroom: {code}")
    assert desk("principal", "add", "operator", stdin="secret\nother\n").out == "the password of operator was changed\n"
    told = desk("principal", "add", "operator", "--replace", stdin="third\n")
    assert told.out == "the password of operator was changed\n"
    assert desk("principal", "list", "--json").json == {"status": "00", "principals": ["operator", "service"]}
    assert desk("principal", "remove", "service").out == "service is no longer registered\n"
    assert desk("principal", "remove", "service").code == 1
    assert desk("principal", "add", "a b", "--token").err.startswith("postroom: argument-invalid: principal")


def test_the_graph_is_listed_drawn_and_explained(desk: Run, tmp_path: Path) -> None:
    desk("publish", "NYSE", '["IBM", 80]')
    desk("subscribe", "NYSE", "--as", "me", "--durable")
    listed = desk("graph").out
    assert listed.startswith(
        "domain trading\n  allow operator : disableArc\n  space meta:trading : the meta-space  (5 "
    )
    assert (
        "  space NYSE : [issue: string, price: int]  (1 waiting)\n    -> Big  big: select [price: p > 75]\n" in listed
    )
    assert "    -> me  me_NYSE: select any durable\n" in listed
    assert "  table seats : [issue: string, city: string] from seats.csv, 1 rows\n" in listed
    shaped = desk("graph", "--json").json
    assert {arc["name"] for arc in shaped["arcs"]} == {"big", "me_NYSE"}
    assert shaped["domains"] == [{"name": "trading", "allows": {"operator": ["disableArc"]}}]
    assert desk("graph", "--mermaid", "g.mmd").out == "g.mmd: 4 spaces, 2 arcs, 1 tables\n"
    assert (tmp_path / "g.mmd").read_text().startswith("flowchart LR\n")
    assert desk("graph", "--mermaid", "none/g.mmd").err.startswith(
        "postroom: argument-invalid: --mermaid: cannot write none/g.mmd"
    )
    told = desk("explain", "big", "--no-plan")
    assert "condition: event.`price` > 75L\n" in told.out
    assert desk("explain", "big", "--no-plan", "--json").json["binds"] == {"p": "int"}
    assert "there is no rule, arc or procedure none" in desk("explain", "none", "--no-plan").err
    assert desk("catalog", "big", "--json").json["definitions"][0]["name"] == "big in trading"


@pytest.fixture
def domains(run: Run, tmp_path: Path) -> Run:
    """Three domains that have an arc of the same name, one of them with another domain."""
    (tmp_path / "domains.flow").write_text(
        """domain d1 space A : [n: int] space B : [n: int] arc same : A -> B merge arc cross : A -> C merge
        domain d2 space C : [n: int] space D : [n: int] arc same : C -> D merge arc cross : A -> C merge
        domain d3 space E : [n: int] space F : [n: int] arc cross : E -> F merge"""
    )
    assert run("load", "domains.flow").code == 0
    return run


def test_an_arc_is_explained_by_what_the_command_says_of_those_of_its_name(domains: Run) -> None:
    assert "say d1:same or d2:same" in domains("explain", "same", "--no-plan").err
    assert "say d1:d2:cross or d3:cross" in domains("explain", "cross", "--no-plan").err
    for name, source in (
        ("d1:same", "A"),
        ("d2:same", "C"),
        ("d1:d2:cross", "A"),
        ("d2:cross", "A"),
        ("d3:cross", "E"),
    ):
        assert domains("explain", name, "--no-plan", "--json").json["source"] == source
    told = domains("explain", "d3:same", "--no-plan")
    assert "there is no rule, arc or procedure d3:same" in told.err
    assert told.err.endswith("; did you mean d1:same?\n")


def test_the_catalog_shows_the_arc_of_a_domain(domains: Run) -> None:
    def shown(name: str) -> list[str]:
        return [entry["name"] for entry in domains("catalog", name, "--json").json["definitions"]]

    assert shown("same") == ["same in d1", "same in d2"]
    assert shown("d2:same") == shown("same in d2") == ["same in d2"]
    assert shown("d1:cross") == ["cross in d1"]
    assert shown("d1:d2:cross") == ["cross in d1", "cross in d2"]
    assert "there is no definition d3:same" in domains("catalog", "d3:same").err
    assert "there is no definition d1:A" in domains("catalog", "d1:A").err


def test_an_empty_room_says_how_to_begin(run: Run) -> None:
    run("queue", "create", "q")
    assert run("graph").err == "there is no graph yet; load one with: postroom load FILE.flow\n"


def test_the_catalog_shows_a_table_by_its_size(desk: Run) -> None:
    assert desk("catalog", "seats", "--json").json["definitions"][0]["definition"]["rows"] == 1


def test_follow_prints_what_arrives_until_it_is_interrupted(
    desk: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    desk("publish", "Big", '["IBM", 80]')
    desk("publish", "Big", '["HP", 90]')
    original = RoomQueues.receive
    left = iter([True, True])

    def receive(self: RoomQueues, *queue: str, wait: float | None = None, **more: Any) -> object:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return original(self, *queue, wait=wait, **more)

    monkeypatch.setattr(RoomQueues, "receive", receive)
    told = desk("receive", "Big", "--follow")
    assert told.out == '{"issue":"IBM","price":80}\n{"issue":"HP","price":90}\n'
    assert told.code == 0


def test_follow_ends_when_nothing_has_come_for_as_long_as_it_waits(desk: Run) -> None:
    desk("publish", "Big", '["IBM", 80]')
    told = desk("receive", "Big", "--follow", "--wait", "0.05", "--json")
    assert json.loads(told.out)["body"] == {"issue": "IBM", "price": 80}
    assert told.code == 0
