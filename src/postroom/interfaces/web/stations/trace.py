"""The history of a message: its stops, causes and effects, and the form as it left each stop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from postroom.interfaces.web.page import Page
from postroom.interfaces.web.stations.form_grid import Mode, first_fields, grid, shown_texts
from postroom.interfaces.web.visit import Visit
from postroom.limits import BODY_SHOWN_CHARS, CAUSES_NESTED_MAX, CAUSES_OPEN_MAX
from postroom.model.message import Message
from postroom.model.place import place_of
from postroom.stations.forms.filling import values
from postroom.stations.mail.editions import Valued
from postroom.stations.mail.story import Story, StoryMessage
from postroom.stations.places.desk import GET
from postroom.stations.places.names import is_mailbox, station_of
from postroom.store.kernel.journal import Event

#: How a message came to a place: what somebody did, and what was done.
_DONE = {
    "create": ("made it", "made"),
    "copy": ("copied it", "copied"),
    "send": ("sent it", "sent"),
    "publish": ("published it", "published"),
    "ship": ("shipped it", "shipped"),
    "get": ("got it", "got"),
    "take-back": ("took it back", "taken back"),
}
_MACHINES = ("procedure ", "counter ", "rule ", "arc ", "engine", "sphere ")


@dataclass(frozen=True)
class Act:
    """What a procedure, a counter or a rule did with a message, and what else it worked on."""

    kind: str  # procedure, counter, rule
    name: str
    at: datetime
    did: Sequence[str]  # in words
    others: Sequence[str]  # keys of those that it took together with this one
    made: Sequence[str]  # keys


@dataclass(frozen=True)
class Node:
    """A message in a tree of causes, with those that it caused."""

    told: StoryMessage
    led_to: list[Node]

    @property
    def count(self) -> int:
        """The number of messages below it."""
        return sum(1 + node.count for node in self.led_to)

    def has(self, key: str) -> bool:
        return self.told.key == key or any(node.has(key) for node in self.led_to)


@dataclass
class Write:
    """What someone wrote on a form at a time."""

    at: datetime
    by: str
    fields: list[str]


@dataclass
class Stop:
    """A stay at one place."""

    place: str
    since: datetime
    by: str
    until: datetime | None = None
    edition: int | None = None  # as it left, or is
    written: dict[str, str] = field(default_factory=dict)  # by field, who wrote it
    writes: list[Write] = field(default_factory=list)  # after it was made, in order
    verb: str = ""
    acts: list[Act] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return max(((self.until or datetime.now(UTC)) - self.since).total_seconds(), 0.0)

    def note(self, event: Event, fields: Iterable[str]) -> None:
        """Each writing has its own time."""
        self.written |= dict.fromkeys(fields, event.by)
        if event.verb != "create":
            self.writes.append(Write(event.time, event.by, list(fields)))

    @property
    def did(self) -> str:
        """What somebody did, such as "shipped it"; empty for what has no word."""
        return _DONE.get(self.verb, ("", ""))[0]

    @property
    def done(self) -> str:
        return _DONE.get(self.verb, ("", self.verb))[1]

    @property
    def is_mailbox(self) -> bool:
        return self.place.startswith("mailbox:")

    @property
    def name(self) -> str:
        return self.place.removeprefix("mailbox:")

    @property
    def length(self) -> str:
        """A width that grows with the logarithm of the stay."""
        return "longer" if self.seconds >= 86_400 else "long" if self.seconds >= 600 else ""

    @property
    def is_machine(self) -> bool:
        return is_machine(self.by)


def is_machine(who: str) -> bool:
    return who.startswith(_MACHINES)


def stops(visit: Visit, key: str) -> list[Stop]:
    """The places where a message has been, from its events."""
    return _stops(visit.room.journal.trace_values(key))


def _stops(events: Sequence[Valued]) -> list[Stop]:
    stops: list[Stop] = []
    edition: int | None = None
    for valued in events:
        event = valued.event
        place = place_of(event.target)
        here = stops[-1] if stops else None
        if here is not None and here.until is None and (place != here.place and (place or _leaves(event.verb))):
            here.until = event.time
        if place is not None and (here is None or place != here.place or here.until is not None):
            here = Stop(place, event.time, event.by, edition=edition, verb=_verb(event))
            stops.append(here)
        edition = valued.edition or edition
        if here is not None:
            left = stops[-2] if event.verb == "ship" and len(stops) > 1 else here
            left.acts += _acts(event)
            here.edition = edition
            if valued.values:
                here.note(event, valued.values)
    return stops


def _verb(event: Event) -> str:
    """What was done; mail that comes to another station than it was for is taken back."""
    source, target = event.source or "", event.target or ""
    is_back = event.verb == GET and is_mailbox(source) and station_of(source) != station_of(target)
    return "take-back" if is_back else event.verb


def _acts(event: Event) -> list[Act]:
    """What a program did in an event; empty for a person."""
    kind, _, name = event.by.partition(" ")
    detail = event.detail or {}
    if kind not in ("procedure", "counter", "rule") or not name:
        return []
    words = {"create": "made it", "get": "got it", "ship": f"shipped it to {detail.get('to', '')}"}
    did = [f"wrote {', '.join(map(str, detail['fields']))}"] if detail.get("fields") else []
    did += [words[event.verb]] if event.verb in words else []
    if "dossier" in detail:
        did.append(f"put it into the dossier {detail['dossier']}")
    others, made = ([str(key) for key in detail.get(name, ())] for name in ("with", "made"))
    return [Act(kind, name, event.time, did, others, made)]


def _tree(story: Story) -> list[Node]:
    """Each message below the first of its causes that is visible to the user; nesting has a limit."""
    roots: list[Node] = []
    places: dict[str, tuple[Node, int, list[Node]]] = {}  # by key: the node, its level, and the list that it is in
    for told in story.messages:
        node, level, beside = Node(told, []), 0, roots
        cause = next((places[key] for key in told.causes if key in places), None)
        if cause is not None:
            above, depth, its_list = cause
            is_deep = depth >= CAUSES_NESTED_MAX
            level, beside = (depth, its_list) if is_deep else (depth + 1, above.led_to)
        beside.append(node)
        places[told.key] = node, level, beside
    return roots


def _leaves(verb: str) -> bool:
    return verb in ("take", "receive", "delete", "forget", "withdraw", "remove", "hand-over", "handed-over", "discard")


def show(visit: Visit) -> Mapping[str, Any]:
    key = visit.names["key"]
    line = stops(visit, key)
    story = _seen(visit, key, visit.room.journal.trace(key, causes=True))
    chosen = min(visit.number("stop", max(len(line), 1), 1_000_000), max(len(line), 1))
    message = visit.message(key, line[chosen - 1].edition if line else None)
    station = line[-1].place if line and line[-1].until is None else None
    return {
        "key": key,
        "type": next((told.type for told in story.messages if told.key == key), None),
        "line": line,
        "chosen": chosen,
        "place": visit.room.journal.locate(key),
        "story": story,
        "tree": _tree(story),
        "stations": visit.room.stations.all(),
        "is_machine": is_machine,
        "is_short": len(story.messages) <= CAUSES_OPEN_MAX,
        "acts": _with_reasons(visit, line[chosen - 1].acts) if line else [],
        "begun": story.messages[0].events[0].time if story.messages and story.messages[0].events else None,
        "total": (line[-1].until or datetime.now(UTC)) - line[0].since if line else None,
        "shown": None if message is None else _shown(visit, message, line[chosen - 1] if line else None),
        "open_at": station if station in visit.stations else None,
    }


def _with_reasons(visit: Visit, acts: Sequence[Act]) -> list[tuple[Act, list[tuple[str, str, list[str]]] | None]]:
    """Each act with the current conditions of its procedure, for users who may see definitions."""
    known = {}
    if visit.may("look", "*") and any(act.kind == "procedure" for act in acts):
        known = {kept.procedure.name: kept.procedure for kept in visit.room.stations.procedures()}

    def reason(act: Act) -> list[tuple[str, str, list[str]]] | None:
        procedure = known.get(act.name) if act.kind == "procedure" else None
        if procedure is None:
            return None
        return [
            (precondition.name, precondition.type, [str(line) for line in precondition.lines])
            for precondition in procedure.preconditions
        ]

    return [(act, reason(act)) for act in acts]


def _seen(visit: Visit, key: str, story: Story) -> Story:
    """The part of a story that the user may see: any sender can name a message as a cause."""
    told = tuple(told for told in story.messages if told.key == key or visit.may_follow(told.key))
    return replace(story, messages=told, complete=story.complete and len(told) == len(story.messages))


def _shown(visit: Visit, message: Message, stop: Stop | None) -> dict[str, Any]:
    """A form as it left a place, with the changes made there; or the body of another message."""
    edition = None if message.corrupt else visit.room.stations.form_of(message)
    if edition is None:
        body = "" if message.corrupt else message.body
        return {"grid": None, "body": body[:BODY_SHOWN_CHARS], "is_cut": len(body) > BODY_SHOWN_CHARS, "first": []}
    fields = values(edition.form, message.body)
    marks = {name: "machine" if is_machine(who) else "person" for name, who in (stop.written if stop else {}).items()}
    drawn = grid(edition.form, Mode.SHOW, shown_texts(fields), version=edition.version, changed_by=marks)
    return {"grid": drawn, "body": None, "is_cut": False, "first": first_fields(edition.form, fields, 3)}


PAGE = Page("/trace/{key}", "trace.html", show, "look", "key")
