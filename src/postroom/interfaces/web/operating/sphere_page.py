"""Spheres by state: their sends, what they wait for, and what an abort would undo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

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


class _Fate(NamedTuple):
    """What an abort would do to a send: its sign, and how it is said of itself, of one and of several."""

    sign: str
    says: str
    of_one: str
    of_several: str


_STAYS = _Fate("warning", "stays: nothing undoes it", "stays as it is", "stay as they are")
_PARKED = _Fate("parked", "parked: {why}", "stays parked", "stay parked")
_UNSENT = _Fate("withdrawn", "never sent", "is never sent", "are never sent")
_SENT = _Fate("runs", "sent then", "is sent then", "are sent then")
_BACK = _Fate("undone", "comes back to {recipient}", "comes back", "come back")
_WITHDRAWN = _Fate("withdrawn", "withdrawn", "is withdrawn", "are withdrawn")
_COMPENSATED = _Fate("undone", "compensated in {queue}", "gets its compensation", "get their compensation")
_BY_MOMENT = {"commit": _UNSENT, "abort": _SENT, "return": _BACK}


def _fate(send: SendShown) -> _Fate | None:
    """What an abort would do to a send; None if its outcome is known."""
    if send.outcome == "parked":
        return _PARKED
    if send.outcome != "open":
        return None
    if send.when in _BY_MOMENT:
        return _BY_MOMENT[send.when]
    if send.received is None and send.key is not None:
        return _WITHDRAWN
    return _STAYS if send.remembered is None else _COMPENSATED


def if_aborted(send: SendShown, is_over: bool) -> tuple[str, str]:
    """The outcome of a send, or what an abort would do to it: icon and text."""
    fate = _fate(send)
    if fate is None:
        return "done", send.outcome
    if is_over and fate is not _PARKED:
        return "done", "nothing"
    says = fate.says.format(why=send.why, recipient=send.recipient, queue=send.target or send.recipient)
    return fate.sign, says


def would(sends: Sequence[SendShown]) -> str:
    """What an abort would do to how many."""
    fates = Counter(fate for send in sends if (fate := _fate(send)) is not None)
    if not fates:
        return "An abort changes nothing that it has sent."
    if len(sends) == 1:
        return f"Its one send {next(iter(fates)).of_one}."
    said = [f"{count(number)} {fate.of_one if number == 1 else fate.of_several}" for fate, number in fates.items()]
    return f"Of its {counted(len(sends), 'send')}, {', '.join(said)}."


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
