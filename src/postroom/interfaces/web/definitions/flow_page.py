"""The flow graph as a picture and a table, with rates, subscriptions and recent changes.

Users who may publish in the meta-space of a domain can change its graph here, as its policy allows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from secrets import randbelow
from typing import Any

from postroom.errors import EntryInvalid
from postroom.flows.graph.inspection import ArcShown, GraphShown
from postroom.flows.language.definitions import EVERYONE
from postroom.interfaces.web.page import Goto, Page, Undo
from postroom.interfaces.web.visit import Visit
from postroom.limits import ARC_RATES_SECONDS, DRAWN_SPACES_MAX, META_EVENTS_SHOWN, TOP_JOURNAL_ROWS
from postroom.model.message import Message
from postroom.room import Postroom
from postroom.store.kernel.transaction import Transaction

WIDTH, HEIGHT, ACROSS, DOWN = 150, 34, 290, 62
NAME_SHOWN = 18  # signs of the name of an arc: as many as there is room for between two spaces


@dataclass(frozen=True)
class Box:
    """A space in the picture."""

    name: str
    x: int
    y: int
    waiting: int


@dataclass(frozen=True)
class Line:
    """An arc in the picture."""

    path: str
    text_x: int
    text_y: int
    name: str
    label: str  # as much of the name as there is room for
    rate: str
    is_enabled: bool


def show(visit: Visit) -> Mapping[str, Any]:
    graph = visit.room.flows.graph()
    rates = arc_rates(visit.room, graph)
    boxes = placed(graph)
    return {
        "graph": graph,
        "rates": rates,
        "boxes": boxes,
        "lines": drawn(graph, boxes, rates),
        "width": max((box.x for box in boxes.values()), default=0) + WIDTH + 20,
        "height": max((box.y for box in boxes.values()), default=0) + HEIGHT + 20,
        "box_width": WIDTH,
        "box_height": HEIGHT,
        "subscriptions": visit.room.flows.subscriptions(),
        "rights": {name: rights(visit, graph, name) for name in graph.domains},
        "changes": _changes(visit, graph),
        "sent": visit.form if visit.problem is not None else {},
        "live": "room",
    }


def arc_rates(room: Postroom, graph: GraphShown) -> dict[str, float | None]:
    """Events per second of each arc in the last minute, from the journal.

    None for an arc into a space that stores nothing, because the journal has no lines for it.
    """

    def work(tx: Transaction) -> tuple[dict[tuple[str, str], int], float]:
        since, begin = max(tx.journal.newest() - TOP_JOURNAL_ROWS, 0), tx.now - ARC_RATES_SECONDS * 1_000_000
        known = tx.journal.time_of(since) if since else None
        begin = begin if known is None else max(begin, known)  # of very many lines only the last are counted
        return tx.journal.put_by_arcs(since, begin), max(tx.now - begin, 1) / 1e6

    put, seconds = room.store.read(work)
    stored = {space.name for space in graph.spaces if space.stored}
    return {
        arc.key: put.get((arc.name, arc.target), 0) / seconds if arc.target in stored else None for arc in graph.arcs
    }


# --- changing it ---

#: What a page offers: the action in the words of a policy, and how its event is made of the fields that were sent.
CHANGES: Mapping[str, Callable[[Visit], dict[str, Any]]] = {
    "disableArc": lambda visit: {"arcName": visit.needed("arc")},
    "enableArc": lambda visit: {"arcName": visit.needed("arc")},
    "deleteArc": lambda visit: {"arcName": visit.needed("arc")},
    "requestDeleteArc": lambda visit: {"id": randbelow(10**9), "arcName": visit.needed("arc")},
    "addArc": lambda visit: _arc_said(visit),
    "requestAddArc": lambda visit: {"id": randbelow(10**9), **_arc_said(visit)},
    "addSpace": lambda visit: {"nodeName": f"{visit.needed('space')} : {visit.needed('type')}"},
    "deleteSpace": lambda visit: {"nodeName": visit.needed("space")},
}


#: What is done and undone by each other.
SWITCHES = {"disableArc": "enableArc", "enableArc": "disableArc"}


def meta_of(domain: str) -> str:
    return f"meta:{domain}"


def rights(visit: Visit, graph: GraphShown, domain: str) -> dict[str, Any]:
    """What the user may change in a domain, or why nothing."""
    allows = graph.domains[domain]
    mine = [action for action in CHANGES if any(action in allows.get(name, ()) for name in (EVERYONE, visit.user))]
    why = None
    if not visit.may("publish", meta_of(domain)):
        why = f"This needs the right publish on {meta_of(domain)}."
    elif not mine:
        others = sorted({name for name, actions in allows.items() for action in actions if action in CHANGES})
        why = f"The domain allows it to {', '.join(others)}." if others else "The domain allows it to nobody."
    return {"may": mine if why is None else [], "why": why, "allows": allows}


def _changes(visit: Visit, graph: GraphShown) -> list[dict[str, Any]]:
    """The last events of the meta-spaces, newest first."""
    changes: list[dict[str, Any]] = []
    for domain in graph.domains:
        newest = visit.room.store.read(partial(_newest, meta_of(domain)))
        changes += [_change(domain, message) for message in newest]
    return sorted(changes, key=lambda entry: str(entry["key"]), reverse=True)[:META_EVENTS_SHOWN]


def _newest(queue: str, tx: Transaction) -> list[Message]:
    known = tx.queues.named_to_read(queue)
    messages = [] if known is None else tx.messages.newest(known, META_EVENTS_SHOWN)
    return [stored.image() for stored in messages if stored.sound]


def _change(domain: str, message: Message) -> dict[str, Any]:
    event = message.value
    ((action, fields),) = event["action"].items()
    words = [f"{name} {_words(value)}" for name, value in fields.items()]
    return {
        "key": message.key,
        "domain": domain,
        "at": message.created,
        "by": event["principal"],
        "action": action,
        "said": ", ".join(words),
    }


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name} {_words(item)}".strip() for name, item in value.items())
    return str(value)


def change(visit: Visit) -> Goto:
    """Publish the event of a change, as the user."""
    action, domain = visit.needed("do"), visit.needed("domain")
    visit.require("publish", "space", {"space": meta_of(domain)})
    event = {action[0].upper() + action[1:]: CHANGES[action](visit)}
    sent = visit.room.flows.publish(meta_of(domain), event)
    undo = None
    if action in SWITCHES:
        fields = {"do": SWITCHES[action], "domain": domain, "arc": visit.needed("arc")}
        undo = Undo(
            f"{SWITCHES[action].removesuffix('Arc').capitalize()} it again", visit.here(), tuple(fields.items())
        )
    return Goto(visit.here(), f"{action} in {domain}: {sent.key}.", undo)


def _arc_said(visit: Visit) -> dict[str, Any]:
    kind, pattern = visit.form.get("func", ""), visit.form.get("pattern", "").strip()
    functions = {
        "Select": {"pat": pattern or "any"},
        "Transform": {"srcPat": pattern, "resultPat": visit.form.get("result", "").strip()},
        "Merge": {},
    }
    if kind not in functions:
        raise EntryInvalid(where="func", why=f"one of {', '.join(functions)}")
    names = {"arcName": visit.needed("arc"), "srcNode": visit.needed("source"), "destNode": visit.needed("target")}
    return {**names, "func": {kind: functions[kind]}}


# --- the picture ---


def placed(graph: GraphShown) -> dict[str, Box]:
    """The positions of spaces in columns: each is right of its predecessors, except in a cycle."""
    if len(graph.spaces) > DRAWN_SPACES_MAX:
        return {}
    column = {space.name: 0 for space in graph.spaces}
    arcs = [arc for arc in graph.arcs if arc.source in column and arc.target in column and arc.source != arc.target]
    for _ in column:
        moved = False
        for arc in arcs:
            wanted = column[arc.source] + 1
            if column[arc.target] < wanted < len(column):
                column[arc.target], moved = wanted, True
        if not moved:
            break
    used = {number: index for index, number in enumerate(sorted(set(column.values())))}
    rows: dict[int, int] = {}
    places = {}
    for space in graph.spaces:
        across = used[column[space.name]]
        down = rows.get(across, 0)
        rows[across] = down + 1
        places[space.name] = Box(space.name, 10 + across * ACROSS, 10 + down * DOWN, space.waiting)
    return places


def drawn(graph: GraphShown, boxes: Mapping[str, Box], rates: Mapping[str, float | None]) -> Sequence[Line]:
    return [_line(arc, boxes, rates) for arc in graph.arcs if arc.source in boxes and arc.target in boxes]


def _line(arc: ArcShown, boxes: Mapping[str, Box], rates: Mapping[str, float | None]) -> Line:
    source, target = boxes[arc.source], boxes[arc.target]
    x, y = source.x + WIDTH, source.y + HEIGHT // 2
    end, low = target.x, target.y + HEIGHT // 2
    bend = max(abs(end - x) // 2, 40)
    path = f"M{x} {y}C{x + bend} {y} {end - bend} {low} {end} {low}"
    rate = rates.get(arc.key)
    rate_text = "" if rate is None else f"{rate * 60:.1f}/min"
    label = arc.name if len(arc.name) <= NAME_SHOWN else f"{arc.name[: NAME_SHOWN - 1]}…"
    return Line(path, (x + end) // 2, (y + low) // 2, arc.name, label, rate_text, arc.state == "enabled")


PAGE = Page(
    "/flows", "flows.html", show, "look", None, dict.fromkeys(CHANGES, change), label="Flows", group="operators"
)
