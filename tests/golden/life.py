"""A small room with something of every capability that a version had; run by ``make.py`` with that version's code.

``python life.py SCHEMA FILE``: only what all versions from 13 on have in common is used. For those before, ``make.py``
takes this file as it was then, with the names of that time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import postroom

TREE = """\
01 INPUT-QUEUE (CLAIMS) PASSWORD IS "CLAIMS" COMMAND LINE IS "true"
   02 SUB-QUEUE-1 (NORTH)
   02 SUB-QUEUE-1 (SOUTH)
99
"""
PROGRAM = """\
create queue incoming kind basic mode persistent
create queue outgoing kind basic mode persistent
create property id as xs:string fixed queue incoming value /order/id
create slicing same on id
create rule pass for incoming
if (/order) then do enqueue <ship>{/order/id}</ship> into outgoing
"""
FLOW = "domain trade\nspace In : [n: int]\nspace Out : [n: int]\narc all : In -> Out merge\n"
FOLD = """\
domain shop
space Sales : [shop: string, n: int]
space Sums : [shop: string, n: int]
arc sums : Sales -> Sums collapse [shop: s, n: a] by s => [shop: s, n: sum(a)]
"""
FORM = """\
type NOTE
| No: ____ Text: ______________ KEY: ___ |
field No int required
field Text string free
field KEY key automatic
index No
"""
PROCEDURE = """\
procedure away at Jane
  precondition note : NOTE
    No: 7
  action answer on note
    Text: "seen"
  destination back on note copy 0 ship John
"""


Load = Callable[[str, str], None]


def live(room: postroom.Postroom, schema: int, load: Load) -> None:
    load("tree.qdl", TREE)
    room.queues.create("plain", password="pw")
    room.queues.create("short")
    room.queues.set_mode("short", keep_processed=False)
    room.send_many("plain", ["1", "2", "a\nb"])
    room.send("plain", {"n": 4}, properties={"who": "Ann"}, idempotency_key="once")
    room.receive("plain")
    room.send("short", "gone")
    room.receive("short")
    room.send(("CLAIMS", "NORTH"), "roof")
    room.queues.disable("plain", password="pw", input_only=True)
    room.queues.enable("plain", password="pw")
    room.queues.disable("CLAIMS", password="CLAIMS")
    if schema >= 2:
        load("program.demaq", PROGRAM)
        for number in range(3):
            room.send("incoming", f"<order><id>{number}</id></order>", format="xml")
        room.receive("incoming")
        room.engine.sweep()
    if schema >= 3:
        load("graph.flow", FLOW)
        room.flows.publish_many("In", [{"n": 1}, {"n": 2}])
        room.client("desk").subscribe("In", "[n: n > 1]")
    if schema >= 4:
        load("note.form", FORM)
        room.stations.add("John", "pw")
        jane = room.stations.add("Jane", "pw")
        john = room.station("John", "pw")
        keys = [john.create("NOTE", No=number) for number in (5, 6, 7)]
        john.modify(keys[0], Text="changed")
        john.add_to_dossier("kept", keys[0])
        john.ship(keys[1:], "Jane")
        jane.get(limit=1)
    if schema >= 5:
        load("away.form", PROCEDURE)
    if schema >= 6:
        with room.sphere("good") as good:
            good.send("plain", "book", compensation="cancel")
        bad = room.sphere("bad")
        bad.send("plain", "book", compensation="cancel")
        bad.abort()
        room.spheres.machine(["NEW", "PAID"], [("NEW", "PAID")]).start("order")
    if schema >= 7:
        first = room.send("plain", "first")
        room.send("plain", "second", cause=first.key)


def live_on(room: postroom.Postroom, schema: int, load: Load) -> None:
    """What came with versions that had leases, rights and gateways."""
    if schema >= 14:
        room.queues.create("leased")
        room.send_many("leased", ["in hand", "next"])
        room.receive("leased", lease=1)
    if schema >= 16:
        room.flows.add_principal("Ann", password="password of Ann")
        room.access.grant("Ann", "send", "leased")
    if schema >= 17:
        room.gateways.add("partner", "http", address="http://127.0.0.1:9/")
    if schema >= 22:
        room.queues.create("chosen")
        for region in ("US", "EU"):
            room.send("chosen", region, properties={"region": region})
        room.receive("chosen", where="region = 'EU'")
        load("fold.flow", FOLD)
        room.publish("Sales", {"shop": "north", "n": 3})


if __name__ == "__main__":
    with TemporaryDirectory() as name, postroom.open(sys.argv[2], actor="golden") as opened:

        def load(file: str, text: str) -> None:
            (Path(name) / file).write_text(text)
            opened.load(Path(name) / file)

        live(opened, int(sys.argv[1]), load)
        live_on(opened, int(sys.argv[1]), load)
