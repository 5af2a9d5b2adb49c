"""Plain sends by the short way: as by the long one, only in fewer calls."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.interfaces.http.conftest import Served

from postroom.interfaces.http.handling import plain_sends
from postroom.limits import USER_REQUESTS_PER_SECOND
from postroom.model.message import Message

PATH = "/queues/orders/messages"
REQUESTS: tuple[tuple[bytes, dict[str, str]], ...] = (
    (b'{"body": "order 17"}', {}),
    (b'{"body": "<order/>"}', {}),
    (b'{"body": "{\\"id\\": 1}"}', {}),
    (b'{"body": ""}', {}),
    ('{"body": "sch\u00f6n \U0001f600"}'.encode(), {}),
    (b' {"body" : "x"} ', {"content-type": "text/plain"}),
    (b'{"body": {"price": 10.00}}', {}),
    (b'{"body": "x", "properties": {"a": 1}}', {}),
    (b'{"body": "x", "odd": 1}', {}),
    (b'{"body": null}', {}),
    (b'{"body": 5}', {}),
    (b'{"body": "x", "body": "y"}', {}),
    (b'{"body": "a\\u0000b"}', {}),
    (b'{"body": "\\ud800"}', {}),
    (b'{"body": "x"', {}),
    (b"[]", {}),
    (b"", {}),
    (b"\xff", {}),
    (b'{"body": "x"}', {"idempotency-key": "one"}),
    (b'{"body": "x"}', {"idempotency-key": ""}),
    (b'{"body": "x"}', {"idempotency-key": "k" * 300}),
    (b'{"body": "x"}', {"accept": "application/vnd.postroom.objects+json"}),
    (b'{"body": "x"}', {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}),
    (b'"data"', {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/x", "ce-type": "t"}),
    (
        b'{"specversion": "1.0", "id": "1", "source": "/x", "type": "t"}',
        {"content-type": "application/cloudevents+json"},
    ),
)


_ACCEPTED = 15  # of them


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each request, whether it went the short way; while the list has ``False`` at its end, none does."""
    ways: list[bool] = []
    find = plain_sends.find

    def noted(*arguments: Any) -> plain_sends.PlainSend | None:
        found = find(*arguments)
        ways.append(found is not None)
        return found

    monkeypatch.setattr(plain_sends, "find", noted)
    return ways


def _said(response: httpx.Response) -> tuple[int, dict[str, Any], dict[str, str]]:
    document = response.json()
    if "key" in document:
        document["key"] = "KEY"
    if isinstance(document.get("result"), dict):
        document["result"] = sorted(document["result"])
    headers = {name: response.headers.get(name, "") for name in ("content-type", "cache-control", "traceparent")}
    return response.status_code, document, headers


def _sent(message: Message) -> dict[str, Any]:
    shape = message.as_dict()
    return {name: shape[name] for name in ("queue", "type", "format", "body", "properties", "cause")}


def _know(here: Served, client: httpx.Client, taken: list[bool]) -> int:
    """Send until the right is known; answers how often."""
    here.interface._callers.refresh()  # it forgets nothing later
    for number in range(1, 1_000):
        assert client.post(PATH, json={"body": "x"}).status_code == 201
        if taken[-1]:
            return number
    raise AssertionError("no send goes the short way")


def test_the_short_way_does_what_the_long_one_does(
    here: Served, taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    here.room.queues.create("orders")
    answers: list[list[Any]] = []
    find = plain_sends.find
    for way in (lambda *_: None, find):
        monkeypatch.setattr(plain_sends, "find", way)
        said: list[Any] = []
        token = here.user(f"ann{len(answers)}", ("send", "orders"))
        with here.client(token) as client:
            if answers:
                _know(here, client, taken)
            for body, headers in REQUESTS:
                said.append(_said(client.post(PATH, content=body, headers=headers)))
        said.append([_sent(message) for message in here.room.peek("orders")][-_ACCEPTED:])
        assert sum(status == 201 for status, _, _ in said[:-1]) == _ACCEPTED
        answers.append(said)
    for number, (long, short) in enumerate(zip(*answers, strict=True)):
        assert long == short, REQUESTS[number : number + 1]


def test_which_requests_go_the_short_way(here: Served, taken: list[bool]) -> None:
    here.room.queues.create("orders")
    with here.client() as client:
        assert _know(here, client, taken) > 1
        for headers in ({}, {"idempotency-key": "x"}, {"accept": "application/json"}):
            client.post(PATH, json={"body": "x"}, headers=headers)
            assert taken.pop() is True
        for headers in (
            {"accept": "application/cloudevents+json"},
            {"traceparent": "x"},
            {"authorization": "Bearer x"},
        ):
            client.post(PATH, json={"body": "x"}, headers=headers)
            assert taken.pop() is False
        client.post("/queues/orders/receive", json={})
        client.get(PATH)
        client.post(PATH, content=iter([b'{"body": ', b'"in pieces"}']))
        assert taken[-3:] == [False, False, False]


def test_a_right_that_is_withdrawn_ends_the_short_way_at_once(here: Served, taken: list[bool]) -> None:
    here.room.queues.create("orders")
    token = here.user("ann", ("send", "orders"))
    with here.client(token) as client, here.client() as boss:
        sent = _know(here, client, taken)
        boss.request("DELETE", "/grants/ann/send/orders").raise_for_status()
        refused = client.post(PATH, json={"body": "x"})
        assert (refused.status_code, refused.json()["code"]) == (403, "right-missing")
    assert here.room.count("orders").queues[0].unprocessed == sent


def test_the_short_way_is_counted_and_bounded_as_any_other(here: Served, taken: list[bool]) -> None:
    here.room.queues.create("orders")
    with here.client() as client:
        sent = _know(here, client, taken)
        assert here.interface._measured.requests["queues.send", 201] == sent
        here.interface._pace._left["boss"] = (-10.0 * USER_REQUESTS_PER_SECOND, here.interface._pace._clock())
        refused = client.post(PATH, json={"body": "x"})
    assert taken[-1] is True
    assert (refused.status_code, refused.json()["code"]) == (429, "too-many-requests")
    assert here.room.count("orders").queues[0].unprocessed == sent


def test_a_queue_that_is_held_says_so(here: Served, taken: list[bool]) -> None:
    here.room.queues.create("orders", password="secret")
    with here.client() as client:
        _know(here, client, taken)
        here.room.queues.disable("orders", password="secret")
        held = client.post(PATH, json={"body": "x"})
        assert held.json().get("code") == "queue-held", held.text
        here.room.queues.enable("orders", password="secret")
        assert client.post(PATH, json={"body": "x"}).status_code == 201
