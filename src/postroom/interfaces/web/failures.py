"""Failures by their cause: error messages and dead letters; what failed is edited, tried and sent again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from postroom.engine.steps.failures import initial_of
from postroom.errors import (
    MessageGone,
    MessageUnknown,
    PostroomError,
    QueueFull,
    QueueHeld,
    RedriveRefused,
    RequestInvalid,
)
from postroom.interfaces.web import body_view
from postroom.interfaces.web.overview import oldest_messages, picture
from postroom.interfaces.web.page import Again, Goto, Page
from postroom.interfaces.web.rendering import count
from postroom.interfaces.web.visit import Visit
from postroom.limits import DESK_ROWS, FAILURES_SHOWN_MAX
from postroom.model.body import Format
from postroom.model.message import Draft, Message
from postroom.model.xml import parse_xml
from postroom.room import Postroom
from postroom.rules.entries import settable
from postroom.store.kernel.deliveries import FAILED_IN, FAILED_WHY, FAILURE
from postroom.store.kernel.policies import NO_POLICY
from postroom.store.kernel.transaction import Transaction

PATH = "/failures"
_VARIABLE = re.compile(r"\"[^\"]*\"|'[^']*'|\u201c[^\u201d]*\u201d|\b\d[\w.,:-]*", re.ASCII)


@dataclass(frozen=True)
class Failed:
    """One message that failed: what is said of it, and where it waits."""

    key: str  # of the error message, or of the dead letter
    waits_in: str
    at: datetime
    what: str
    code: str
    rule: str
    place: str  # in the program
    queue: str  # where it failed
    origin: str | None  # the message that failed, if it is another

    @property
    def cause(self) -> tuple[str, str, str]:
        """What failures have in common: the description without its variable parts, the code, and the rule."""
        return _VARIABLE.sub("\u2026", self.what), self.code, self.rule


@dataclass(frozen=True)
class Cause:
    number: int  # from 1, by which an address names it
    failed: Sequence[Failed]

    @property
    def what(self) -> str:
        return self.failed[0].cause[0]

    @property
    def first(self) -> datetime:
        return min(failure.at for failure in self.failed)

    @property
    def last(self) -> datetime:
        return max(failure.at for failure in self.failed)


def failures(room: Postroom) -> list[Failed]:
    """All that wait in queues for errors and for dead letters."""
    seen = picture(room)
    rows: list[Failed] = []
    first = oldest_messages(room, [queue.name for queue in seen.queues if queue.waiting])
    names = {name for name, message in first.items() if FAILED_IN in _properties(message)}
    policies = room.store.read(lambda tx: tx.policies.all())
    names |= {policies.get(queue.name, NO_POLICY).dead_letters_of(queue.name) for queue in seen.queues}
    for queue in seen.queues:
        if queue.waiting and (queue.name in names or queue.name in seen.errors):
            waiting = islice(room.queues.peek(queue.name), FAILURES_SHOWN_MAX)
            rows += [failed for message in waiting if (failed := failed_of(message)) is not None]
    return rows


def _properties(message: Message) -> Mapping[str, Any]:
    return {} if message.corrupt else message.properties


def failed_of(message: Message) -> Failed | None:
    """What a dead letter or an error message says of a failure; None if it is neither."""
    properties = _properties(message)
    if FAILED_IN in properties:
        queue, why = str(properties[FAILED_IN]), str(properties.get(FAILED_WHY, ""))
        return Failed(message.key, message.queue, message.created, why, "dead letter", "", "", queue, None)
    root = _error(message)
    if root is None:
        return None
    text = {child.tag: (child.text or "") for child in root}
    rules = ", ".join(child.text or "" for child in root.findall("rule"))
    initial = root.find("initialMessage")
    origin = None if initial is None else initial.get("key")
    facts = (text.get("description", ""), text.get("code", ""), rules, text.get("place", ""), text.get("queue", ""))
    return Failed(message.key, message.queue, message.created, *facts, origin)


def _error(message: Message) -> Any | None:
    if message.corrupt or message.format is not Format.XML or not message.body.startswith("<error>"):
        return None
    try:
        return parse_xml(message.body)
    except PostroomError:
        return None


def causes(failed: Sequence[Failed]) -> list[Cause]:
    """Most first."""
    groups: dict[tuple[str, str, str], list[Failed]] = {}
    for failure in failed:
        groups.setdefault(failure.cause, []).append(failure)
    ordered = sorted(groups.values(), key=lambda group: (-len(group), group[0].cause))
    return [Cause(number, group) for number, group in enumerate(ordered, 1)]


# --- the page ---


def show(visit: Visit) -> Mapping[str, Any]:
    return _context(visit, None)


def _context(visit: Visit, tried: Mapping[str, Any] | None) -> Mapping[str, Any]:
    every = failures(visit.room)
    groups = causes(every)
    cause, failed = _chosen(visit, groups)
    keys = [] if cause is None else [failure.key for failure in cause.failed]
    at = keys.index(failed.key) if failed is not None else 0
    return {
        "count": len(every),
        "groups": groups,
        "cause": cause,
        "failed": failed,
        "others": [] if cause is None else cause.failed[:DESK_ROWS],
        "left": max(len(keys) - DESK_ROWS, 0),
        "at": at + 1,
        "before": keys[at - 1] if at > 0 else None,
        "after": keys[at + 1] if at + 1 < len(keys) else None,
        "input": None if failed is None else _input(visit, failed),
        "lines": [] if failed is None else _lines(visit, failed),
        "may": failed is not None and _may(visit, failed),
        "tried": tried,
        "effects": _effects(visit),
        "live": "room",
    }


def _chosen(visit: Visit, groups: Sequence[Cause]) -> tuple[Cause | None, Failed | None]:
    """The failure that the address names, or the first."""
    key = visit.query.get("key")
    for cause in groups:
        for failed in cause.failed:
            if key in (None, failed.key):
                return cause, failed
    return None, None


def _input(visit: Visit, failed: Failed) -> dict[str, Any]:
    """What failed, as it was, and as it stands in the field."""
    draft = _draft_of(visit.room, failed)
    text = visit.form.get("body", draft.body).replace("\r\n", "\n")
    shown = body_view.shown_text(draft.body, Format(draft.format))
    return {"draft": draft, "text": text, "shown": shown}


def _draft_of(room: Postroom, failed: Failed) -> Draft:
    """The message that failed, to be sent again; what is no longer kept is in its error message."""
    message = room.journal.show(failed.key)
    if failed.code != "dead letter" or FAILED_IN not in _properties(message):
        try:
            if failed.origin is not None:
                origin = room.journal.show(failed.origin)
                if origin.queue == failed.queue:  # a forged error would show other queues
                    return _again(room, failed.queue, origin)
        except (MessageGone, MessageUnknown):
            pass
        return _inside(message)
    return _again(room, failed.queue, message)


def _again(room: Postroom, queue: str, message: Message) -> Draft:
    """As whoever sends it says it: what the queue computes and what the system sets is made anew."""
    if message.corrupt:
        raise RequestInvalid(where="key", why=f"message {message.key} is damaged, and cannot be sent again")
    properties = {name: value for name, value in message.properties.items() if name not in FAILURE}

    def work(tx: Transaction) -> Mapping[str, Any]:
        target = tx.queues.named_to_read(queue)
        watched = target is not None and target.admission
        return settable(room._parts.programs.plan(tx).target(queue), properties) if watched else properties

    return Draft.of(message.body, message.format, message.type, room.store.read(work))


def _inside(message: Message) -> Draft:
    """The copy of a message in its error message."""
    initial = initial_of(message)
    return Draft.of("") if initial is None or initial.copy is None else initial.copy


def _lines(visit: Visit, failed: Failed) -> list[tuple[int, str, bool]]:
    """The lines of the rule that failed, and which of them; none if it was changed since so that it is not known."""
    number = failed.place.rpartition(":")[0].rpartition(":")[2]
    for entry in visit.room.definitions.catalog() if failed.rule else ():
        body = entry.definition.get("body")
        if entry.what == "rule" and entry.name == failed.rule and isinstance(body, Mapping):
            first = int(body["line"])
            return [
                (first + index, line, str(first + index) == number)
                for index, line in enumerate(str(body["text"]).splitlines())
            ]
    return []


def _may(visit: Visit, failed: Failed) -> bool:
    try:
        _require(visit, failed)
    except PostroomError:
        return False
    return True


def _require(visit: Visit, failed: Failed) -> None:
    """Whoever sends again takes the failure away and sends what was edited."""
    visit.require("manage", "queue", {"queue": failed.waits_in})
    visit.require("send", "queue", {"queue": failed.queue})


def _effects(visit: Visit) -> list[Any]:
    effects = visit.room.engine.outbox() if visit.may("operate", "*") else []
    return [effect for effect in effects if effect.state == "failed"]


# --- what its buttons do ---


def _found(visit: Visit) -> Failed:
    failed = failed_of(visit.room.journal.show(visit.needed("key")))
    if failed is None:
        raise RequestInvalid(where="key", why="it is no error message and no dead letter")
    return failed


def _draft(visit: Visit, failed: Failed) -> Draft:
    """What is sent instead: the body of the field, with all else that the message had."""
    draft = _draft_of(visit.room, failed)
    text = visit.form.get("body")
    body = draft.body if text is None else text.replace("\r\n", "\n")
    return Draft.of(body, draft.format, None, None)._replace(type=draft.type, properties=draft.properties)


def try_one(visit: Visit) -> Again:
    """What would come of it; nothing is changed."""
    failed = _found(visit)
    _require(visit, failed)
    return Again(_context(visit, _outcome(visit, failed, _draft(visit, failed))), 200)


def _outcome(visit: Visit, failed: Failed, draft: Draft) -> dict[str, Any]:
    tried = visit.room.definitions.try_message(
        failed.queue, body=draft.body, format=draft.format, type=draft.type, properties=json.loads(draft.properties)
    )
    actions = [] if tried is None else tried.as_dict()["actions"]
    works = not any(action["action"] == "error" for action in actions)
    return {"works": works, "is_watched": tried is not None, "actions": actions, "queue": failed.queue}


def retry_one(visit: Visit) -> Goto:
    failed = _found(visit)
    _require(visit, failed)
    _send_again(visit, failed, _draft(visit, failed))
    return Goto(visit.address(PATH), f"Sent again to {failed.queue}. The failure {failed.key} is done.")


def _send_again(visit: Visit, failed: Failed, draft: Draft) -> None:
    """In one commit: the failure leaves its queue, and caused what is sent. Who comes second finds it gone."""
    visit.room.consumers.redrive(failed.waits_in, to=failed.queue, keys=[failed.key], edit=lambda _: draft)


def _all(visit: Visit) -> tuple[str, list[Failed]]:
    """The failures of the cause that the form names, each of which the visitor may send again."""
    key = visit.needed("key")
    for cause in causes(failures(visit.room)):
        if any(failure.key == key for failure in cause.failed):
            for failure in cause.failed:
                _require(visit, failure)
            return cause.what, list(cause.failed)
    raise MessageUnknown(key=f"{key} among the failures")


def _each_tried(visit: Visit, failed: Sequence[Failed]) -> Iterator[tuple[Failed, Draft | None, str]]:
    """Each failure of a cause with what would be sent again, or why it would fail again."""
    find, put = visit.form.get("find", ""), visit.form.get("put", "")
    for failure in failed:
        try:
            draft = _draft_of(visit.room, failure)
            if find:
                body = draft.body.replace(find, put)
                draft = Draft.of(body, draft.format)._replace(type=draft.type, properties=draft.properties)
            outcome = _outcome(visit, failure, draft)
        except PostroomError as error:
            yield failure, None, str(error)
            continue
        why = next((action["body"] for action in outcome["actions"] if action["action"] == "error"), "")
        yield failure, draft if outcome["works"] else None, _description(why)


def _description(body: str) -> str:
    match = re.search(r"<description>(.*?)</description>", body, re.ASCII | re.DOTALL)
    return match[1] if match else body[:200]


def try_all(visit: Visit) -> Again:
    """What would come of all of a cause with the same edit; nothing is changed."""
    _, failed = _all(visit)
    told = list(_each_tried(visit, failed[:DESK_ROWS]))
    refused = [(failure.key, why) for failure, draft, why in told if draft is None]
    return Again(_context(visit, {"all": len(told), "refused": refused, "left": len(failed) - len(told)}), 200)


def retry_all(visit: Visit) -> Goto:
    """Send those again that would work; the others stay."""
    what, failed = _all(visit)
    sent = 0
    for failure, draft, _ in _each_tried(visit, failed):
        if draft is not None:
            with suppress(MessageUnknown, MessageGone, QueueFull, QueueHeld, RedriveRefused):  # someone was faster
                _send_again(visit, failure, draft)
                sent += 1
    left = len(failed) - sent
    stays = f", {count(left)} were not" if left else ""
    return Goto(visit.address(PATH), f"Sent {count(sent)} again{stays}: {what[:120]}.")


def retry_effect(visit: Visit) -> Goto:
    visit.require("operate", None, {})
    visit.room.engine.retry(visit.number("effect", 0, 999_999_999))
    return Goto(visit.address(PATH), "The effect has new attempts.")


PAGE = Page(
    PATH,
    "failures.html",
    show,
    "look",
    None,
    {"try": try_one, "retry": retry_one, "try-all": try_all, "retry-all": retry_all, "effect": retry_effect},
    label="Failures",
    group="operators",
)
