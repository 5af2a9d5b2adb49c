"""A queue: its messages with a search by properties; send, hold, enable, password and policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from postroom.errors import EntryInvalid, PostroomError, QueueNotSingle, QueueOwned
from postroom.interfaces.web.operating.body_view import property_text
from postroom.interfaces.web.page import Goto, Page, Undo
from postroom.interfaces.web.rendering import counted, listed
from postroom.interfaces.web.visit import Visit
from postroom.limits import DESK_ROWS, SEARCHED_MESSAGES_MAX
from postroom.model.body import Format, parse_json
from postroom.model.message import Message
from postroom.queues.tree.addressing import Names, may_be_held, names_of, one_to_read, queues_of
from postroom.store.kernel.policies import DEAD_LETTERS, DROP, FREE, REFUSE, RETRIES, STRICT, Policy
from postroom.store.kernel.queues import OWNED
from postroom.store.kernel.transaction import Transaction

PATH = "/queues/{queue...}"
#: How each field of a policy is written on the page: a number of seconds, a whole number, a name, or one of some words.
FIELDS: Mapping[str, tuple[str, Any]] = {
    "lease": ("Lease, seconds", float),
    "attempts": ("Attempts", int),
    "backoff": ("Backoff, seconds", float),
    "backoff_max": ("Longest backoff, seconds", float),
    "dead_letters": ("Queue for dead letters", str),
    "order": ("Order", (FREE, STRICT)),
    "by": ("One after another by the property", str),
    "expired": ("What has expired", (DROP, DEAD_LETTERS)),
    "max_messages": ("Most messages", int),
    "max_bytes": ("Most bytes", int),
    "max_age": ("Greatest age, seconds", float),
    "over": ("What is over", (REFUSE, DEAD_LETTERS)),
    "retry": ("Failures that are tried again", RETRIES),
}


def show(visit: Visit) -> Mapping[str, Any]:
    queue = visit.names["queue"]
    counts = visit.room.queues.count(queue).queues
    rows = _looked_through(visit)
    takes = visit.room.store.read(partial(_takes, names_of((queue,))))
    return {
        "queue": queue,
        "counts": counts,
        "waiting": sum(counted.unprocessed for counted in counts),
        "kept": sum(counted.processed for counted in counts),
        "is_queue": [counted.queue for counted in counts] == [queue],
        "held": sorted({counted.hold.label for counted in counts if counted.hold.label}),
        "rows": [_row(message) for message in rows.messages],
        "looked": rows.looked,
        "next": None if rows.next is None else visit.again(after=rows.next),
        "first": visit.again(after=None) if visit.query.get("after") else None,
        "processed": "processed" in visit.query,
        "is_asked": _asked(visit),
        "asked": {name: visit.query.get(name, "") for name in ("property", "value", "text")},
        "may_send": takes.messages and visit.may("send", *_names(visit)),
        "may_manage": (may_manage := visit.may("manage", *_names(visit))),
        "may_hold": takes.holds and may_manage,
        "needs_password": visit.room.queues.has_password(queue),
        "policy": _policy(visit) if len(counts) == 1 and takes.policy else None,
        "formats": [choice.value for choice in Format],
        "live": "room" if visit.may("look", "*") else (),
    }


class Takes(NamedTuple):
    """What a queue or level takes from whoever has the right."""

    messages: bool
    holds: bool
    policy: bool


def _takes(names: Names, tx: Transaction) -> Takes:
    """A level takes no messages, only its queues do; queues of stations and of spheres are changed by these alone."""
    queues = queues_of(tx, names)
    try:
        one_to_read(tx, names)
    except (QueueNotSingle, QueueOwned):
        takes_messages = False
    else:
        takes_messages = True
    return Takes(takes_messages, all(map(may_be_held, queues)), not any(queue.kind in OWNED for queue in queues))


def _names(visit: Visit) -> tuple[str, ...]:
    """The first queue, by any of its names; the right is checked again at each action."""
    return visit.room.access.names(visit.names["queue"])[0]


def _asked(visit: Visit) -> bool:
    return any(visit.query.get(name) for name in ("property", "text"))


class Found(NamedTuple):
    """A page of search results, and where the next one starts."""

    messages: list[Message]
    looked: int
    next: str | None


def _looked_through(visit: Visit) -> Found:
    """Search until a page is full or a limit is reached; the next page continues there."""
    queue, after = visit.names["queue"], visit.query.get("after") or None
    listing_of = visit.room.queues.history if "processed" in visit.query else visit.room.queues.peek
    fitting: list[Message] = []
    looked = 0
    while True:
        listing = listing_of(queue, limit=DESK_ROWS, after=after)
        page = listing.messages
        fitting += _searched(visit, page)
        looked, after = looked + len(page), listing.next
        if after is None or len(fitting) >= DESK_ROWS or looked >= SEARCHED_MESSAGES_MAX:
            return Found(fitting, looked, after)


def _searched(visit: Visit, messages: Iterable[Message]) -> Iterator[Message]:
    name, value, text = (visit.query.get(key, "") for key in ("property", "value", "text"))
    for message in messages:
        if message.corrupt:
            if not _asked(visit):
                yield message
            continue
        if name and (name not in message.properties or (value and property_text(message.properties[name]) != value)):
            continue
        if not text or text in message.body:
            yield message


def _row(message: Message) -> dict[str, Any]:
    if message.corrupt:
        return {"key": message.key, "corrupt": True}
    return {
        "key": message.key,
        "corrupt": False,
        "type": message.type,
        "format": message.format.value,
        "begins": " ".join(message.body[:400].split())[:120],
        "properties": [(name, property_text(value)) for name, value in list(message.properties.items())[:4]],
        "created": message.created,
        "queue": message.queue,
    }


def _policy(visit: Visit) -> list[dict[str, Any]] | None:
    """The fields of a queue's policy; None if it cannot have one."""
    try:
        (policy,) = visit.room.consumers.policy(visit.names["queue"]).values()
    except (PostroomError, ValueError):
        return None
    fields = []
    for name, (label, kind) in FIELDS.items():
        value = getattr(policy, name)
        words = kind if isinstance(kind, tuple) else ()
        fields.append({"name": name, "label": label, "value": _text(value), "words": words})
    return fields


def _text(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


# --- what its buttons do ---


def send(visit: Visit) -> Goto:
    """Send one message as entered."""
    visit.require("send", "queue", visit.names)
    properties = _properties(visit.form.get("properties", ""))
    body, format = visit.form.get("body", "").replace("\r\n", "\n"), visit.form.get("format") or None
    sent = visit.room.queues.send(
        visit.names["queue"],
        body,
        format=format,
        type=visit.form.get("type", "").strip() or None,
        properties=properties,
    )
    return Goto(visit.here(), f"Sent {sent.key}.")


def _properties(text: str) -> dict[str, Any] | None:
    """Properties, one per line: name, colon, and a value that is JSON or text."""
    properties: dict[str, Any] = {}
    for line in filter(str.strip, text.splitlines()):
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise EntryInvalid(where="properties", why="one to a line, with a colon between name and value")
        try:
            known = parse_json(value.strip())
        except PostroomError:
            known = value.strip()
        properties[name.strip()] = known if isinstance(known, (str, int, float, bool, type(None))) else value.strip()
    return properties or None


def hold(visit: Visit) -> Goto:
    visit.require("manage", "queue", visit.names)
    kind = visit.form.get("hold", "")
    held = visit.room.queues.disable(
        visit.names["queue"],
        password=visit.form.get("password", ""),
        input_only=kind == "input only",
        output_only=kind == "output only",
    )
    undo = Undo("Enable what was held", f"{visit.here()}#hold")  # the password is asked for there
    return Goto(visit.here(), _changed("Held", held.changed), undo if held.changed else None)


def enable(visit: Visit) -> Goto:
    visit.require("manage", "queue", visit.names)
    held = visit.room.queues.enable(visit.names["queue"], password=visit.form.get("password", ""))
    return Goto(visit.here(), _changed("Enabled", held.changed))


def _changed(verb: str, names: Sequence[str]) -> str:
    """
    >>> _changed("Held", ["orders"]), _changed("Enabled", [])
    ('Held 1 queue: orders.', 'Enabled 0 queues.')
    """
    return f"{verb} {counted(len(names), 'queue')}{f': {listed(names)}' if names else ''}."


def set_password(visit: Visit) -> Goto:
    """Set the first password of a queue, which is needed to hold it."""
    visit.require("manage", "queue", visit.names)
    visit.room.queues.set_password(visit.names["queue"], password=visit.needed("password"))
    return Goto(visit.here(), f"{visit.names['queue']} has a password: it can be held and enabled.")


def set_policy(visit: Visit) -> Goto:
    """Change some settings of the policy; the others stay."""
    visit.require("manage", "queue", visit.names)
    (known,) = visit.room.consumers.policy(visit.names["queue"]).values()
    changes = dict(_changes(visit, known))
    visit.require("send", "dead_letters", changes)
    changed = visit.room.consumers.set_policy(visit.names["queue"], **changes) if changes else []
    return Goto(
        visit.here(), f"The policy was changed: {', '.join(changes)}." if changed else "The policy is the same."
    )


def _changes(visit: Visit, known: Policy) -> Iterator[tuple[str, Any]]:
    for name, (_, kind) in FIELDS.items():
        value = visit.form.get(name)
        if value is None or value.strip() == _text(getattr(known, name)):
            continue
        try:
            yield name, None if not value.strip() else kind(value.strip()) if isinstance(kind, type) else value.strip()
        except ValueError:
            raise EntryInvalid(where=name, why="a number is expected") from None


PAGE = Page(
    PATH,
    "queue.html",
    show,
    "look",
    "queue",
    {"send": send, "hold": hold, "enable": enable, "password": set_password, "policy": set_policy},
)
