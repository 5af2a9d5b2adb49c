"""The two applications of the Gryphon text, and NEXMark's first two queries: from their files, on Spark."""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import SparkSession

from postroom.errors import NotAllowed
from postroom.room import Postroom

EXAMPLES = Path(__file__).parents[2] / "examples"


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / name / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    found = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def said(room: Postroom, queue: str) -> list[Any]:
    return [json.loads(message.body) for message in room.queues.info(queue)]


def test_the_location_monitor_is_made_of_arcs_alone(room: Postroom, spark: SparkSession) -> None:
    room.load(EXAMPLES / "location" / "location.flow")
    room.client("anna", broker="north").subscribe("Trades")
    room.client("bert", broker="north").subscribe("Trades")
    room.client("watcher", broker="north").subscribe("Location")
    room.client("anna", broker="north").disconnect()
    room.client("anna", broker="south").connect()
    room.client("bert", broker="north").disconnect()
    room.client("bert", broker="unknown").connect()
    room.run_until_idle(master="local[2]")
    assert said(room, "watcher") == [
        {"client": "anna", "city": "nowhere"},
        {"client": "anna", "city": "Zurich"},
        {"client": "bert", "city": "nowhere"},
    ]
    assert said(room, "Connected") == said(room, "Arrived") == [], "nothing is stored on the way"


def test_the_warehouse_asks_and_a_security_manager_decides(room: Postroom, spark: SparkSession) -> None:
    warehouse = module("warehouse")
    room.load(EXAMPLES / "warehouse" / "market.flow")
    token = room.flows.add_principal("warehouse")
    room.flows.add_principal("manager", "pw")
    service = warehouse.Warehouse(room.client("warehouse", token))
    manager = warehouse.Manager(room.client("manager", "pw"), distrusted=frozenset({"mallory"}))

    def settle() -> None:
        room.run_until_idle(master="local[2]")
        while service.work() + manager.work():
            room.run_until_idle(master="local[2]")

    sender = room.client("sender")
    sender.publish(warehouse.META, {"AddSpace": {"nodeName": "Letters : [dest: string, text: string]"}})
    for name in ("anna", "mallory"):
        client = room.client(name)
        client.publish(warehouse.META, {"AddSpace": {"nodeName": f"{name} : [text: string]"}})
        warehouse.request(client, f"news_for_{name}", "News", name, {"Merge": {}})
    settle()
    for dest in ("anna", "mallory", "anna"):
        sender.publish("Letters", {"dest": dest, "text": f"for {dest}"})
    settle()
    assert said(room, "anna") == [{"text": "for anna"}, {"text": "for anna"}]
    assert said(room, "mallory") == []
    assert len(room.queues.history("Warehouse").messages) == 3
    arcs = {arc.name for arc in room.flows.graph().arcs}
    assert {"store_Letters", "find_anna", "strip_anna", "news_for_anna"} <= arcs
    assert not {name for name in arcs if "mallory" in name}
    events = [json.loads(message.body) for message in room.queues.history(warehouse.META)]
    processed = [each["action"]["RequestProcessed"] for each in events if "RequestProcessed" in each["action"]]
    assert [each["success"] for each in processed].count(True) == 3
    assert {each["reason"] for each in processed if not each["success"]} == {"this client is not trusted"}
    asked = [each["principal"] for each in events if "RequestAddArc" in each["action"]]
    assert asked.count("warehouse") == 4
    assert asked.count("anna") == asked.count("mallory") == 1
    with pytest.raises(NotAllowed):
        room.client("mallory").publish(
            warehouse.META,
            {"AddArc": {"arcName": "steal", "srcNode": "Warehouse", "destNode": "mallory", "func": {"Merge": {}}}},
        )


def test_the_warehouse_runs_as_a_program(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    module("warehouse").main(master="local[2]")
    out = capsys.readouterr().out
    assert "anna has ['the market is open', 'a letter for anna']" in out
    assert "mallory has nothing" in out


def bids(count: int) -> list[dict[str, Any]]:
    """Bids of NEXMark's schema; some on the auctions that its second query asks for."""
    chance = random.Random(17)
    asked = (1007, 1020, 2001, 2019, 2087)
    return [
        {
            "auction": chance.choice(asked) if chance.random() < 0.1 else chance.randrange(1000, 3000),
            "bidder": chance.randrange(1000, 2000),
            "price": chance.randrange(1, 10**8),
            "channel": chance.choice(["Google", "Facebook", "Baidu", "Apple"]),
            "url": f"https://www.nexmark.invalid/item.htm?query={number}",
            "time": f"2015-07-15T00:00:{number % 60:02}.{number:06}Z",
        }
        for number in range(count)
    ]


def test_nexmark_converts_currencies_and_selects(room: Postroom, spark: SparkSession) -> None:
    room.load(EXAMPLES / "nexmark" / "nexmark.flow")
    given = bids(2_000)
    room.flows.publish_many("Bid", given)
    room.run_until_idle(master="local[2]")
    euros = [
        (each["auction"], each["bidder"], Decimal(each["price"]), each["time"]) for each in said(room, "BidInEuro")
    ]
    assert euros == [
        (each["auction"], each["bidder"], each["price"] * Decimal("0.908"), each["time"]) for each in given
    ]
    chosen = [(each["auction"], each["price"]) for each in said(room, "ChosenPrice")]
    asked = (1007, 1020, 2001, 2019, 2087)
    assert chosen == [(each["auction"], each["price"]) for each in given if each["auction"] in asked]
    assert len(chosen) > 100
