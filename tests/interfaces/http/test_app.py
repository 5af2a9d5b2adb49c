"""Requests as clients make them: sends, receives, waiting, following, and what is refused."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from time import monotonic, sleep

import httpx
import pytest
from tests.interfaces.http.conftest import Served

import postroom
from postroom.errors import MethodUnknown
from postroom.interfaces.http import app
from postroom.interfaces.http.waiting.handover import HandOver


def test_a_message_is_sent_once_for_an_idempotency_key_and_received(served: Served) -> None:
    served.room.queues.create("orders")
    with served.client() as client:
        headers = {"idempotency-key": "k1", "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
        first = client.post("/queues/orders/messages", json={"body": {"id": 17}}, headers=headers)
        again = client.post("/queues/orders/messages", json={"body": {"id": 17}}, headers=headers)
        other = client.post("/queues/orders/messages", json={"body": {"id": 18}}, headers=headers)
        assert (first.status_code, again.json()) == (201, first.json())
        assert other.status_code == 400
        received = client.post("/queues/orders/receive", json={}).json()
        assert received["message"]["key"] == first.json()["key"]
        assert received["message"]["properties"]["traceparent"] == headers["traceparent"]
        nothing = client.post("/queues/orders/receive").json()
        assert (nothing["message"], nothing["passed"]) == (None, ["orders"])
        trace = client.get(f"/messages/{first.json()['key']}/trace").json()["events"]
        assert (trace[0]["verb"], trace[0]["by"]) == ("put", "boss")


def test_two_users_with_the_same_idempotency_key_do_not_know_of_each_other(here: Served) -> None:
    here.room.queues.create("orders")
    headers = {"idempotency-key": "same"}
    with here.client() as boss, here.client(here.user("ann", ("send", "orders"))) as ann:
        one = boss.post("/queues/orders/messages", json={"body": "mine"}, headers=headers).json()["key"]
        two = ann.post("/queues/orders/messages", json={"body": "hers"}, headers=headers).json()["key"]
    assert one != two


def test_a_receive_waits_and_is_woken_by_a_send_of_another_process_or_request(served: Served) -> None:
    served.room.queues.create("orders")
    with served.client() as client, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.post, "/queues/orders/receive", json={"wait": 10})
        sleep(0.3)
        began = monotonic()
        served.room.send("orders", "now")
        assert waiting.result().json()["message"]["body"] == "now"
        assert monotonic() - began < 9, "nobody woke it"
        began = monotonic()
        assert client.post("/queues/orders/receive", json={"wait": 0.3}).json()["message"] is None
        assert monotonic() - began >= 0.3
        assert client.post("/queues/orders/receive", json={"wait": 1e6}).status_code == 400


def test_whoever_waits_is_not_refused_because_many_wait(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    served.room.queues.create("orders")
    served.room.queues.create("others")
    looked: list[HandOver] = []
    attempt = HandOver.attempt

    def noted(handing: HandOver) -> None:
        attempt(handing)
        looked.append(handing)

    monkeypatch.setattr(HandOver, "attempt", noted)
    many = 12
    with served.client() as client, ThreadPoolExecutor(many) as pool:
        waiting = [pool.submit(client.post, "/queues/orders/receive", json={"wait": 20}) for _ in range(many)]
        while len(looked) < many:
            sleep(0.01)
        monkeypatch.setattr(app, "REQUEST_QUEUE_MAX", 3)  # more than that wait, and look again at once
        served.room.send("others", "it is for nobody who waits")
        served.room.send_many("orders", [str(number) for number in range(many)])
        answers = [one.result() for one in waiting]
    assert [answer.status_code for answer in answers] == [200] * many
    assert {answer.json()["message"]["body"] for answer in answers} == {str(number) for number in range(many)}


def test_followers_get_what_comes_and_resume_where_they_were(served: Served) -> None:
    served.room.queues.create("orders")
    served.room.queues.create("other")
    seen: list[tuple[str, str]] = []

    def follow(after: str | None, wanted: int) -> None:
        headers = {} if after is None else {"last-event-id": after}
        with served.client() as client, client.stream("GET", "/queues/orders/follow", headers=headers) as response:
            assert response.headers["content-type"] == "text/event-stream"
            id = ""
            for line in response.iter_lines():
                if line.startswith("id: "):
                    id = line[4:]
                elif line.startswith("data: "):
                    seen.append((id, json.loads(line[6:])["body"]))
                    if len(seen) == wanted:
                        return

    follower = Thread(target=follow, args=(None, 2))
    follower.start()
    sleep(1)
    served.room.send("orders", "one")
    served.room.send("other", "elsewhere")
    served.room.send("orders", "two")
    follower.join(15)
    assert [body for _, body in seen] == ["one", "two"]
    served.room.receive("orders")
    served.room.send("orders", "three")
    last = seen[0][0]
    seen.clear()
    follow(last, 2)
    assert [body for _, body in seen] == ["two", "three"], "also those that were received meanwhile"
    with served.client() as client:
        assert client.get("/journal/follow", headers={"last-event-id": "x"}).status_code == 400


def test_refusals_are_problems_with_code_advice_and_what_happened(here: Served) -> None:
    with here.client() as client:
        response = client.post("/queues/nowhere/messages", json={"body": "x"})
        assert response.status_code == 404
        assert response.headers["content-type"] == "application/problem+json"
        problem = response.json()
        assert (problem["code"], problem["happened"]) == ("queue-unknown", "no")
        assert problem["advice"]
        wrong = client.post("/definitions/check", json={"files": {"x.qdl": "01 NONSENSE\n"}})
        assert wrong.status_code == 422
        assert wrong.json()["places"]
        assert client.get("/nothing").json()["code"] == "resource-unknown"
        assert client.get("/health/live").status_code == client.get("/health/ready").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/queues", "GET, HEAD, POST"),
        ("DELETE", "/queues/q/lines", "GET, POST"),
        ("POST", "/journal/follow", "GET"),
        ("POST", "/metrics", "GET, HEAD"),
        ("DELETE", "/health/live", "GET, HEAD"),
        ("PATCH", "/openapi.json", "GET, HEAD"),
        ("OPTIONS", "/docs", "GET, HEAD"),
    ],
)
def test_another_method_is_a_problem_that_names_those_there_are(
    here: Served, method: str, path: str, allowed: str
) -> None:
    with here.client() as client:
        refused = client.request(method, path)
        assert (refused.status_code, refused.headers["content-type"]) == (405, "application/problem+json")
        assert (refused.json()["code"], refused.headers["allow"]) == (MethodUnknown.code, allowed)


_PUBLIC = ["/health/live", "/health/ready", "/openapi.json", "/docs", "/docs/queues", "/"]
_PAGES = ["/web/sign-in", "/web/static/style.css"]


@pytest.mark.parametrize("path", [*_PUBLIC, *_PAGES])
def test_head_is_get_without_its_body(here: Served, path: str) -> None:
    with here.client("") as stranger:
        got, asked = stranger.get(path), stranger.head(path)
    assert got.status_code in (200, 303)
    assert (asked.status_code, asked.content) == (got.status_code, b"")
    assert dict(asked.headers) == dict(got.headers)


def test_head_of_operations_and_of_what_is_refused(here: Served) -> None:
    here.room.queues.create("q")
    here.room.send("q", "x")
    with here.client() as client, here.client("") as stranger:
        for path in ("/queues", "/queues/q/count", "/queues/q/messages?limit=1", "/messages/00001.00009", "/nothing"):
            got, asked = client.get(path), client.head(path)
            assert (asked.status_code, asked.content, dict(asked.headers)) == (got.status_code, b"", dict(got.headers))
        assert client.head("/metrics").status_code == 200
        assert stranger.head("/metrics").status_code == stranger.head("/queues").status_code == 401
        for path, allowed in (
            ("/queues/q/receive", "POST"),
            ("/queues/q/follow", "GET"),
            ("/queues/q/lines", "GET, POST"),
        ):
            refused = client.head(path)
            assert (refused.status_code, refused.headers["allow"], refused.content) == (405, allowed, b"")
            assert refused.headers["content-type"] == "application/problem+json"
        here.interface.ready = False
        assert client.head("/health/ready").status_code == client.get("/health/ready").status_code == 503
    assert here.room.count("q").queues[0].unprocessed == 1


def test_the_journal_is_read_in_pages_to_its_end(served: Served) -> None:
    served.room.queues.create("orders")
    served.room.send_many("orders", [str(number) for number in range(7)])
    everything = [event.seq for event in served.room.journal.after(0)]
    read: list[int] = []
    after: str | None = "0"
    with served.client() as client:
        while after is not None:
            page = client.get("/journal", params={"seq": after, "limit": 3}).json()
            assert 0 < len(page["events"]) <= 3
            read += [event["seq"] for event in page["events"]]
            after = page["next"]
        assert read == everything
        assert client.get("/journal", params={"seq": everything[-1]}).json() == {
            "status": "00",
            "events": [],
            "next": None,
        }
        for limit in ("0", "-1", "10001", "x"):
            assert client.get("/journal", params={"seq": 0, "limit": limit}).status_code == 400
    with postroom.open(served.url, token=served.token) as remote:
        assert [event.seq for event in remote.journal.after(0, limit=2)] == everything[:2]


def test_definitions_are_loaded_from_their_texts(here: Served) -> None:
    text = '01 INPUT-QUEUE (CLAIMS) PASSWORD IS "CLAIMS"\n02 SUB-QUEUE-1 (NORTH)\n99\n'
    with here.client() as client:
        loaded = client.post("/definitions", json={"files": {"tree.qdl": text}}).json()
        assert loaded["added"] == ["INP_0000"]
        assert client.post("/queues/CLAIMS/NORTH/messages", json={"body": "x"}).status_code == 201
        assert client.get("/queues/CLAIMS%2FNORTH/count").json()["queues"][0]["unprocessed"] == 1


def test_events_are_published_and_stations_worked_at_in_the_users_name(here: Served, tmp_path: object) -> None:
    files = {
        "trading.flow": "domain trading\nspace Trades : [issue: string, price: int]\n",
        "memo.form": "type MEMO\n| To: ____ KEY: ___ |\nfield To string required\nfield KEY key automatic\n",
    }
    with here.client() as client:
        assert client.post("/definitions", json={"files": files}).status_code == 200
        for name in ("John", "Jane"):
            here.room.stations.add(name, "secret")
        event = {"event": {"issue": "IBM", "price": 80}}
        key = client.post("/spaces/Trades/events", json=event).json()["key"]
        assert here.room.trace(key)[0].by == "boss"
        subscribed = client.post("/spaces/Trades/subscriptions", json={"pattern": "[price: p > 75]"}).json()
        assert subscribed["client"] == "boss"
        form = client.post("/stations/John/messages", json={"type": "MEMO", "fields": {"To": "Jane"}}).json()["key"]
        shipped = client.post("/stations/John/ship", json={"keys": [form], "to": "Jane"}).json()
        assert shipped["shipped"][0]["delivered"] is True
        assert client.post("/stations/Jane/get").json()["keys"] == [form]
        assert client.get(f"/messages/{form}/place").json()["place"] == "Jane"


def test_many_requests_at_once_are_all_on_disk(here: Served) -> None:
    here.room.queues.create("orders")

    def one(number: int) -> str:
        with here.client() as client:
            sent: httpx.Response = client.post("/queues/orders/messages", json={"body": f"{number}"})
            return str(sent.json()["key"])

    with ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(one, range(64)))
    assert len(set(keys)) == 64
    assert here.room.count("orders").queues[0].unprocessed == 64
    assert not here.room.journal.verify().differences
