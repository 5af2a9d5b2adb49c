"""What is no call with one answer: following spaces, lines, a backup."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from tests.interfaces.http.conftest import TRADING, Served, serving

import postroom
from postroom.interfaces.http.handling import bulk, calls
from postroom.interfaces.http.waiting import events
from postroom.model.message import Message
from postroom.room import Postroom


def test_the_events_of_a_space_are_followed(here: Served, tmp_path: Path) -> None:
    (tmp_path / "trading.flow").write_text(TRADING)
    here.room.load(tmp_path / "trading.flow")
    here.room.publish("Trades", {"issue": "A", "price": 1})
    ann = here.user("ann", ("subscribe", "Trades"))
    with here.client(ann) as client:
        assert client.get("/spaces/Big/follow").status_code == 403
        with client.stream("GET", "/spaces/Trades/follow", headers={"last-event-id": "0"}) as events:
            lines = (line for line in events.iter_lines() if line.startswith("data:"))
            assert json.loads(next(lines).removeprefix("data:"))["body"] == {"issue": "A", "price": 1}
            here.room.publish("Trades", {"issue": "B", "price": 2})
            assert json.loads(next(lines).removeprefix("data:"))["body"] == {"issue": "B", "price": 2}


def test_a_backup_is_downloaded_whole_and_only_by_operators(here: Served, tmp_path: Path) -> None:
    here.room.queues.create("q")
    here.room.send("q", "x")
    with here.client(here.user("ann", ("look", "*"))) as poor:
        assert poor.get("/backup").status_code == 403
    with here.client() as client:
        (tmp_path / "copy.db").write_bytes(client.get("/backup").content)
    with postroom.open(tmp_path / "copy.db") as copy:
        assert [each.body for each in copy.peek("q")] == ["x"]


def test_lines_go_from_one_queue_to_another_as_they_are(here: Served) -> None:
    for name in ("a", "b"):
        here.room.queues.create(name)
    exact = '{"n": 1.00000000000000000000000001}'
    here.room.send("a", exact, format="json", properties={"p": 1})
    here.room.send("a", "text")
    with here.client() as client:
        lines = client.get("/queues/a/lines").content
        assert exact.encode() in lines
        told = client.post("/queues/b/lines", content=lines).text.splitlines()
        assert json.loads(told[-1]) == {"status": "00", "message_count": 2, "done": True}
        here.room.receive("a")
        assert len(client.get("/queues/a/lines?processed=true").text.splitlines()) == 1
        assert client.get("/queues/nowhere/lines").status_code == 404
        assert client.get("/queues/a/lines?odd=1").status_code == 400
    found = [(each.body, each.format.value, dict(each.properties)) for each in here.room.peek("b")]
    assert found == [(exact, "json", {"p": 1}), ("text", "text", {})]


@pytest.mark.slow
def test_a_hundred_thousand_lines_in_one_request_and_out_again(here: Served) -> None:
    here.room.queues.create("q")
    with here.client() as client:
        sent = b"".join(b'{"body": {"id": %d}}\n' % number for number in range(100_000))
        with client.stream("POST", "/queues/q/lines", content=sent, timeout=300) as answer:
            told = [json.loads(line) for line in answer.iter_lines()]
        assert [each["message_count"] for each in told] == [*range(5_000, 100_001, 5_000), 100_000]
        with client.stream("GET", "/queues/q/lines", timeout=300) as answer:
            assert sum(1 for _ in answer.iter_lines()) == 100_000


def test_many_follow_beside_each_other(here: Served) -> None:
    here.room.queues.create("q")
    found: list[str] = []

    def follow() -> None:
        with (
            here.client() as client,
            client.stream("GET", "/queues/q/follow", headers={"last-event-id": "0"}) as events,
        ):
            found.append(next(line for line in events.iter_lines() if line.startswith("data:")))

    threads = [threading.Thread(target=follow) for _ in range(5)]
    for thread in threads:
        thread.start()
    here.room.send("q", "x")
    for thread in threads:
        thread.join(60)
    assert len(found) == 5


# --- rights that are taken back ---

FOLLOWED = [
    ("/queues/orders/follow", "look", "orders"),
    ("/journal/follow", "look", "*"),
    ("/spaces/Trades/follow", "subscribe", "Trades"),
]


@pytest.mark.parametrize("how", ["withdrawn", "revoked"])
@pytest.mark.parametrize(("path", "verb", "object"), FOLLOWED)
def test_following_ends_when_the_right_to_it_is_taken_back(
    here: Served, tmp_path: Path, path: str, verb: str, object: str, how: str
) -> None:
    (tmp_path / "trading.flow").write_text(TRADING)
    here.room.load(tmp_path / "trading.flow")
    here.room.queues.create("orders")
    token = here.user("ann", (verb, object))
    with here.client(token) as client, client.stream("GET", path, headers={"last-event-id": "0"}) as events:
        _happen(here, "before")
        lines = events.iter_lines()
        assert any("before" in line for line in lines if line.startswith("data:"))
        _take_back(here, token, verb, object, how)
        _happen(here, "after")
        assert not any("after" in line for line in lines)  # they end
        assert client.get(path).status_code == (403 if how == "withdrawn" else 401)


def test_following_goes_on_when_the_right_of_another_is_taken_back(here: Served) -> None:
    here.room.queues.create("orders")
    token = here.user("ann", ("look", "orders"))
    here.user("bob", ("look", "orders"))
    with (
        here.client(token) as client,
        client.stream("GET", "/queues/orders/follow", headers={"last-event-id": "0"}) as events,
    ):
        here.room.access.withdraw("bob", "look", "orders")
        here.room.send("orders", "after")
        lines = events.iter_lines()
        assert any("after" in line for line in lines if line.startswith("data:"))
        here.room.access.withdraw("ann", "look", "orders")
        assert not any(line.startswith("data:") for line in lines)


def _happen(served: Served, what: str) -> None:
    served.room.send("orders", what)
    served.room.publish("Trades", {"issue": what, "price": 1})
    served.room.queues.create(what)  # the journal tells of it by its name


def _take_back(served: Served, token: str, verb: str, object: str, how: str) -> None:
    if how == "withdrawn":
        assert served.room.access.withdraw("ann", verb, object)
    else:
        served.room.access.revoke_token(token.split("_")[1])


@pytest.mark.parametrize("how", ["withdrawn", "revoked"])
@pytest.mark.parametrize("asked", [{}, {"lease": 60}])
def test_waiting_for_a_message_ends_when_the_right_to_it_is_taken_back(
    served: Served, asked: dict[str, int], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, pause = threading.Event(), calls.pause

    def noted(room: Postroom, queue: tuple[str, ...] | None) -> float:
        waits.set()
        return pause(room, queue)

    monkeypatch.setattr(calls, "pause", noted)
    served.room.queues.create("orders")
    token = served.user("ann", ("receive", "orders"))
    found: list[int] = []

    def wait() -> None:
        with served.client(token) as client:
            found.append(client.post("/queues/orders/receive", json={"wait": 55, **asked}, timeout=60).status_code)

    thread = threading.Thread(target=wait)
    thread.start()
    assert waits.wait(60)
    _take_back(served, token, "receive", "orders", how)
    served.room.send("orders", "after")
    thread.join(60)
    assert found == [403 if how == "withdrawn" else 401]
    assert [each.body for each in served.room.peek("orders")] == ["after"]


def test_lines_with_a_key_go_on_where_they_were_also_at_another_server(
    room: Postroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "BULK_LINES", 3)
    room.queues.create("q")
    lines = [f'{{"body": "{number}"}}' for number in range(8)]
    known = {b"idempotency-key": "käse".encode()}
    with serving(room) as first, first.client() as client:
        broken = [*lines[:7], "{"]
        told = client.post("/queues/q/lines", content="\n".join(broken).encode(), headers=known).text.splitlines()
        assert [json.loads(line).get("message_count") for line in told] == [3, 6, None]
        assert json.loads(told[-1])["error"]["facts"]["where"] == "line 8"
    with serving(room) as second, second.client() as client:
        for _ in range(2):
            told = client.post("/queues/q/lines", content="\n".join(lines).encode(), headers=known).text.splitlines()
            assert json.loads(told[-1]) == {"status": "00", "message_count": 8, "done": True}
        other = client.post("/queues/q/lines", content=b'{"body": "other"}', headers=known)
        assert (other.status_code, other.json()["code"]) == (400, "argument-invalid")
        long = client.post("/queues/q/lines", content=b'{"body": "x"}', headers={"idempotency-key": "x" * 201})
        assert long.status_code == 400
    assert [message.body for message in room.peek("q")] == [str(number) for number in range(8)]


def test_a_part_of_lines_is_one_commit_whatever_is_said_of_their_formats(here: Served) -> None:
    here.room.queues.create("q")
    here.room.consumers.set_policy("q", max_messages=3)
    lines = [{"body": "a"}, {"body": "b", "format": "text"}, {"body": "c"}, {"body": "d", "format": "text"}]
    with here.client() as client:
        refused = client.post("/queues/q/lines", content="\n".join(json.dumps(line) for line in lines).encode())
        assert (refused.status_code, refused.json()["code"]) == (409, "queue-full")
    assert here.room.count("q").queues[0].unprocessed == 0


@pytest.mark.parametrize(
    ("lines", "status", "code"),
    [(b"{", 400, "request-invalid"), (b'{"no": 1}', 400, "request-invalid"), (b'{"body": 1, "type": 5}', 400, None)],
)
def test_lines_that_are_refused_before_anything_was_sent_are_refused_as_any_request(
    here: Served, lines: bytes, status: int, code: str | None
) -> None:
    here.room.queues.create("q")
    with here.client() as client:
        refused = client.post("/queues/q/lines", content=lines)
        assert (refused.status_code, refused.headers["content-type"]) == (status, "application/problem+json")
        assert refused.json()["facts"]["where"].startswith("line 1")
        assert code in (None, refused.json()["code"])
        assert client.post("/queues/nowhere/lines", content=b'{"body": 1}').status_code == 404
        empty = client.post("/queues/q/lines", content=b"")
        assert (empty.status_code, empty.json()["message_count"]) == (200, 0)


@pytest.mark.parametrize("how", ["withdrawn", "revoked"])
def test_lines_that_are_read_end_when_the_right_to_them_is_taken_back(
    here: Served, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "PAGE_ROWS", 2)
    here.room.queues.create("orders")
    here.room.send_many("orders", [str(number) for number in range(6)])
    token = here.user("ann", ("look", "orders"))
    read, pages = bulk._page, iter(range(9))

    def taken_back(messages: Any) -> list[Message]:
        if next(pages) == 1:
            _take_back(here, token, "look", "orders", how)
            here.interface._callers.refresh()
        return read(messages)

    monkeypatch.setattr(bulk, "_page", taken_back)
    with here.client(token) as client:
        *told, last = [json.loads(line) for line in client.get("/queues/orders/lines").text.splitlines()]
    assert [line["body"] for line in told] == ["0", "1"]
    assert last["error"]["code"] == ("right-missing" if how == "withdrawn" else "token-refused")


@pytest.mark.parametrize("how", ["withdrawn", "revoked"])
def test_lines_that_are_sent_end_when_the_right_to_it_is_taken_back(
    here: Served, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "BULK_LINES", 2)
    here.room.queues.create("orders")
    token = here.user("ann", ("send", "orders"))

    def lines() -> Iterator[bytes]:
        yield b'{"body": 1}\n{"body": 2}\n'
        while here.room.count("orders").queues[0].unprocessed < 2:
            sleep(0.01)
        _take_back(here, token, "send", "orders", how)
        here.interface._callers.refresh()
        yield b'{"body": 3}\n{"body": 4}\n'

    with here.client(token) as client:
        told = [json.loads(line) for line in client.post("/queues/orders/lines", content=lines()).text.splitlines()]
    assert told[0] == {"status": "00", "message_count": 2}
    assert told[1]["error"]["code"] == ("right-missing" if how == "withdrawn" else "token-refused")
    assert here.room.count("orders").queues[0].unprocessed == 2


@pytest.mark.parametrize("how", ["withdrawn", "revoked"])
def test_a_sphere_ends_with_the_right_of_the_connection_that_keeps_it(here: Served, how: str) -> None:
    token = here.user("ann", ("sphere", "*"))
    with here.client(token) as client:
        assert client.post("/spheres", json={"id": "mine", "heartbeat": 1}).status_code == 200
        with client.stream("GET", "/spheres/mine/heartbeat", timeout=60) as beats:
            lines = beats.iter_lines()
            assert any("ACTIVE" in line for line in lines)
            _take_back(here, token, "sphere", "*", how)
            assert not any("ABORTED" in line or "COMMITTED" in line for line in lines)  # it ends by itself
    while here.room.spheres.show("mine").sphere.state == "ACTIVE":
        sleep(0.01)
    assert "may not hold it" in (here.room.spheres.show("mine").sphere.reason or "")


def test_whoever_has_gone_is_not_followed_until_something_happens(
    here: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "FOLLOW_PING_SECONDS", 3_600.0)
    here.room.queues.create("q")
    with here.client() as client:
        for _ in range(3):
            with client.stream("GET", "/queues/q/follow"):
                while not here.interface.tail.followers:
                    sleep(0.01)
        end = monotonic() + 60
        while here.interface.tail.followers and monotonic() < end:
            sleep(0.01)
        assert here.interface.tail.followers == 0


@pytest.mark.parametrize("path", ["/queues/nowhere/follow", "/queues/no/where/follow", "/spaces/nowhere/follow"])
def test_what_does_not_exist_cannot_be_followed(here: Served, path: str) -> None:
    here.room.queues.create("q")
    with here.client() as client, client.stream("GET", path) as answer:
        assert answer.status_code == 404
        assert json.loads(answer.read())["code"] in ("queue-unknown", "definition-unknown")
    with here.client(here.user("ann", ("look", "q"))) as client:  # and who may not, does not learn it
        assert client.get(path).status_code == 403
