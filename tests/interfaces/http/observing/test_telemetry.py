"""OpenTelemetry: what arrives at a collector is what it expects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from tests.interfaces.http.conftest import serving

import postroom
from postroom.errors import ArgumentInvalid
from postroom.interfaces.http.observing import telemetry
from postroom.interfaces.http.observing.metrics import Measured
from postroom.interfaces.http.observing.telemetry import Telemetry, configured

Arrived = list[tuple[str, dict[str, str], dict[str, Any]]]


@contextmanager
def collector(status: int = 200) -> Iterator[tuple[str, Arrived]]:
    """Takes what comes, as a collector does, and keeps it."""
    arrived: Arrived = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            arrived.append((self.path, {name.lower(): value for name, value in self.headers.items()}, json.loads(body)))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", arrived
        finally:
            server.shutdown()
            thread.join()


def said(attributes: list[dict[str, Any]]) -> dict[str, str]:
    return {each["key"]: next(iter(each["value"].values())) for each in attributes}


def test_spans_and_numbers_of_a_server_arrive(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    with collector() as (url, arrived):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "office")
        with postroom.open(sqlite_url) as room:
            room.queues.create("orders")
            with serving(room) as served, served.client() as client:
                headers = {"traceparent": f"00-{trace}-{parent}-01"}
                sent = client.post("/queues/orders/messages", json={"body": "a secret"}, headers=headers)
                assert sent.status_code == 201
                assert client.get("/queues/nowhere/count").status_code == 404
    assert "a secret" not in json.dumps(arrived)
    assert {path for path, _, _ in arrived} == {"/v1/traces", "/v1/metrics"}
    assert all(headers["x-key"] == "a b" for _, headers, _ in arrived)
    assert all(headers["content-type"] == "application/json" for _, headers, _ in arrived)
    traced = [each for path, _, document in arrived if path == "/v1/traces" for each in document["resourceSpans"]]
    assert said(traced[0]["resource"]["attributes"])["service.name"] == "office"
    spans = [span for each in traced for span in each["scopeSpans"][0]["spans"]]
    send, count = (next(span for span in spans if span["name"] == name) for name in ("queues.send", "queues.count"))
    assert (send["traceId"], send["parentSpanId"], send["kind"]) == (trace, parent, 2)
    assert said(send["attributes"]) == {
        "http.response.status_code": "201",
        "postroom.operation": "queues.send",
        "enduser.id": "boss",
    }
    assert int(send["startTimeUnixNano"]) <= int(send["endTimeUnixNano"])
    assert len(count["traceId"]) == 32
    assert "parentSpanId" not in count
    last = [document for path, _, document in arrived if path == "/v1/metrics"][-1]
    numbers = {each["name"]: each for each in last["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]}
    counted = {
        said(point["attributes"])["operation"]: point["asInt"]
        for point in numbers["postroom.requests"]["sum"]["dataPoints"]
    }
    assert counted["queues.send"] == "1"
    for point in numbers["postroom.request.duration"]["histogram"]["dataPoints"]:
        assert sum(map(int, point["bucketCounts"])) == int(point["count"])
        assert len(point["bucketCounts"]) == len(point["explicitBounds"]) + 1


def test_it_is_off_until_it_is_configured() -> None:
    assert configured(Measured(), {}) is None
    assert configured(Measured(), {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"}) is None
    none = {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}
    assert configured(Measured(), {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", **none}) is None
    for wrong in (
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "file:///etc/passwd"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
    ):
        with pytest.raises(ArgumentInvalid):
            configured(Measured(), wrong)


def test_a_collector_that_is_down_costs_bounded_memory_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "SPANS_MAX", 10)
    measured = Measured()
    it = Telemetry(measured, "http://127.0.0.1:9/v1/traces", None, {})
    for _ in range(100):
        it.span("x", 200, 0.1, None, "ann")
    assert len(it._spans) <= 10
    it.close()
    assert measured.spans_dropped == 100


@pytest.mark.parametrize("wrong", ["", "x", "00-0-0-0", f"00-{'0' * 32}-{'1' * 16}-01", f"00-{'g' * 32}-{'1' * 16}-01"])
def test_a_traceparent_that_is_none_is_ignored(wrong: str) -> None:
    assert telemetry._parent(wrong) == (None, None)
