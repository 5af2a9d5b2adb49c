"""CloudEvents in and out: what the specification of version 1.0 asks for, and with the SDK that others use."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from cloudevents.core.bindings import http as sdk
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from tests.interfaces.http.conftest import Served, serving

import postroom
from postroom.interfaces.http.handling.cloudevents import BATCH, STRUCTURED

EVENT: dict[str, Any] = {
    "specversion": "1.0",
    "id": "e-1",
    "source": "/shop",
    "type": "shop.ordered",
    "datacontenttype": "application/json",
    "data": {"id": 17},
}
HEAD = {f"ce-{name}": EVENT[name] for name in ("specversion", "id", "source", "type")}
AS_HEADERS = {"prefer": "cloudevents=binary"}
TO, FROM = "/queues/orders/messages", "/queues/orders/receive"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with postroom.open(tmp_path_factory.mktemp("shop") / "room.db") as room, serving(room) as served:
        room.queues.create("orders")
        yield served


@pytest.fixture
def here(shop: Served) -> Served:
    """One server for all, and an empty queue for each."""
    shop.room.consumers.purge("orders")
    return shop


@pytest.fixture
def client(here: Served) -> Iterator[httpx.Client]:
    with here.client() as client:
        yield client


def test_an_event_comes_structured_or_binary_and_goes_out_with_its_attributes(
    here: Served, client: httpx.Client
) -> None:
    sent = client.post(TO, json=EVENT, headers={"content-type": STRUCTURED})
    assert sent.status_code == 201, sent.text
    binary = client.post(TO, json={"id": 18}, headers=HEAD)
    assert binary.status_code == 201, binary.text
    for media in ("application/xml", "application/atom+xml"):
        xml = client.post(TO, content=b"<a/>", headers={**HEAD, "content-type": media})
        assert here.room.show(xml.json()["key"]).format.value == "xml"
    first = client.post(FROM, headers={"accept": STRUCTURED})
    assert first.headers["content-type"] == STRUCTURED
    assert {name: first.json()[name] for name in EVENT} == EVENT
    assert first.json()["postroomkey"] == sent.json()["key"]
    second = client.post(FROM).json()["message"]
    assert (second["format"], second["body"], second["properties"]["ce_id"]) == ("json", {"id": 18}, "e-1")
    assert [here.room.receive("orders").message is not None for _ in range(2)] == [True, True]
    here.room.send("orders", "plain")
    own = client.post(FROM, headers={"accept": STRUCTURED}).json()
    assert (own["type"], own["data"], own["source"]) == ("postroom.message", "plain", "/queues/orders")
    assert own["datacontenttype"] == "text/plain"


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"specversion": "0.3"}, "specversion"),
        ({"specversion": "1.1"}, "specversion"),
        ({"id": ""}, "id"),
        ({"id": None}, "id"),
        ({"source": 5}, "source"),
        ({"subject": ""}, "subject"),
        ({"data_base64": "eA=="}, "data_base64"),
        ({"data_base64": "?", "data": None}, "data_base64"),
        ({"Upper": "x"}, "'Upper'"),
        ({"with_line": "x"}, "'with_line'"),
        ({"é": "x"}, "'\\xe9'"),
        ({"number": 1.5}, "number"),
        ({"number": 2**31}, "number"),
        ({"list": []}, "list"),
        ({"object": {}}, "object"),
        ({"time": "yesterday"}, "time"),
        ({"time": 5}, "time"),
    ],
)
def test_an_event_that_is_none_is_refused(
    here: Served, client: httpx.Client, change: dict[str, Any], where: str
) -> None:
    event = EVENT | change
    refused = client.post(TO, json=event, headers={"content-type": STRUCTURED})
    assert (refused.status_code, refused.json()["facts"]["where"]) == (400, where)
    batch = client.post(TO, json=[EVENT, event], headers={"content-type": BATCH})
    assert (batch.status_code, batch.json()["facts"]["where"]) == (400, f"event 2: {where}")
    assert client.post(TO, json=[], headers={"content-type": STRUCTURED}).status_code == 400
    assert here.room.count("orders").queues[0].unprocessed == 0


@pytest.mark.parametrize(
    ("headers", "where"),
    [
        ({"ce-subject": "%C0%A0"}, "ce-subject"),
        ({"ce-datacontenttype": "text/plain"}, "ce-data"),
        ({"ce-data": "x"}, "ce-data"),
        ({"ce-with-line": "x"}, "'with-line'"),
        ({"ce-specversion": "2.0"}, "specversion"),
        ({"content-type": "text/plain; charset=klingon"}, "Content-Type"),
        ({"content-type": "application/cloudevents+avro"}, "Content-Type"),
        ({"content-type": "application/cloudevents-batch+xml"}, "Content-Type"),
        ({"content-type": "application/json"}, "body"),
    ],
)
def test_headers_that_are_no_event_are_refused(
    here: Served, client: httpx.Client, headers: dict[str, str], where: str
) -> None:
    refused = client.post(TO, content=b"{", headers={**HEAD, "content-type": "text/plain", **headers})
    assert (refused.status_code, refused.json()["facts"]["where"]) == (400, where)
    assert here.room.count("orders").queues[0].unprocessed == 0


def test_what_is_null_is_not_there_and_what_is_not_there_is_not_invented(client: httpx.Client) -> None:
    bare = {name: EVENT[name] for name in ("specversion", "id", "source", "type")}
    for event in (bare | {"subject": None}, bare | {"data": None}, bare | {"data": "a string"}):
        assert client.post(TO, json=event, headers={"content-type": STRUCTURED}).status_code == 201
    assert client.post(TO, headers=HEAD).status_code == 201
    told = [client.post(FROM, headers={"accept": STRUCTURED}).json() for _ in range(4)]
    assert [event.get("data", "none") for event in told] == ["none", None, "a string", "none"]
    assert "subject" not in told[0]
    assert [event.get("datacontenttype") for event in told] == [None, *["application/json"] * 2, None]


def test_data_that_is_no_text_comes_and_goes_out_byte_for_byte(here: Served, client: httpx.Client) -> None:
    data = bytes(range(256))
    head = {**HEAD, "content-type": "application/octet-stream"}
    assert client.post(TO, content=data, headers=head).status_code == 201
    event = EVENT | {"data_base64": base64.b64encode(data).decode(), "datacontenttype": "image/png"}
    del event["data"]
    for media, said in ((STRUCTURED, event), (BATCH, [event])):
        assert client.post(TO, json=said, headers={"content-type": media}).status_code in (200, 201)
    told = client.post(FROM, headers={"accept": STRUCTURED}).json()
    assert (base64.b64decode(told["data_base64"]), told["datacontenttype"]) == (data, "application/octet-stream")
    assert not {"data", "ce_data_base64"} & told.keys()
    binary = client.post(FROM, headers=AS_HEADERS)
    assert (binary.content, binary.headers["content-type"]) == (data, "image/png")
    assert binary.headers["ce-id"] == "e-1"
    assert client.get(TO, headers={"accept": BATCH}).json()[0]["data_base64"] == event["data_base64"]


def test_a_charset_is_read_and_written(here: Served, client: httpx.Client) -> None:
    media = "text/plain; charset=iso-8859-1"
    head = {**HEAD, "content-type": media, "ce-subject": "caf%C3%A9 %22x%22"}
    assert client.post(TO, content="käse".encode("latin-1"), headers=head).status_code == 201
    (message,) = here.room.peek("orders")
    assert (message.body, message.properties["ce_subject"]) == ("käse", 'café "x"')
    binary = client.post(FROM, headers=AS_HEADERS)
    assert (binary.content, binary.headers["content-type"]) == ("käse".encode("latin-1"), media)
    assert binary.headers["ce-subject"] == "caf%C3%A9%20%22x%22"
    assert binary.headers["preference-applied"] == AS_HEADERS["prefer"]
    assert client.post(FROM, headers=AS_HEADERS).json()["message"] is None, "nothing is no event"


# --- as the SDK has it ---

SDK_EVENTS: list[tuple[dict[str, Any], Any]] = [
    ({"subject": "Käse & 100 % 'x' \"y\""}, {"n": 1.5, "list": [None, True, "ä"]}),
    ({"datacontenttype": "text/plain", "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, "ä"),
    ({"datacontenttype": "application/xml", "comexampleextension1": "value"}, "<much wow='xml'/>"),
    ({"datacontenttype": "application/octet-stream"}, b"\x00\xff\xfe"),
]


@pytest.mark.parametrize(("attributes", "data"), SDK_EVENTS)
@pytest.mark.parametrize("out", [{"accept": STRUCTURED}, AS_HEADERS])
@pytest.mark.parametrize("mode", ["structured", "binary"])
def test_an_event_of_the_sdk_is_the_same_event_at_the_other_end(
    client: httpx.Client, mode: str, out: dict[str, str], attributes: dict[str, Any], data: Any
) -> None:
    time = datetime(2026, 1, 31, 12, 30, 15, 250_000, tzinfo=UTC)
    said = {"type": "com.example.test", "source": "/test", "id": "1", "specversion": "1.0", "time": time}
    event = CloudEvent(attributes={**said, "datacontenttype": "application/json", **attributes}, data=data)
    written = (sdk.to_structured if mode == "structured" else sdk.to_binary)(event, JSONFormat())
    sent = client.post(TO, content=written.body, headers=written.headers)
    assert sent.status_code == 201, sent.text
    told = client.post(FROM, headers=out)
    read = sdk.from_http(sdk.HTTPMessage(dict(told.headers), told.content), JSONFormat(), CloudEvent)
    ours = {"postroomkey": sent.json()["key"]}
    assert {**read.get_attributes()} == {**event.get_attributes(), **ours}
    assert read.get_data() == data


def test_a_batch_of_the_sdk_is_sent_and_read(client: httpx.Client) -> None:
    events = [
        CloudEvent({"type": "t", "source": "/s", "id": str(number), "specversion": "1.0"}, {"n": number})
        for number in range(3)
    ]
    written = sdk.to_structured(events[0], JSONFormat())
    bodies = b",".join(sdk.to_structured(event, JSONFormat()).body for event in events)
    assert written.headers["content-type"].startswith(STRUCTURED)
    answer = client.post(TO, content=b"[" + bodies + b"]", headers={"content-type": f"{BATCH}; charset=UTF-8"})
    assert len(answer.json()["keys"]) == 3
    assert client.post(TO, content=b"[]", headers={"content-type": BATCH}).json()["keys"] == []
    told = client.get(TO, headers={"accept": BATCH})
    assert told.headers["content-type"] == BATCH
    assert [(event["id"], event["data"]) for event in told.json()] == [(str(n), {"n": n}) for n in range(3)]
