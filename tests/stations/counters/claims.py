"""Claims that come in by one counter and go out by another, for the tests of counters."""

from __future__ import annotations

from pathlib import Path

from postroom.room import Postroom
from postroom.stations.procedures.evaluation import evaluate_here
from postroom.store.kernel.queues import SYSTEM_ERRORS

CLAIM = """\
type CLAIM
| Claimant: ____________ KEY: ______ DATE: ______ |
| Amount: ______ Loss Date: ________ Clerk: _____ |
| Items: ________________________________________ |
field Claimant string required
field Amount decimal required
field Loss Date date free
field Items list of string free
field Clerk string automatic signature
field KEY key automatic
field DATE date automatic
index Claimant
"""
IN = "counter front at North takes CLAIM from claims\n"
OUT = "counter back at Archive gives to settled\n"
LINES = "Claimant: Ann\nAmount: 12.50\nLoss Date: 2026-11-30\nItems: roof\nItems: door\n"
JSON = {"Claimant": "Ann", "Amount": "12.50", "Loss Date": "2026-11-30", "Items": ["roof", "door"]}
NOTE = "type NOTE\n| Subject: ____ |\nfield Subject string free\n"


def furnished(room: Postroom, node: str) -> Postroom:
    room._parts.interpreter.evaluate = evaluate_here
    room._parts.network.add_station("North", node, None)
    room._parts.network.add_station("Archive", "control", None)
    for queue in ("claims", "settled"):
        room.queues.create(queue, password="letmein")
    return room


def load(room: Postroom, folder: Path, text: str, name: str = "claims.form") -> None:
    (folder / name).write_text(text)
    room.load(folder / name)


def errors(room: Postroom) -> list[str]:
    return [message.body for message in room.queues.info(SYSTEM_ERRORS)]
