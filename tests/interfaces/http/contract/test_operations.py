"""Every operation: its example is run, and nobody does it without the right to."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from jsonschema import Draft202012Validator
from tests.interfaces.http.conftest import Served

import postroom
from postroom.interfaces.http.contract.openapi import identifier
from postroom.interfaces.http.contract.operation import ANY, Operation
from postroom.interfaces.http.contract.operations import OPERATIONS, PARTS
from postroom.interfaces.http.pace import Pace
from postroom.model.rights import VERBS

#: They take their time, or need a database, in tests of their own.
ELSEWHERE = ("station.sql", "spheres.compensate", "spheres.settle_database")
World = tuple[Served, Callable[[str], Any]]


def request(client: httpx.Client, operation: Operation, known: Callable[[str], Any]) -> httpx.Response:
    def told(value: Any) -> Any:
        if isinstance(value, list):
            return [told(each) for each in value]
        if isinstance(value, dict):
            return {told(name): told(each) for name, each in value.items()}
        return known(value) if isinstance(value, str) else value

    given = {name: told(value) for name, value in operation.example.items()}
    where = {parameter.name: parameter.where for parameter in operation.parameters}
    path = operation.path
    for name, value in given.items():
        if where[name] == "path":
            path = path.replace("{" + name + "}", quote(str(value), safe=""))
    rest = {name: value for name, value in given.items() if where[name] == "body"}
    query = {name: value for name, value in given.items() if where[name] == "query"}
    content = json.dumps(rest).encode() if operation.method == "POST" else None
    return client.request(operation.method, path, params=query, content=content)


def schema_of(document: dict[str, Any], operation: Operation) -> Draft202012Validator:
    """What OpenAPI says of the answer of an operation."""
    described = document["paths"][operation.path][operation.method.lower()]["responses"]
    made = described.get("201") or described["200"]
    schema = made["content"]["application/json"]["schema"]
    return Draft202012Validator({**schema, "components": document["components"]})


def test_every_example_is_answered_with_what_is_promised(world: World) -> None:
    served, known = world
    wrong = []
    with served.client() as client:
        described = client.get("/openapi.json").json()
        for operation in OPERATIONS:
            if operation.name in ELSEWHERE:
                continue
            response = request(client, operation, known)
            document = response.json()
            promised = {"status", *operation.answer.names} <= set(document) and next(iter(document)) == "status"
            if response.status_code not in (200, 201) or not promised:
                wrong.append((identifier(operation), document))
            wrong += [
                (identifier(operation), each.message) for each in schema_of(described, operation).iter_errors(document)
            ]
    assert not wrong, "\n".join(f"{name}: {told}"[:400] for name, told in wrong)


def test_the_example_of_a_check_of_spheres(here: Served) -> None:
    operation = next(each for each in OPERATIONS if each.name == "spheres.compensate")
    with here.client() as client:
        told = request(client, operation, lambda text: text)
    assert told.status_code == 200, told.text
    assert set(operation.answer.names) <= set(told.json())


def test_a_database_is_settled(here: Served, postgres_url: str) -> None:
    with here.client() as client, postroom.open(here.url, token=here.token) as remote:
        settled = client.post("/spheres/settle", json={"url": postgres_url})
        assert (settled.status_code, settled.json()) == (200, {"status": "00", "settled": {}})
        assert remote.spheres.settle_database(postgres_url) == {}
        for wrong in ("", "nonsense", "sqlite:///x.db", "postgresql://nobody@127.0.0.1:1/nowhere"):
            refused = client.post("/spheres/settle", json={"url": wrong})
            assert 400 <= refused.status_code < 600, wrong
            assert refused.headers["content-type"] == "application/problem+json"
            assert refused.json()["code"] != "server-failed", wrong


def test_the_sessions_of_a_user_are_ended(here: Served) -> None:
    here.room.flows.add_principal("ann", "secret")
    token = here.room.access.sign_in("ann", "secret")
    with here.client() as client:
        assert client.delete("/sessions/ann").json() == {"status": "00", "session_count": 1}
        assert not here.room.access.is_signed_in("ann", token)
        assert client.delete("/sessions/ann").json()["session_count"] == 0


def test_leases_are_told_with_who_has_them(here: Served) -> None:
    here.room.queues.create("orders")
    for number in range(3):
        here.room.send("orders", f"order {number}")
    with here.client() as client, postroom.open(here.url, token=here.token) as remote:
        assert client.get("/leases").json()["leased"] == []
        leased = client.post("/queues/orders/lease", json={"count": 3, "lease": 60}).json()["messages"]
        told = client.get("/leases").json()["leased"]
        assert [(each["lease"], each["key"], each["until"]) for each in told] == [
            (each["lease"], each["key"], each["until"]) for each in leased
        ]
        assert {(each["queue"], each["by"], each["attempts"]) for each in told} == {("orders", "boss", 1)}
        assert all(each["since"] < each["until"] for each in told)
        first, *rest = remote.consumers.leases()
        assert remote.consumers.leases(after=first.lease, limit=1) == rest[:1]
        for wrong in ({"after": -1}, {"limit": 0}, {"after": 2**63}):
            assert client.get("/leases", params=wrong).status_code == 400
        remote.consumers.lease(first.lease).release()
        assert remote.consumers.leases() == rest


@pytest.mark.slow
def test_the_example_of_sql(world: World) -> None:
    served, known = world
    named = {each.name: each for each in OPERATIONS}
    with served.client() as client:
        client.timeout = 300.0
        assert request(client, named["station.query"], known).status_code == 200
        told = request(client, named["station.sql"], known)
    assert told.status_code == 200, told.text
    assert told.json()["rows"] == [[1]]


def test_an_operation_is_a_verb_of_a_part_and_says_so() -> None:
    for operation in OPERATIONS:
        assert operation.right in VERBS
        assert operation.summary.endswith((".", ":")), operation.name
        assert hasattr(PARTS[operation.part], operation.verb)
        names = {parameter.name for parameter in operation.parameters}
        assert set(operation.example) <= names, f"{operation.name} takes no {set(operation.example) - names}"
        assert {each.name for each in operation.parameters if each.required} <= set(operation.example), operation.name
        for need in operation.needs:
            assert need.verb in VERBS
            assert need.of is None or need.of == ANY or need.of in names, operation.name
    assert len({identifier(each) for each in OPERATIONS}) == len(OPERATIONS)


def test_nobody_does_anything_without_a_token_or_a_grant(world: World) -> None:
    served, known = world
    nobody = served.user("nobody")
    with served.client("") as stranger, served.client("postroom_0_x") as forger, served.client(nobody) as poor:
        for operation in OPERATIONS:
            served.interface._strangers = Pace(1e6, 1e6)  # whoever tries many tokens has to wait: another test's
            assert request(stranger, operation, known).status_code == 401, identifier(operation)
            assert request(forger, operation, known).status_code == 401, identifier(operation)
            refused = request(poor, operation, known)
            assert refused.status_code == 403, (identifier(operation), refused.text)
            assert refused.json()["code"] == "right-missing"


def test_a_grant_is_for_its_verb_and_its_object_alone(world: World) -> None:
    """The matrix of verb x operation x object, from the table: none can be forgotten."""
    served, known = world
    tokens = {verb: served.user(f"has_{verb}", (verb, "*")) for verb in VERBS}
    others = {
        verb: served.user(f"other_{verb}", (verb, "elsewhere"))
        for verb, kind in VERBS.items()
        if kind in ("queue", "space", "station")
    }
    with ExitStack() as stack:
        clients = {verb: stack.enter_context(served.client(token)) for verb, token in tokens.items()}
        elsewhere = {verb: stack.enter_context(served.client(token)) for verb, token in others.items()}
        for operation in OPERATIONS:
            alone = len({need.verb for need in operation.needs if need.of in (None, ANY, *operation.example)}) == 1
            enough: tuple[str, ...] = (operation.right, "operate") if alone else ("operate",)
            enough += ("manage",) if operation.name == "consumers.schedules" else ()  # those that one may make
            refused = [client for verb, client in clients.items() if verb not in enough]
            if operation.of != ANY:
                refused += [elsewhere[operation.right]] if operation.right in elsewhere else []
            for client in refused:
                assert request(client, operation, known).status_code == 403, identifier(operation)


def test_the_right_to_load_changes_nothing_that_others_have_loaded(here: Served, tmp_path: Path) -> None:
    here.room.queues.create("secret")
    here.room.queues.create("other")
    here.room.stations.add("Jane", "secret")
    memo = "type MEMO\n| Text: ______ |\nfield Text string free\n"
    (tmp_path / "desk.form").write_text(f"{memo}counter desk at Jane takes MEMO from secret\n")
    (tmp_path / "prices.demaq").write_text("create collection prices\n")
    here.room.load(tmp_path / "desk.form", tmp_path / "prices.demaq")
    with here.client(here.user("loader", ("load", "*"))) as loader:
        told = [
            loader.delete("/counters/desk"),
            loader.post("/collections/prices", json={"files": {"p.xml": "<price/>"}}),
            loader.post("/definitions", json={"files": {"c.form": "counter own at Jane gives to other\n"}}),
        ]
    assert [(each.status_code, each.json()["code"]) for each in told] == [(403, "right-missing")] * 3
    assert [each.name for each in here.room.stations.counters()] == ["desk"]


def test_a_revoked_right_bites_at_once_and_so_does_a_revoked_token(here: Served) -> None:
    here.room.queues.create("orders")
    token = here.user("ann", ("send", "orders"))
    with here.client(token) as client:
        for _ in range(3):
            assert client.post("/queues/orders/messages", json={"body": "x"}).status_code == 201
        with here.client() as boss:
            assert boss.delete("/grants/ann/send/orders").json()["is_changed"] is True
        assert client.post("/queues/orders/messages", json={"body": "x"}).status_code == 403
        here.room.access.grant("ann", "send", "orders")
        with here.client() as boss:
            id = token.split("_")[1]
            assert boss.delete(f"/tokens/{id}").status_code == 200
        assert client.post("/queues/orders/messages", json={"body": "x"}).status_code == 401
    assert here.room.count("orders").queues[0].unprocessed == 3


@pytest.mark.parametrize("operation", OPERATIONS, ids=identifier)
def test_the_table_calls_what_the_room_has(operation: Operation) -> None:
    class Part:
        def __getattr__(self, name: str) -> Any:
            return lambda *given, **named: (name, given, named)

    said = {name: value for name, value in operation.example.items() if name in operation.signature.parameters}
    name, given, named = operation.call(Part(), said)
    assert name == operation.verb
    bound = operation.signature.bind(None, *given, **named)
    assert set(said) <= set(bound.arguments) | set(named)
