"""Requests that are wrong: each is refused with its place, and none is a failure of the server."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.interfaces.http.conftest import Served

from postroom.errors import RequestInvalid, RequestTooLarge, ResourceUnknown
from postroom.interfaces.http.contract import kinds
from postroom.interfaces.http.contract.operation import Operation
from postroom.interfaces.http.contract.operations import OPERATIONS
from postroom.interfaces.http.handling import requests
from postroom.limits import REQUEST_BYTES_MAX


def test_a_path_leads_to_its_operation_and_a_queue_may_be_a_path() -> None:
    operation, found = requests.route("POST", "/queues/CLAIMS/SOUTH/messages")
    assert (operation.name, found) == ("queues.send", {"queue": "CLAIMS/SOUTH"})
    assert requests.route("GET", "/queues/messages/messages")[1] == {"queue": "messages"}
    with pytest.raises(requests.MethodWrong) as wrong:
        requests.route("PATCH", "/queues")
    assert wrong.value.allowed == ["GET", "POST"]
    for path in ("/", "", "/queues//", "/%2e%2e", "/../etc/passwd", "/queuesx"):
        with pytest.raises((ResourceUnknown, requests.MethodWrong)):
            requests.route("GET", path)


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b"{", "body"),
        (b"[]", "body"),
        (b"\xff\xfe", "body"),
        (b'{"body": "x", "body": "y"}', "body"),
        (b'{"body": "x", "odd": 1}', "'odd'"),
        (b"{}", "body"),
        (b'{"body": "x", "format": 5}', "format"),
        (b'{"body": "x", "properties": []}', "properties"),
        (b"[" * 100_000, "body"),
        (b'{"body": ' + b"[" * 5_000 + b"]" * 5_000 + b"}", "body"),
        (b'{"body": 1' + b"0" * 5_000 + b"}", "body"),
    ],
)
def test_a_body_that_is_wrong_is_named_and_nothing_is_sent(here: Served, body: bytes, where: str) -> None:
    here.room.queues.create("orders")
    with here.client() as client:
        response = client.post("/queues/orders/messages", content=body)
    assert response.status_code == 400, response.text
    problem = response.json()
    assert (problem["code"], problem["happened"]) == ("request-invalid", "no")
    assert problem["facts"]["where"] == where
    assert here.room.count("orders").queues[0].unprocessed == 0


def test_a_body_that_is_too_large_is_refused_before_it_has_come(here: Served) -> None:
    here.room.queues.create("orders")
    with socket.create_connection(("127.0.0.1", int(here.url.rsplit(":", 1)[1]))) as connection:
        connection.sendall(
            b"POST /queues/orders/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
            + here.token.encode()
            + b"\r\nContent-Length: 99999999999\r\n\r\n"
        )
        refusal = connection.recv(65536)
        assert refusal.startswith(b"HTTP/1.1 413 ")
        while b"}" not in refusal:
            refusal += connection.recv(65536)
        assert RequestTooLarge.code.encode() in refusal

    def endless() -> Any:
        for _ in range(REQUEST_BYTES_MAX // 65536 + 2):
            yield b"x" * 65536

    with here.client() as client, suppress(httpx.TransportError):  # it may be told so while it writes
        assert client.post("/queues/orders/messages", content=endless()).status_code == 413
    with here.client() as client:
        big = client.post("/queues/orders/messages", json={"body": "x" * (4 * 1024 * 1024 + 1)})
        assert (big.status_code, big.json()["code"]) == (413, "body-too-large")


ODD: tuple[Any, ...] = (
    *(None, True, 5, 1.5, "x", [], [1], [None], ["x", "x"], [["x", 1]], [{}], [{"x": []}], [{"body": {}}]),
    *({}, {"x": None}, {"x": [{}]}, {"x": 1}, {"body": {}}, {"body": "x", "format": [], "type": {}}, {"name": "x"}),
)
GATHERED = {"array": list, "object": dict}


def test_whatever_gathers_several_values_is_refused_by_its_name(world: Any) -> None:
    """Every list and object of every operation, and what is inside of it."""
    served, stands_for = world
    failed: list[Any] = []
    with served.client() as client:
        for operation in OPERATIONS:
            said = {name: _meant(value, stands_for) for name, value in operation.example.items()}
            path = operation.path
            for each in operation.parameters:
                path = path.replace("{" + each.name + "}", quote(str(said.get(each.name)), safe=""))
            in_body = {each.name: each for each in operation.parameters if each.where == "body"}
            body = {name: value for name, value in said.items() if name in in_body}
            for name, parameter in in_body.items():
                kind = GATHERED.get(str(parameter.kind.schema.get("type")))
                for odd in ODD if kind is not None or parameter.kind is kinds.ANYTHING else ():
                    response = client.request(operation.method, path, json={**body, name: odd})
                    about = (operation.name, name, odd, response.status_code, response.text)
                    if response.status_code >= 500:
                        failed.append(about)
                    elif kind is not None and not isinstance(odd, kind) and (odd is not None or parameter.required):
                        facts = response.json().get("facts", {})
                        if facts.get("where") != name or "expected" not in facts.get("why", ""):
                            failed.append(about)
    assert failed == []


def _meant(value: Any, stands_for: Callable[[str], str | int]) -> Any:
    if isinstance(value, list):
        return [_meant(each, stands_for) for each in value]
    return stands_for(value) if isinstance(value, str) else value


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


@pytest.mark.slow
def test_no_request_is_a_failure_of_the_server_at_length(world: Any) -> None:
    _fuzz(world[0], 2_000)


def test_no_request_is_a_failure_of_the_server(world: Any) -> None:
    """Requests made from the table that OpenAPI is made from: right, wrong and odd values for every parameter."""
    _fuzz(world[0], 60)


def _fuzz(served: Served, examples: int) -> None:
    with served.client() as client:
        client.timeout = 300.0  # a query may start Spark, on a busy machine

        @seed(23)
        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.sampled_from(OPERATIONS), st.data())
        def ask(operation: Operation, data: st.DataObject) -> None:
            path = operation.path
            query: dict[str, Any] = {}
            body: dict[str, Any] = {}
            for parameter in operation.parameters:
                odd = data.draw(st.sampled_from(["example", "odd", "left out"]))
                value = operation.example.get(parameter.name) if odd == "example" else data.draw(VALUES)
                if parameter.where == "path":
                    name = str(value) if odd == "example" else data.draw(NAMES)
                    path = path.replace("{" + parameter.name + "}", quote(name, safe=""))
                elif odd != "left out":
                    (query if parameter.where == "query" else body)[parameter.name] = value
            if operation.verb in ("receive",):
                body["wait"] = 0
            content = json.dumps(body).encode() if operation.method == "POST" else None
            told = {name: json.dumps(value) if not isinstance(value, str) else value for name, value in query.items()}
            response = client.request(operation.method, path, params=told, content=content)
            if operation.name == "spheres.settle_database" and response.status_code == 503:
                return  # its example names a database that is not there
            assert response.status_code < 500, (operation.name, path, body, response.text)
            if response.status_code >= 400 and response.status_code != 405:
                problem = response.json()
                assert {"code", "happened", "advice", "detail"} <= set(problem)
                assert "Traceback" not in response.text
                assert problem["happened"] == "no"

        ask()


def _answering(*messages: dict[str, Any], late: bool = False) -> Callable[[], Any]:
    left = list(messages)

    async def receive() -> dict[str, Any]:
        if late:
            await asyncio.sleep(0)
            await asyncio.sleep(0.001)
        return left.pop(0)

    return receive


@pytest.mark.parametrize("late", [False, True])
def test_a_body_is_read_whether_it_is_there_or_comes_later(late: bool) -> None:
    one = {"type": "http.request", "body": b"whole"}
    assert asyncio.run(requests.whole(_answering(one, late=late), {})) == b"whole"
    two = ({"type": "http.request", "body": b"in ", "more_body": True}, {"type": "http.request", "body": b"two"})
    assert asyncio.run(requests.whole(_answering(*two, late=late), {})) == b"in two"
    with pytest.raises(requests.Disconnected):
        asyncio.run(requests.whole(_answering({"type": "http.disconnect"}, late=late), {}))

    def future() -> Any:  # of a server whose receive is no coroutine
        found = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0.001 if late else 0, found.set_result, one)
        return found

    assert asyncio.run(requests.whole(future, {})) == b"whole"


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "REQUEST_BODY_SECONDS", 0.01)
    ended: list[bool] = []

    async def receive() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    with pytest.raises(RequestInvalid, match="nothing came"):
        asyncio.run(requests.whole(receive, {}))
    assert ended == [True]

    async def given_up() -> None:
        task = asyncio.ensure_future(requests.whole(receive, {}))
        await asyncio.sleep(0)
        task.cancel()
        await task

    monkeypatch.setattr(requests, "REQUEST_BODY_SECONDS", 30.0)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(given_up())
    assert ended == [True, True]


@pytest.mark.parametrize("name", ["bodies", "format", "type", "properties"])
def test_a_line_that_is_odd_is_refused_as_a_line(here: Served, name: str) -> None:
    here.room.queues.create("orders")
    with here.client() as client:
        for odd in ODD[1:4] + ODD[5:12]:
            answer = client.post("/queues/orders/lines", json={"body": "x", name: odd})
            problem = answer.json()
            assert (answer.status_code, problem["status"], problem["happened"]) == (400, 400, "no"), (odd, problem)
    assert here.room.count("orders").queues[0].unprocessed == 0
