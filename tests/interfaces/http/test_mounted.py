"""Gateways in the room's server: paths, rights by grant, signatures, SOAP, and answers."""

from __future__ import annotations

import base64
from pathlib import Path
from time import time

import httpx
import pytest
from tests.faults.here import evaluate_here
from tests.gateways.served import ORDER, bodies, loaded
from tests.interfaces.http.conftest import serving

import postroom
from postroom.gateways.http import signature
from postroom.model.soap import written

PROGRAM = """
create queue orders kind incomingGateway mode persistent interface http port orders
create queue answers kind outgoingGateway mode persistent interface http port orders
create queue hooks kind incomingGateway mode persistent interface http port hooks
create queue supplies kind incomingGateway mode persistent interface supplier.wsdl port CapacityRequestPort
create queue other kind basic mode persistent
create rule confirm for orders if (/order) then do enqueue <ok>{string(/order)}</ok> into answers
"""
XML = {"content-type": "application/xml"}
KEY = "whsec_" + base64.b64encode(b"0123456789abcdef").decode()


def signed(body: bytes, id: str = "m1", key: str = KEY) -> dict[str, str]:
    stamp = str(int(time()))
    said = {"webhook-id": id, "webhook-timestamp": stamp, "webhook-signature": signature(key, id, stamp, body)}
    return {**said, "content-type": "application/json"}


def test_gateways_are_below_a_path_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_KEY", KEY)
    with postroom.open(tmp_path / "room.db") as room:
        evaluate_here(room)
        room.gateways.add("orders", "http", path="/orders")
        room.gateways.add("hooks", "http", path="/hooks", in_secret="env:HOOK_KEY")
        room.gateways.add("CapacityRequestPort", "soap", path="/supplies")
        loaded(room, tmp_path, PROGRAM)
        with serving(room) as served:
            seller = served.user("seller", ("send", "orders"), ("send", "supplies"))
            stranger = served.user("stranger", ("send", "other"))
            with served.client(seller) as mine, served.client(stranger) as other, served.client("") as nobody:
                answer = mine.post("/incoming/orders", content="<order>7</order>", headers={**XML, "Prefer": "wait=0"})
                assert answer.status_code == 202
                room.run_until_idle()
                assert mine.get(answer.headers["location"]).text == "<ok>7</ok>"
                assert answer.headers["location"].startswith("/incoming/orders/answers/")
                refusals = [each.post("/incoming/orders", content="<order/>", headers=XML) for each in (other, nobody)]
                assert [each.status_code for each in refusals] == [403, 401]
                _problems(mine, refusals)
                assert other.get(answer.headers["location"]).status_code == 403
                _webhooks(nobody)
                envelope = written("1.1", [], ORDER % 1)
                for client, status in ((mine, 202), (nobody, 401)):
                    said = client.post("/incoming/supplies", content=envelope, headers={"content-type": "text/xml"})
                    assert said.status_code == status
                assert "/incoming/supplies" in mine.get("/incoming/supplies?wsdl").text
                assert mine.post("/incoming/none", content="x").status_code == 404
        assert bodies(room, "supplies") == [ORDER % 1]
        assert bodies(room, "hooks") == ["1"]


def _problems(mine: httpx.Client, refusals: list[httpx.Response]) -> None:
    """Every refusal says what the room's server says of one."""
    more = [mine.post("/incoming/none", content="x"), mine.post("/incoming/orders", content="<order", headers=XML)]
    methods = [mine.get("/incoming/orders"), mine.delete("/incoming/orders"), mine.patch("/incoming/none")]
    for refusal in [*refusals, *more, *methods]:
        problem = refusal.json()
        assert refusal.headers["content-type"] == "application/problem+json"
        assert (problem["status"], problem["happened"]) == (refusal.status_code, "no")
        assert problem["advice"]
        assert problem["type"] == f"urn:postroom:error:{problem['code']}"
    assert [(refusal.status_code, refusal.json()["code"]) for refusal in methods] == [(405, "method-unknown")] * 3
    assert all("POST" in refusal.headers["allow"] for refusal in methods)
    head = mine.head("/incoming/orders")
    assert (head.status_code, head.headers["allow"], head.content) == (405, "POST, PUT", b"")  # and nothing has come in


def _webhooks(nobody: httpx.Client) -> None:
    assert nobody.post("/incoming/hooks", content=b"1", headers=signed(b"1")).status_code == 202
    assert nobody.post("/incoming/hooks", content=b"1", headers=signed(b"1", key="else")).status_code == 401
    assert nobody.post("/incoming/hooks", content=b"2", headers=signed(b"1")).status_code == 401
