"""Offices with procedures for tests: types, stations on one or two nodes, actions worked out in this process."""

from __future__ import annotations

import json
from pathlib import Path

from tests.stations.world import network

from postroom.model.key import key_number
from postroom.model.message import Stored, message_hash
from postroom.room import Postroom
from postroom.stations.forms.form import Form
from postroom.stations.office import read
from postroom.stations.places.postmarks import Postmarks, postmarks
from postroom.stations.procedures.definitions import Procedure
from postroom.stations.procedures.evaluation import evaluate_here

TYPES = """\
type ORDER
| No: _____ Item: __________ Amount: ____ |
| Status: ________ Team: _______ KEY: ___ |
field No int required
field Item string once
field Amount decimal free
field Status string free
field Team string free
field KEY key automatic
type BILL
| No: _____ Amount: _____ Note: ________ |
| KEY: _________ Tags: __________ |
field No int required
field Amount decimal free
field Note string once
field Tags list of string free
field KEY key automatic
"""


def office(
    url: str, folder: Path, procedures: str, stations: dict[str, str] | None = None, nodes: dict[str, str] | None = None
) -> Postroom:
    """A room with stations (by default ann, bob and cid on the control node) and procedures, which need no Spark."""
    at = stations or dict.fromkeys(("ann", "bob", "cid"), "control")
    room = network(url, folder, nodes or {}, at, TYPES)
    room._parts.interpreter.evaluate = evaluate_here
    if procedures:
        load(room, folder, procedures)
    return room


def load(room: Postroom, folder: Path, procedures: str) -> None:
    file = folder / "procedures.form"
    file.write_text(procedures)
    room.load(file)


def run(room: Postroom, size: int | None = None) -> None:
    room.run_until_idle(step_messages=size)


def stored(room: Postroom, key: str) -> Stored:
    """A message of the control node as it is kept."""
    found = room.store.read(lambda tx: tx.messages.find(key_number(key)))
    assert found is not None
    return found


def about(room: Postroom, key: str) -> Postmarks:
    return postmarks(stored(room, key).properties)


def forms() -> dict[str, Form]:
    """The types, without a room."""
    return {form.name: form for form in read(TYPES, "f").forms}


def procedures(text: str) -> tuple[Procedure, ...]:
    """The procedures of a text, without a room."""
    return read(text, "f").procedures


def message(
    key: int, type: str, position: int | None = None, properties: str = '{"form":1}', **fields: object
) -> Stored:
    """A message as a station of the control node keeps it."""
    position = key if position is None else position
    body = json.dumps(fields, separators=(",", ":"))
    hash = message_hash(key, 0, None, body, "json", type, properties)
    return Stored(key, "station:ann", 0, None, type, "json", body, hash, properties, None, position, position, position)
