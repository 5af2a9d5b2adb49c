"""The message warehouse of the Gryphon text: a service that watches a meta-space and asks for arcs of its own.

python examples/warehouse/warehouse.py

It adds an arc from every new source of messages to itself. When a client asks for an arc, the warehouse asks for two:
one that selects what is for this client, and one that takes the destination off. It only asks: a security manager
grants or denies.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import postroom
from postroom.errors import FlowInvalid
from postroom.room.client import Client

DOMAIN = "market"
META = f"meta:{DOMAIN}"
HERE = Path(__file__).parent
_numbers = count(1)


def select(pattern: str) -> dict[str, Any]:
    return {"Select": {"pat": pattern}}


def transform(pattern: str, result: str) -> dict[str, Any]:
    return {"Transform": {"srcPat": pattern, "resultPat": result}}


def request(client: Client, name: str, source: str, target: str, func: dict[str, Any]) -> int:
    """Ask for an arc; answers with the number of the request."""
    id = next(_numbers)
    said = {"id": id, "arcName": name, "srcNode": source, "destNode": target, "func": func}
    client.publish(META, {"RequestAddArc": said})
    return id


def heard(client: Client) -> list[tuple[str, str, dict[str, Any]]]:
    """What the meta-space has told a client since it was last asked: by whom, what, and its words."""
    found = []
    while (message := client.receive().message) is not None:
        event = json.loads(message.body)
        ((action, said),) = event["action"].items()
        found.append((event["principal"], action, said))
    return found


class Warehouse:
    """Keeps what is sent, and connects itself to whoever asks for messages."""

    def __init__(self, client: Client) -> None:
        self._client = client
        client.subscribe(META, "[action: AddSpace: any]")
        client.subscribe(META, "[action: RequestAddArc: any]")

    def work(self) -> int:
        events = heard(self._client)
        for principal, action, said in events:
            if action == "AddSpace":
                self._collect(said["nodeName"])
            elif action == "RequestAddArc" and principal != self._client.name:
                self._connect(said["destNode"])
        return len(events)

    def _collect(self, source: str) -> None:
        arc = {"arcName": f"store_{source}", "srcNode": source, "destNode": "Warehouse", "func": {"Merge": {}}}
        with suppress(FlowInvalid):  # a space of something else than letters
            self._client.publish(META, {"AddArc": arc})

    def _connect(self, client: str) -> None:
        between = f"For_{client}"
        self._client.publish(META, {"AddSpace": {"nodeName": between}})
        request(self._client, f"find_{client}", "Warehouse", between, select(f'[dest: "{client}"]'))
        request(self._client, f"strip_{client}", between, client, transform("[text: t]", "[text: t]"))


@dataclass
class Manager:
    """Grants requests, but for clients that it does not trust."""

    client: Client
    distrusted: frozenset[str] = frozenset()
    answers: dict[int, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.client.subscribe(META, "[action: RequestAddArc: any]")

    def work(self) -> int:
        events = heard(self.client)
        for _, _, said in events:
            arc = {name: said[name] for name in ("arcName", "srcNode", "destNode", "func")}
            trusted = not any(name in said["arcName"] for name in self.distrusted)
            reason = "" if trusted else "this client is not trusted"
            if trusted:
                self.client.publish(META, {"AddArc": arc})
            answer = {"id": said["id"], "success": trusted, "reason": reason}
            self.client.publish(META, {"RequestProcessed": answer})
            self.answers[said["id"]] = trusted
        return len(events)


def main(master: str = "local[*]") -> None:
    with tempfile.TemporaryDirectory() as folder, postroom.open(Path(folder) / "room.db") as room:
        room.load(HERE / "market.flow")
        token = room.flows.add_principal("warehouse")
        room.flows.add_principal("manager", "a long password")
        warehouse = Warehouse(room.client("warehouse", token))
        manager = Manager(room.client("manager", "a long password"), distrusted=frozenset({"mallory"}))

        def settle() -> None:
            """Let events flow and services answer until nobody has anything left to do."""
            room.run_until_idle(master=master)
            while warehouse.work() + manager.work():
                room.run_until_idle(master=master)

        sender = room.client("sender")
        sender.publish(META, {"AddSpace": {"nodeName": "Letters : [dest: string, text: string]"}})
        for name in ("anna", "mallory"):
            client = room.client(name)
            client.publish(META, {"AddSpace": {"nodeName": f"{name} : [text: string]"}})
            request(client, f"news_for_{name}", "News", name, {"Merge": {}})
        settle()
        room.publish("News", {"text": "the market is open"})
        for dest in ("anna", "mallory"):
            sender.publish("Letters", {"dest": dest, "text": f"a letter for {dest}"})
        settle()
        for name in ("anna", "mallory"):
            letters = [json.loads(message.body)["text"] for message in room.peek(name)]
            print(f"{name} has {letters or 'nothing'}")
        print(f"the warehouse keeps {len(room.queues.history('Warehouse').messages)} letters")
        print(f"requests: {sum(manager.answers.values())} granted, {len(manager.answers)} answered")


if __name__ == "__main__":
    main()
