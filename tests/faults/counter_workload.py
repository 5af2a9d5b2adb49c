"""A program in which messages go in at one counter and out at another, and which says what it has sent.

``work`` prints ``ok claim KEY`` for each that fits its form, ``ok misfit KEY`` for each that does not.
"""

from __future__ import annotations

from pathlib import Path

from .procedure_workload import opened, say

CLAIMS = 4
FORMS = """\
type CLAIM
| No: _____ Amount: ________ KEY: ___ |
field No int required
field Amount decimal free
field KEY key automatic
"""
#: The desk is at another node: what comes in at the control node is fetched, handled and shipped back to it.
COUNTERS = """\
procedure forward at desk
  precondition claim : CLAIM
  destination on on claim copy 0 ship archive
counter front at desk takes CLAIM from claims
counter back at archive gives to settled
"""


def work(folder: Path, urls: list[str]) -> None:
    forms, counters = folder / "types.form", folder / "counters.form"
    forms.write_text(FORMS)
    counters.write_text(COUNTERS)
    with opened(urls[0]) as room:
        room.load(forms)
        room.stations.add_node("north", urls[1])
        room._parts.network.add_station("desk", "north", None)
        room._parts.network.add_station("archive", "control", None)
        for queue in ("claims", "settled"):
            room.queues.create(queue)
        room.load(counters)
        say("ok", "ready")
        for number in range(CLAIMS):
            say("ok", "claim", room.send("claims", {"No": number, "Amount": "12.50"}).key)
            say("ok", "misfit", room.send("claims", f"No: {number}th").key)
            room.run_until_idle(step_messages=1)
        room.stations.remove_counter("back")
        room.load(counters)
    say("finished")
