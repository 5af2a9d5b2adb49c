"""A program whose messages come from partners and go to partners, and which says what it was told had happened."""

from __future__ import annotations

from pathlib import Path

import postroom
from postroom.gateways.transport import Arrival
from postroom.room import Postroom

from .here import evaluate_here
from .procedure_workload import say

TURNS = 3
PROGRAM = """
create queue inbox kind incomingGateway mode persistent interface http port door
create queue out kind outgoingGateway mode persistent interface command port file
create queue gone kind outgoingGateway mode persistent interface command port dead errorqueue errs
create queue errs kind basic mode persistent
"""


def opened(url: str) -> Postroom:
    return evaluate_here(postroom.open(url))


def arrival(number: int) -> Arrival:
    return Arrival("door", f"in {number}".encode(), "text/plain", "partner", {}, f"n{number}")


def work(folder: Path, url: str) -> None:
    (folder / "p.demaq").write_text(PROGRAM)
    with opened(url) as room:
        room.gateways.add("door", "http", path="/door")
        room.gateways.add("file", "command", command=f"tee -a {folder / 'sent'}")
        room.gateways.add("dead", "command", command="false", attempts="1")
        room.load(folder / "p.demaq")
        say("ok", "ready")
        for number in range(TURNS):
            room._parts.incoming.accept(arrival(number))
            say("ok", "in", str(number))
            room._parts.incoming._forgotten = float("-inf")
            room._parts.incoming.forget()
            room.send_many("out", [f"{number} a\n", f"{number} b\n"])
            say("ok", "out", str(number))
            say("ok", "gone", room.send("gone", "x").key)
            room.run_until_idle()
    say("finished")
