"""What a server logs: one line for each event, and no secret among it."""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys

import httpx
import pytest
from tests.interfaces.http.test_server import prepared

from postroom.interfaces.http.observing.logs import JsonLines, TextLines


def test_a_line_is_one_line_whatever_it_says() -> None:
    record = logging.LogRecord("x", logging.WARNING, "", 0, "a %s", ("b\nERROR forged",), None)
    assert "\n" not in TextLines("%(levelname)s %(message)s").format(record)
    assert json.loads(JsonLines().format(record))["message"] == "a b\nERROR forged"
    assert "\n" not in JsonLines().format(record)


def _ask(url: str, token: str) -> None:
    known = {"authorization": f"Bearer {token}"}
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        assert client.post("/queues/orders/messages", json={"body": "canary-1"}, headers=known).status_code == 201
        assert client.get("/queues/orders/count?x=canary-2", headers=known).status_code == 400
        assert client.get("/queues", headers={"authorization": "Bearer canary-3"}).status_code == 401
        assert client.post("/queues", json={"name": "b", "password": "canary4"}, headers=known).status_code == 200
        assert client.get("/queues/b%0A%7Bforged%7D/count", headers=known).status_code in (400, 404)


def test_as_json_every_request_is_a_line_and_neither_bodies_nor_secrets_are_told(sqlite_url: str) -> None:
    token = prepared(sqlite_url)
    words = [sys.executable, "-m", "postroom", "serve", "--room", sqlite_url, "--port", "0", "--log", "json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            _ask(child.stdout.readline().split()[-1], token)
            child.send_signal(signal.SIGTERM)
            _, said = child.communicate(timeout=60)
        finally:
            if child.poll() is None:
                child.kill()
    assert "canary" not in said
    assert token.split("_", 2)[2] not in said
    lines = [json.loads(line) for line in said.splitlines()]
    requests = [line for line in lines if line["message"] == "request"]
    assert [line["status"] for line in requests][:4] == [201, 400, 401, 200]
    assert (requests[0]["operation"], requests[0]["principal"]) == ("queues.send", "boss")
    assert requests[0]["seconds"] > 0


def test_a_format_that_is_none_is_refused(sqlite_url: str, capfd: pytest.CaptureFixture[str]) -> None:
    words = [sys.executable, "-m", "postroom", "serve", "--room", sqlite_url, "--log", "xml"]
    assert subprocess.run(words, check=False).returncode != 0
    assert "text or json" in capfd.readouterr().err
