"""A program in which people and procedures move messages over a control node and two others, and say what they do.

``work`` prints ``ok pair ORDER BILL`` once both
messages of a pair were shipped to where a procedure joins them.
"""

from __future__ import annotations

from pathlib import Path

import postroom
from postroom.room import Postroom
from postroom.stations.procedures.evaluation import evaluate_here

PAIRS = 4
HOMES = {"ann": "north", "bob": "south", "cid": "control", "dan": "control"}
FORMS = """\
type ORDER
| No: _____ Status: ________ Seen: _______ KEY: ___ |
field No int required
field Status string free
field Seen string free
field KEY key automatic
type BILL
| No: _____ Note: ________ KEY: ___ |
field No int required
field Note string once
field KEY key automatic
"""
#: A pair is joined at one node, handled at the next, and handled again at the control node.
PROCEDURES = """\
procedure join at ann
  precondition order : ORDER
  precondition bill : BILL
    No: ?order.No
  action paid on order
    Status: paid
  destination on on order copy 0 ship bob
  destination kept on bill copy 0 dossier joined
procedure receipt at bob
  precondition order : ORDER
    Status: paid
  action seen on order
    Seen: bob
  create slip : BILL
    No: ?order.No
    Note: ?order.KEY
  destination back on order copy 0 dossier done
  destination copied on order copy 1 ship cid
  destination sent on slip copy 0 ship dan
procedure match at cid
  precondition order : ORDER
    Seen: bob
  destination on on order copy 0 ship dan
procedure last at dan
  precondition slip : BILL
  precondition order : ORDER
    No: ?slip.No
  action noted on order
    Status: matched
  destination later on slip copy 0 ship cid after 0 seconds
  destination left on order copy 0 leave
procedure refuses at cid
  precondition slip : BILL
  destination lost on slip copy 0 ship ?slip.Note
"""


def say(*words: object) -> None:
    print(*words, flush=True)


def opened(url: str) -> Postroom:
    room = postroom.open(url)
    room._parts.interpreter.evaluate = evaluate_here
    return room


def work(folder: Path, urls: list[str]) -> None:
    forms, procedures = folder / "types.form", folder / "procedures.form"
    forms.write_text(FORMS)
    procedures.write_text(PROCEDURES)
    with opened(urls[0]) as room:
        room.load(forms)
        for name, url in (("north", urls[1]), ("south", urls[2])):
            room.stations.add_node(name, url)
        for name, node in HOMES.items():
            room._parts.network.add_station(name, node, None)
        room.load(procedures)
        say("ok", "ready")
        cid, ann = room.stations._station("cid"), room.stations._station("ann")
        for number in range(PAIRS):
            order, bill = cid.create("ORDER", No=number), ann.create("BILL", No=number)
            cid.ship(order, "ann")
            say("ok", "pair", order, bill)
            room.run_until_idle(step_messages=2)
            if number == 1:
                room.stations.disable_procedure("receipt")
                room.stations.enable_procedure("receipt")
    say("finished")
