"""OpenTelemetry: spans and metrics of requests, to a collector by OTLP over HTTP in JSON.

It is off unless the environment names a collector: ``OTEL_EXPORTER_OTLP_ENDPOINT``, or that of traces or metrics alone.
It is written here, because the packages of OpenTelemetry bring a dozen others and cost a request more than all of ours.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from threading import Event, Thread
from time import time_ns
from typing import Any
from urllib.parse import unquote

import httpx

from postroom import __version__
from postroom.errors import ArgumentInvalid
from postroom.interfaces.http.observing.metrics import Measured
from postroom.limits import SPANS_MAX, TELEMETRY_SECONDS

_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_SECONDS = 10.0
_SCOPE = {"name": "postroom", "version": __version__}
_SERVER = 2  # the kind of a span
_CUMULATIVE = 2


class Telemetry:
    """Queues spans up to a limit; a thread exports them."""

    def __init__(self, measured: Measured, traces: str | None, metrics: str | None, headers: Mapping[str, str]) -> None:
        self._measured = measured
        self._traces, self._metrics = traces, metrics
        self._resource = {"attributes": _attributes(_resource())}
        self._spans: list[dict[str, Any]] = []
        self._began = str(time_ns())
        self._end = Event()
        self._client = httpx.Client(timeout=_SECONDS, trust_env=False, headers=dict(headers))
        self._thread = Thread(target=self._run, name="postroom-telemetry", daemon=True)
        self._thread.start()

    def span(self, operation: str, status: int, seconds: float, traceparent: str | None, principal: str) -> None:
        """Record a finished request."""
        if self._traces is None:
            return
        if len(self._spans) >= SPANS_MAX:
            self._measured.spans_dropped += 1
            return
        trace, parent = _parent(traceparent)
        end = time_ns()
        about: dict[str, str | int] = {
            "http.response.status_code": status,
            "postroom.operation": operation,
            "enduser.id": principal,
        }
        span: dict[str, Any] = {
            "traceId": trace or secrets.token_hex(16),
            "spanId": secrets.token_hex(8),
            "name": operation,
            "kind": _SERVER,
            "startTimeUnixNano": str(end - int(seconds * 1e9)),
            "endTimeUnixNano": str(end),
            "attributes": _attributes(about),
            "status": {"code": 2} if status >= 500 else {},
        }
        if parent is not None:
            span["parentSpanId"] = parent
        self._spans.append(span)

    def _run(self) -> None:
        while not self._end.wait(TELEMETRY_SECONDS):
            self.report()
        self.report()

    def report(self) -> None:
        """Export what is queued; spans that the collector refuses are dropped and counted."""
        spans, self._spans = self._spans, []
        if spans and self._traces is not None:
            scoped = {"scope": _SCOPE, "spans": spans}
            if not self._post(self._traces, {"resourceSpans": [{"resource": self._resource, "scopeSpans": [scoped]}]}):
                self._measured.spans_dropped += len(spans)
        if self._metrics is not None:
            scoped = {"scope": _SCOPE, "metrics": self._numbers()}
            self._post(self._metrics, {"resourceMetrics": [{"resource": self._resource, "scopeMetrics": [scoped]}]})

    def _numbers(self) -> list[dict[str, Any]]:
        when = {"startTimeUnixNano": self._began, "timeUnixNano": str(time_ns())}
        counts = [
            {**when, "asInt": str(count), "attributes": _attributes({"operation": operation, "status": status})}
            for (operation, status), count in list(self._measured.requests.items())
        ]
        times = [
            {**when, **histogram.as_otlp(), "attributes": _attributes({"operation": operation})}
            for operation, histogram in list(self._measured.seconds.items())
        ]
        total = {"aggregationTemporality": _CUMULATIVE, "isMonotonic": True, "dataPoints": counts}
        spread = {"aggregationTemporality": _CUMULATIVE, "dataPoints": times}
        commits = {
            "aggregationTemporality": _CUMULATIVE,
            "dataPoints": [when | self._measured.commit_seconds.as_otlp()],
        }
        return [
            {"name": "postroom.requests", "unit": "{request}", "sum": total},
            {"name": "postroom.request.duration", "unit": "s", "histogram": spread},
            {"name": "postroom.commit.duration", "unit": "s", "histogram": commits},
        ]

    def _post(self, url: str, document: dict[str, Any]) -> bool:
        try:
            return self._client.post(url, json=document).is_success
        except httpx.HTTPError:
            return False

    def close(self) -> None:
        """Export the rest."""
        self._end.set()
        self._thread.join(2 * _SECONDS)
        self._client.close()


def configured(measured: Measured, environment: Mapping[str, str]) -> Telemetry | None:
    """Read the standard variables; None if they name no collector."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    base = environment.get(_ENDPOINT, "").rstrip("/")
    settings = {}
    for signal in ("TRACES", "METRICS"):
        own = environment.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
        off = environment.get(f"OTEL_{signal}_EXPORTER", "otlp") == "none"
        url = own or (f"{base}/v1/{signal.lower()}" if base else None)
        if url is not None and not url.startswith(("http://", "https://")):
            raise ArgumentInvalid(argument=_ENDPOINT, why="the URL of a collector, http:// or https://")
        settings[signal] = None if off else url
    if not any(settings.values()):
        return None
    protocol = environment.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
    if protocol != "http/json":
        raise ArgumentInvalid(argument="OTEL_EXPORTER_OTLP_PROTOCOL", why=f"http/json, not {protocol!r}")
    headers = _pairs(environment.get("OTEL_EXPORTER_OTLP_HEADERS", ""))
    return Telemetry(measured, settings["TRACES"], settings["METRICS"], headers)


def _pairs(text: str) -> dict[str, str]:
    """What ``NAME=VALUE,NAME=VALUE`` says."""
    pairs = (pair.partition("=") for pair in text.split(",") if pair)
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}


def _resource() -> dict[str, str]:
    from os import environ

    given = _pairs(environ.get("OTEL_RESOURCE_ATTRIBUTES", ""))
    name = environ.get("OTEL_SERVICE_NAME")
    return {"service.name": "postroom", **given, **({"service.name": name} if name else {})}


def _attributes(values: Mapping[str, str | int]) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)}}
        for key, value in values.items()
    ]


def _parent(traceparent: str | None) -> tuple[str | None, str | None]:
    """The trace and parent span of a request, if its header is valid."""
    parts = (traceparent or "").split("-")
    if len(parts) < 4 or [len(part) for part in parts[:3]] != [2, 32, 16]:
        return None, None
    trace, span = parts[1], parts[2]
    if not set(trace + span) <= set("0123456789abcdef") or not trace.strip("0") or not span.strip("0"):
        return None, None
    return trace, span
