"""HTTP coming in: paths, authentication, answers, and a place to ask."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from time import sleep, time

import httpx
import pytest
import uvicorn
from tests.faults.here import evaluate_here

import postroom
from postroom.gateways.http import signature
from postroom.limits import BODY_BYTES_MAX
from postroom.room import Postroom

PROGRAM = """
create queue orders kind incomingGateway mode persistent interface http port orders errorqueue errs
create queue answers kind outgoingGateway mode persistent interface http port orders
create queue hooks kind incomingGateway mode persistent interface http port hooks
create queue errs kind basic mode persistent
create rule confirm for orders if (/order) then do enqueue <ok>{string(/order)}</ok> into answers
"""
XML = {"content-type": "application/xml"}
KEY = "whsec_" + base64.b64encode(b"0123456789abcdef").decode()


@pytest.fixture
def room(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Postroom]:
    monkeypatch.setenv("HOOK_KEY", KEY)
    monkeypatch.setenv("HOOK_TOKEN", "t0ken")
    file = tmp_path / "p.demaq"
    file.write_text(PROGRAM)
    with postroom.open(sqlite_url) as opened:
        evaluate_here(opened)
        opened.gateways.add("orders", "http", path="/orders", headers="X-Trace,X-None", wait="20")
        opened.gateways.add("plain", "http", path="/plain")
        opened.gateways.add("hooks", "http", path="/hooks", in_secret="env:HOOK_KEY", in_token="env:HOOK_TOKEN")
        opened.load(file)
        yield opened


@pytest.fixture
def client(room: Postroom) -> Iterator[httpx.Client]:
    server = uvicorn.Server(uvicorn.Config(room.gateways.http_app(), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30) as made:
        yield made
    server.should_exit = True
    thread.join()


@pytest.fixture
def engine(room: Postroom) -> Iterator[None]:
    thread = threading.Thread(target=room.engine.run_totals)
    thread.start()
    yield
    room.stop()
    thread.join()


def waiting(room: Postroom, queue: str) -> int:
    return len(list(room.queues.info(queue)))


def signed(body: bytes, id: str = "m1", stamp: int | None = None, key: str = KEY) -> dict[str, str]:
    moment = str(int(time()) if stamp is None else stamp)
    return {
        "webhook-id": id, "webhook-timestamp": moment, "webhook-signature": signature(key, id, moment, body),
        "authorization": "Bearer t0ken", "content-type": "application/json",
    }  # fmt: skip


def test_a_request_gets_the_answer_that_rules_give_it(client: httpx.Client, room: Postroom, engine: None) -> None:
    answer = client.post("/orders", content="<order>7</order>", headers={**XML, "X-Trace": "abc"})
    assert (answer.status_code, answer.text) == (200, "<ok>7</ok>")
    assert answer.headers["content-type"] == "application/xml; charset=utf-8"
    (message,) = room.queues.history("orders")
    assert message.properties["x-trace"] == "abc"
    assert str(message.properties["sender"]).startswith("127.0.0.1:")


def test_a_request_that_waits_too_long_gets_a_place_to_ask(client: httpx.Client, room: Postroom) -> None:
    answer = client.post("/orders", content="<order>7</order>", headers={**XML, "Prefer": "wait=0"})
    assert answer.status_code == 202
    place = answer.headers["location"]
    assert client.get(place).status_code == 202
    room.run_until_idle()
    told = client.get(place)
    assert (told.status_code, told.text, told.headers["postroom-key"]) == (
        200, "<ok>7</ok>", next(iter(room.queues.history("answers"))).key,
    )  # fmt: skip
    assert client.get("/orders/answers/nobody").status_code == 404
    elsewhere = place.replace("/orders/", "/plain/")
    assert (elsewhere != place, client.get(elsewhere).status_code) == (True, 404), "an endpoint has its own requests"


def test_an_answer_can_be_asked_for_after_a_sweep_and_is_gone_when_it_was_purged(
    client: httpx.Client, room: Postroom
) -> None:
    headers = {**XML, "prefer": "respond-async"}
    place = client.post("/orders", content="<order>7</order>", headers=headers).headers["location"]
    room.run_until_idle()
    assert client.get(place).text == "<ok>7</ok>"
    room.engine.sweep()
    assert (client.get(place).status_code, client.get(place).text) == (200, "<ok>7</ok>")
    place = client.post("/orders", content="<order>8</order>", headers=headers).headers["location"]
    room.consumers.purge("orders")
    gone = client.get(place)
    assert (gone.status_code, gone.json()["code"]) == (410, "message-gone")


def test_the_same_number_is_the_same_message(client: httpx.Client, room: Postroom) -> None:
    headers = {**XML, "Idempotency-Key": '"a"', "Prefer": "respond-async"}
    first, second = (client.post("/orders", content="<order>7</order>", headers=headers) for _ in range(2))
    assert first.json() == second.json()
    assert client.post("/orders", content="<order>8</order>", headers=headers).status_code == 409
    assert waiting(room, "orders") == 1


@pytest.mark.parametrize(("method", "path", "body", "status", "code"), [
    ("POST", "/no", b"x", 404, "gateway-unknown"), ("POST", "/orders", b"<order>", 400, "xml-malformed"),
    ("POST", "/orders", b'<!DOCTYPE o [<!ENTITY x SYSTEM "file:///etc/passwd">]><o>&x;</o>', 400, "xml-forbidden"),
    ("POST", "/orders", b"x" * (BODY_BYTES_MAX + 1), 413, "body-too-large"),
])  # fmt: skip
def test_what_cannot_be_taken_in_is_answered_with_the_reason(
    client: httpx.Client, room: Postroom, method: str, path: str, body: bytes, status: int, code: str
) -> None:
    answer = client.request(method, path, content=body, headers=XML)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert waiting(room, "orders") == 0
    assert client.get("/orders").status_code == 405


def test_only_who_signs_and_shows_the_token_gets_in(client: httpx.Client, room: Postroom) -> None:
    body = b'{"n": 1}'
    good = signed(body)
    assert client.post("/hooks", content=body, headers=good).status_code == 202
    for more in ({}, {"idempotency-key": '"other"'}):  # which is not signed
        again = client.post("/hooks", content=body, headers={**good, **more})
        assert again.json() == {"key": "00001.00001"}, "once"
    bad = [
        signed(b'{"n": 2}'), signed(body, stamp=int(time()) - 3600), signed(body, stamp=int(time()) + 3600),
        signed(body, key="other"), {**good, "webhook-id": "m2"}, {**good, "authorization": "Bearer no"},
        {name: text for name, text in good.items() if name != "webhook-signature"},
        {name: text for name, text in good.items() if name != "authorization"},
    ]  # fmt: skip
    assert {client.post("/hooks", content=body, headers=headers).status_code for headers in bad} == {401}
    assert waiting(room, "hooks") == 1
    later = signed(body, "m3")
    rotated = {**later, "webhook-signature": f"v1,AAAA {later['webhook-signature']}"}
    assert client.post("/hooks", content=body, headers=rotated).status_code == 202


def test_a_secret_that_is_not_there_lets_nobody_in(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, room: Postroom
) -> None:
    monkeypatch.delenv("HOOK_KEY")
    assert client.post("/hooks", content=b"{}", headers=signed(b"{}")).status_code == 503
    assert waiting(room, "hooks") == 0


def test_cloud_events_come_in_both_forms(client: httpx.Client, room: Postroom) -> None:
    event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "data": {"n": 1}}
    structured = {"content-type": "application/cloudevents+json", "Prefer": "respond-async"}
    assert client.post("/orders", content=json.dumps(event), headers=structured).status_code == 202
    assert client.post("/orders", content=json.dumps(event), headers=structured).status_code == 202
    binary = {"ce-id": "2", "ce-source": "/s", "ce-type": "t", "ce-specversion": "1.0", "Prefer": "respond-async"}
    assert client.post("/orders", content='{"n":2}', headers={**binary, "content-type": "application/json"}).is_success
    first, second = room.queues.info("orders")
    assert (first.value, second.value) == ({"n": 1}, {"n": 2})
    assert first.properties["ce-type"] == "t"
    assert first.properties["sender"] == "/s"
    assert client.post("/orders", content="{}", headers=structured).status_code == 400


def test_a_queue_on_hold_asks_to_come_again(client: httpx.Client, room: Postroom) -> None:
    room.queues.set_password("orders", password="p")
    room.queues.disable("orders", password="p")
    answer = client.post("/orders", content="<order/>", headers=XML)
    assert (answer.status_code, answer.json()["code"], answer.headers["retry-after"]) == (503, "queue-held", "5")


@pytest.mark.parametrize(("headers", "body", "status", "why"), [
    ({"content-type": "application/cloudevents+json"}, b'{"specversion":"1.0"}', 400, "id: an event needs it"),
    ({"content-type": "application/cloudevents+json"},
     b'{"specversion":"1.0","id":null,"source":null,"type":[1]}', 400, "id: an event needs it"),
    ({"content-type": "application/cloudevents+json"},
     b'{"specversion":"1.0","id":"1","source":"a","type":"t","time":"now"}', 400, "time: a time is expected"),
    ({"content-type": "application/cloudevents+json"}, b"[]", 400, "it is no object"),
    ({"ce-specversion": "1.0"}, b"<order/>", 400, "id: an event needs it"),
    ({"ce-specversion": "0.3", "ce-id": "1", "ce-source": "a", "ce-type": "t"}, b"<order/>", 400, "only 1.0 is known"),
    ({"content-type": "application/cloudevents+json"}, b"{", 400, "this is no CloudEvent"),
    ({"content-type": "application/cloudevents+json"},
     b'{"specversion":"1.0","id":"1","source":"a","type":"t","data_base64":"%"}', 400, "data_base64 is not Base64"),
    ({"ce-id": "%zz%ff", "ce-source": "a"}, b"<order/>", 400, "ce-id: it is not percent-encoded UTF-8"),
    ({}, b"x" * (BODY_BYTES_MAX + 1_000_000), 413, f"the body has {BODY_BYTES_MAX + 1_000_000} bytes"),
])  # fmt: skip
def test_what_is_no_message_is_an_error_message_and_an_answer(
    room: Postroom, client: httpx.Client, headers: dict[str, str], body: bytes, status: int, why: str
) -> None:
    """These three were answered, and nobody inside heard of them."""
    answer = client.post("/orders", content=body, headers=headers)
    assert (answer.status_code, why in answer.json()["detail"]) == (status, True)
    (error,) = room.queues.info("errs")
    assert f"<class>message</class><code>{answer.json()['code']}</code><description>from 127.0.0.1:" in error.body
    assert why in error.body
    assert len(error.body) < 1_000, "a body that is too large is not kept"


def test_who_is_not_known_makes_no_error_message(room: Postroom, client: httpx.Client) -> None:
    large, event = b"x" * (BODY_BYTES_MAX + 1), {"content-type": "application/cloudevents+json"}
    bearer = {"authorization": "Bearer t0ken"}
    assert client.post("/hooks", content=large).status_code == 401
    assert client.post("/hooks", content=large, headers=bearer).status_code == 413, "its signature cannot be checked"
    assert client.post("/hooks", content=b"{}", headers=event).status_code == 401
    assert client.post("/hooks", content=b"{}", headers={**event, **bearer}).status_code == 401
    assert "put" not in [event.verb for event in room.journal.last(100)]


def test_xml_comes_in_as_it_is_written(room: Postroom, client: httpx.Client) -> None:
    latin = "<?xml version='1.0' encoding='ISO-8859-1'?><offer>é</offer>".encode("latin-1")
    for body, kind in [(latin, "text/xml"), ("<offer>é</offer>".encode("utf-16"), "application/xml; charset=utf-16")]:
        assert client.post(
            "/orders", content=body, headers={"content-type": kind, "prefer": "respond-async"}
        ).is_success
    assert [message.body.rpartition("?>")[2] for message in room.queues.info("orders")] == ["<offer>é</offer>"] * 2
