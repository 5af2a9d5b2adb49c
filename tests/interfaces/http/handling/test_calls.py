"""What a request says besides its body: traces, limits, events in batches."""

from __future__ import annotations

import json

import pytest
from tests.interfaces.http.conftest import Served

from postroom.interfaces.http.handling import calls
from postroom.interfaces.http.handling.cloudevents import BATCH
from postroom.limits import LISTED_MAX

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
EXACT = '{"n":1.00000000000000000000000001}'


def test_a_trace_is_kept_and_passed_on(here: Served) -> None:
    here.room.queues.create("q")
    with here.client() as client:
        headers = {"traceparent": TRACE}
        client.post("/queues/q/messages", json={"body": "one"}, headers=headers)
        client.post("/queues/q/batch", json={"bodies": ["two"]}, headers=headers)
        client.post("/queues/q/messages", json={"body": "three", "priority": 0, "properties": {"traceparent": "own"}})
        for expected in (TRACE, TRACE, "own"):
            assert client.post("/queues/q/receive", json={}).headers["traceparent"] == expected
        client.post("/queues/q/messages", json={"body": "four"}, headers=headers)
        event = client.post("/queues/q/receive", json={}, headers={"accept": "application/cloudevents+json"})
        assert (event.json()["traceparent"], event.headers["traceparent"]) == (TRACE, TRACE)
        client.post("/queues/q/messages", json={"body": "five"}, headers=headers)
        leased = client.post("/queues/q/receive", json={"lease": 30})
        assert leased.headers["traceparent"] == TRACE


def test_batches_of_events_come_and_go(here: Served) -> None:
    here.room.queues.create("q")
    events = "".join(
        f'{{"specversion": "1.0", "id": "{number}", "source": "x", "type": "t", "data": {EXACT}}},' for number in (1, 2)
    )
    with here.client() as client:
        headers = {"content-type": BATCH}
        sent = client.post("/queues/q/messages", content=f"[{events[:-1]}]", headers=headers)
        assert len(sent.json()["keys"]) == 2
        odd = client.post("/queues/q/messages", content=f'[{events} {{"id": "3"}}]', headers=headers)
        assert (odd.status_code, odd.json()["facts"]["where"]) == (400, "event 3: specversion")
        for wrong in ("{}", "[1]", "[", ""):
            assert client.post("/queues/q/messages", content=wrong, headers=headers).status_code == 400
        looked = client.get("/queues/q/messages", headers={"accept": BATCH})
        assert looked.headers["content-type"] == BATCH
        assert [each["id"] for each in looked.json()] == ["1", "2"]
        assert EXACT in looked.text
        leased = client.post("/queues/q/lease", json={"count": 5}, headers={"accept": BATCH})
        assert client.post("/leases/done", json={"messages": [each["postroomlease"] for each in leased.json()]}).json()
        assert client.post("/queues/q/receive", json={}, headers={"accept": BATCH}).json() == []
    assert here.room.count("q").queues[0].processed == 2
    assert [each.body for each in here.room.queues.history("q")] == [EXACT, EXACT]


def test_an_answer_has_a_bounded_number_of_messages(here: Served) -> None:
    here.room.queues.create("q")
    here.room.send_many("q", ["x"] * 600)
    with here.client() as client:
        assert len(client.get("/queues/q/messages").json()["messages"]) == 500
        assert len(client.get("/queues/q/messages?limit=600").json()["messages"]) == 600
        refused = client.get(f"/queues/q/messages?limit={LISTED_MAX + 1}")
        assert (refused.status_code, refused.json()["code"]) == (400, "argument-invalid")


def test_a_body_keeps_its_text_however_it_is_sent(here: Served) -> None:
    here.room.queues.create("q")
    with here.client() as client:
        client.post("/queues/q/messages", content=f'{{ "properties" : {{"a": "}}"}} , "body" :  {EXACT} }}')
        client.post("/queues/q/messages", content='{"priority": 1, "body": [1.10, "\\u00e9"]}')
        client.post("/queues/q/batch", content=f'{{"bodies": [ "a", {EXACT} , 1e400000, null]}}')
        client.post("/queues/q/batch", content=f'{{"bodies": [ "a", {EXACT} , null, 0.10]}}')
    assert sorted(each.body for each in here.room.peek("q")) == sorted(
        [EXACT, '[1.10, "\\u00e9"]', "a", EXACT, "null", "0.10"]
    )


def test_a_lease_is_of_its_queue_and_of_those_who_may_receive_there(here: Served) -> None:
    for name in ("a", "b"):
        here.room.queues.create(name)
        here.room.send(name, "x")
    ann = here.user("ann", ("receive", "a"))
    lease = here.room.receive_many("b", count=1, lease=60, detached=True)[0].lease
    with here.client(ann) as client, here.client(here.user("bob")) as poor:
        for path in (f"/leases/{lease}/done", f"/leases/{lease}/extend", f"/leases/{lease}/release"):
            assert client.post(path, json={}).status_code == 403, path
        assert client.post("/leases/done", json={"messages": [lease]}).status_code == 403
        assert client.get(f"/leases/{lease}").status_code == 403
        assert client.post("/leases/999999/done").json()["code"] == "lease-over"
        assert poor.post("/leases/999999/done").status_code == 403
        mine = client.post("/queues/a/receive", json={"lease": 30}).json()["message"]["lease"]
        assert client.post(f"/leases/{mine}/done").status_code == 200
    assert json.loads(json.dumps(here.room.count("b").as_dict()))["queues"][0]["leased_count"] == 1


def test_who_brings_dead_letters_back_may_send_there(here: Served) -> None:
    here.room.queues.create("a")
    here.room.consumers.set_policy("a", attempts=1)
    here.room.send("a", "x")
    here.room.receive_many("a", count=1)[0].fail("no")
    ann = here.user("ann", ("manage", "a.dead"))
    with here.client(ann) as client:
        assert client.post("/queues/a.dead/redrive", json={"edit": {}}).status_code == 403
        with here.client() as boss:
            boss.post("/grants", json={"principal": "ann", "verb": "send", "object": "a"})
        assert client.post("/queues/a.dead/redrive", json={}).json()["message_count"] == 1


def test_a_check_of_spheres_ends_though_its_interval_is_an_hour(here: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "CHECK_SECONDS_SERVED", 0.5)
    here.room.spheres.compensator(3600.0).announce()
    sphere = here.room.sphere("other", heartbeat=600)
    with here.client() as client:
        checked = client.post("/spheres/compensate", json={}, timeout=120)
        assert (checked.status_code, checked.json()["aborted_count"]) == (200, 0)
    sphere.abort()
