"""Spheres by state: their sends, what they wait for, and what an abort would undo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from postroom.interfaces.web.page import Goto, Page
from postroom.interfaces.web.rendering import count, counted
from postroom.interfaces.web.visit import Visit
from postroom.spheres.monitor import SendShown
from postroom.store.tables.spheres import ABORTED, COMMITTED, STATES

PATH = "/spheres"


def show(visit: Visit) -> Mapping[str, Any]:
    state, id = visit.query.get("state"), visit.query.get("id")
    spheres = visit.room.spheres.all(state or None)
    told = None if id is None else visit.room.spheres.show(id)
    by_state = {name: [sphere for sphere in spheres if sphere.state == name] for name in STATES}
    is_over = told is not None and told.sphere.state in (COMMITTED, ABORTED)
    return {
        "count": len(spheres),
        "state": state,
        "states": STATES,
        "by_state": {name: visit.part(name, some[::-1]) for name, some in by_state.items() if some},
        "told": told,
        "is_over": is_over,
        "sends": [] if told is None else [(send, *if_aborted(send, is_over)) for send in told.sends],
        "would": "" if told is None else would(told.sends),
        "may_abort": visit.may("sphere", "*"),
        "may_settle": visit.may("operate", "*"),
        "live": "room",
    }


def if_aborted(send: SendShown, is_over: bool) -> tuple[str, str]:
    """The outcome of a send, or what an abort would do to it: icon and text."""
    if send.outcome not in ("open", "parked"):
        return "done", send.outcome
    if send.outcome == "parked":
        return "parked", f"parked: {send.why}"
    if is_over:
        return "done", "nothing"
    if send.when == "commit":
        return "withdrawn", "never sent"
    if send.when == "abort":
        return "runs", "sent then"
    if send.when == "return":
        return "undone", f"comes back to {send.recipient}"
    if send.received is None and send.key is not None:
        return "withdrawn", "withdrawn"
    if send.remembered is not None:
        return "undone", f"compensated in {send.target or send.recipient}"
    return "warning", "stays: nothing undoes it"


def would(sends: Sequence[SendShown]) -> str:
    """What an abort would do to how many."""
    counts = Counter(if_aborted(send, False)[1].partition(" ")[0] for send in sends)
    said = [f"{count(number)} {_ABORTED[word][number != 1]}" for word, number in counts.items() if word in _ABORTED]
    return f"Of what it has sent, {', '.join(said)}." if said else "Nothing that it has sent changes by it."


#: By the first word of what an abort would do to a send: of one, and of several.
_ABORTED = {
    "never": ("is never sent", "are never sent"),
    "sent": ("is sent then", "are sent then"),
    "comes": ("comes back", "come back"),
    "withdrawn": ("is withdrawn", "are withdrawn"),
    "compensated": ("gets its compensation", "get their compensation"),
    "stays:": ("stays as it is", "stay as they are"),
    "parked:": ("stays parked", "stay parked"),
}


def abort(visit: Visit) -> Goto:
    visit.require("sphere", None, {})
    id = visit.needed("id")
    state = visit.room.spheres.abort(id, visit.form.get("reason", "").strip() or f"{visit.user} aborted it")
    return Goto(visit.address(PATH, id=id), f"{id} is {state}.")


def settle(visit: Visit) -> Goto:
    """Commit or roll back prepared transactions in a database, as their spheres were decided."""
    visit.require("operate", None, {})
    settled = visit.room.spheres.settle_database(visit.needed("url"))
    return Goto(
        visit.here(id=visit.query.get("id")), f"Settled {counted(len(settled), 'transaction')} of spheres there."
    )


PAGE = Page(
    PATH,
    "spheres.html",
    show,
    "look",
    None,
    {"abort": abort, "settle": settle},
    label="Spheres",
    group="operators",
)
