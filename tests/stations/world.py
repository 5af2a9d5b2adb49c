"""Networks for tests: a form, nodes, stations."""

from __future__ import annotations

from pathlib import Path

import postroom
from postroom.errors import NodeDown
from postroom.room import Postroom
from postroom.stations.station import Station

NOTE = """\
type NOTE
| To: ____________ KEY: ___________ |
| Count: ____ Text: _______________ |
field To string required
field KEY key automatic
field Count int free
field Text string free
index Text
"""
CLAIM = """\
type CLAIM
| Claimant: ____________ KEY: ______ |
| Amount: ______ Note: _______ |
field Claimant string required
field Amount decimal required
field KEY key automatic
field Note string free
index Claimant
"""
HOMES = {"ann": "north", "bob": "south", "cid": "control"}


def network(url: str, folder: Path, nodes: dict[str, str], stations: dict[str, str], form: str = NOTE) -> Postroom:
    """A room with nodes (name and URL) and stations (name and node), and a form."""
    file = folder / "note.form"
    file.write_text(form)
    room = postroom.open(url)
    room.load(file)
    for name, where in nodes.items():
        room.stations.add_node(name, where)
    for name, node in stations.items():
        room._parts.network.add_station(name, node, None)  # passwords take their time, and are tested elsewhere
    return room


def three_nodes(url: str, folder: Path) -> Postroom:
    """The network of ``HOMES``: a station on the control node, and on each of two others."""
    return network(url, folder, {name: str(folder / f"{name}.db") for name in ("north", "south")}, HOMES)


def unreachable(*_: object) -> dict[int, int]:
    """In the place of ``mail.deliver``: the other store does not answer."""
    raise NodeDown(node="control", why="for a moment")


def desk(room: Postroom, name: str) -> Station:
    """A station as tests have it: without a password, and with the Spark session of the test run."""
    return room.stations._station(name, "local[2]")
