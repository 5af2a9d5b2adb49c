"""Failures by cause: error messages, dead letters, and errors of procedures.

A failed message of a queue can be edited, tried and sent again. Forms at which a procedure failed are offered to it
again when someone changes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, partial
from hashlib import blake2b
from typing import Any

from postroom.engine.steps.failures import initial_of
from postroom.errors import (
    EntryInvalid,
    MessageGone,
    MessageNotWaiting,
    MessageUnknown,
    PostroomError,
    StoreError,
)
from postroom.interfaces.web.asking import Asking
from postroom.interfaces.web.operating import body_view
from postroom.interfaces.web.operating.overview import dead_letters, oldest_messages, picture
from postroom.interfaces.web.page import Again, Goto, Page
from postroom.interfaces.web.rendering import count, counted
from postroom.interfaces.web.visit import Visit
from postroom.limits import FAILURES_SHOWN_MAX
from postroom.model.body import Format
from postroom.model.message import Draft, Message
from postroom.model.progress import OnProgress
from postroom.model.xml import parse_xml
from postroom.room import Postroom
from postroom.rules.entries import settable
from postroom.stations.places.names import mailbox
from postroom.stations.procedures.errors import DOSSIER
from postroom.stations.procedures.inspection import ProcedureFailed
from postroom.store.kernel.deliveries import FAILED_IN, FAILED_WHY, FAILURE
from postroom.store.kernel.transaction import Transaction

PATH = "/failures"
_CULPRITS = {"rules": "rule", "arcs": "arc", "counters": "counter"}
_VARIABLE = re.compile(r"\"[^\"]*\"|'[^']*'|\u201c[^\u201d]*\u201d|\b\d[\w.,:-]*", re.ASCII)


@dataclass(frozen=True)
class Failed:
    """A failed message: its description, and where it is."""

    key: str  # of the error message, or of the dead letter
    waits_in: str
    at: datetime
    what: str
    code: str
    rule: str
    place: str  # in the program
    queue: str  # where it failed; of a procedure its station
    origin: str | None  # the message that failed, if it is another
    forms: tuple[str, ...] | None = None  # with which a procedure has failed
    culprit: str = ""  # what is named in ``rule``: a rule, an arc, a counter or a procedure; "" if nobody knows

    @property
    def cause(self) -> tuple[str, str, str]:
        """What failures are grouped by: the description without its variable parts, the code, and the rule."""
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


@dataclass(frozen=True)
class Failures:
    """The failures, and the queues with more than one page groups: how many, and after which key."""

    several: Sequence[Failed]
    more: Mapping[str, tuple[int, str]]
    missing: Mapping[str, str] = field(default_factory=dict)  # nodes that do not answer, and why


def failures(room: Postroom) -> list[Failed]:
    """All that wait in queues for errors and for dead letters, and the errors of procedures."""
    return list(found(room).several)


def found(room: Postroom, only: str | None = None, after: str | None = None) -> Failures:
    """The failures of a room, or those of one queue after a key."""
    seen = picture(room)
    rows: list[Failed] = []
    more: dict[str, tuple[int, str]] = {}
    first = oldest_messages(room, [queue.name for queue in seen.queues if queue.waiting])
    names = {*seen.errors, *dead_letters(room, seen, first)}
    takers = cache(partial(_taker, room))
    for queue in seen.queues:
        is_asked = only in (None, queue.name)
        if is_asked and queue.waiting and queue.name in names:
            waiting = room.queues.peek(queue.name, limit=FAILURES_SHOWN_MAX, after=after)
            read = [failed for message in waiting if (failed := failed_of(message)) is not None]
            rows += [replace(failed, culprit=_CULPRITS.get(takers(failed.queue), "")) for failed in read]
            if waiting.next is not None:
                more[queue.name] = (queue.waiting, waiting.next)
    if only is not None:
        return Failures(rows, more)
    errors = room.stations.procedure_errors()
    return Failures([*rows, *map(_of_procedure, errors)], more, errors.missing)


def _of_procedure(error: ProcedureFailed) -> Failed:
    cause = (error.description, error.code, error.procedure, "", error.station)
    return Failed(error.key, error.station, error.at, *cause, None, error.messages, "procedure")


def _taker(room: Postroom, queue: str) -> str:
    """Who takes the messages of a queue: rules, arcs or counters; "" if a program receives them."""

    def work(tx: Transaction) -> str:
        present = tx.queues.named_to_read(queue)
        taker = None if present is None else tx.queues.watcher(present)
        return (taker or "").partition(" ")[0]  # "arcs with state"

    return room.store.read(work)


def _properties(message: Message) -> Mapping[str, Any]:
    return {} if message.corrupt else message.properties


def failed_of(message: Message) -> Failed | None:
    """The failure that a dead letter or an error message describes; None if it is neither."""
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
    """The causes, most frequent first."""
    groups: dict[tuple[str, str, str], list[Failed]] = {}
    for failure in failed:
        groups.setdefault(failure.cause, []).append(failure)
    ordered = sorted(groups.values(), key=lambda group: (-len(group), group[0].cause))
    return [Cause(number, group) for number, group in enumerate(ordered, 1)]


# --- the page ---


@dataclass(frozen=True)
class TryAll:
    """A dry run of all failures of a cause, with the same edit."""

    key: str  # of one of them
    find: str
    put: str


@dataclass(frozen=True)
class TriedAll:
    """The result of a dry run: a fingerprint for each that works, and the reason for each that would fail again."""

    works: Sequence[tuple[Failed, str]]
    refused: Sequence[tuple[str, str]]

    def __len__(self) -> int:
        return len(self.works) + len(self.refused)


def show(visit: Visit) -> Mapping[str, Any]:
    return _context(visit, None)


def _seen(visit: Visit) -> Failures:
    """The failures for the address."""
    return found(visit.room, visit.query.get("of") or None, visit.query.get("after") or None)


def _context(visit: Visit, tried: Mapping[str, Any] | None) -> Mapping[str, Any]:
    seen = _seen(visit)
    groups = causes(seen.several)
    cause, failed = _chosen(visit, groups)
    keys = [] if cause is None else [failure.key for failure in cause.failed]
    at = keys.index(failed.key) if failed is not None else 0
    is_sent = failed is not None and failed.forms is None  # else forms are written on
    asking = _asking(visit)
    is_over = asking is not None and asking.wait()
    return {
        "count": len(seen.several),
        "more": {name: (number, visit.here(of=name, after=key)) for name, (number, key) in seen.more.items()},
        "missing": seen.missing,
        "is_part": "of" in visit.query,
        "groups": visit.part("causes", groups),
        "cause": cause,
        "failed": failed,
        "others": visit.part("row", [] if cause is None else cause.failed),
        "at": at + 1,
        "before": keys[at - 1] if at > 0 else None,
        "after": keys[at + 1] if at + 1 < len(keys) else None,
        "input": _input(visit, failed) if failed is not None and is_sent else None,
        "lines": [] if failed is None else _lines(visit, failed),
        "may": (may := failed is not None and _may(visit, failed)),
        "forms": _forms(visit, failed) if failed is not None and may else {},
        "tried": tried,
        "asking": asking if not is_over else None,
        "all": asking.result() if asking is not None and is_over else None,
        "edit": asking.about if asking is not None else TryAll("", "", ""),
        "effects": visit.part("effects", _effects(visit)),
        "live": "room",
    }


def _asking(visit: Visit) -> Asking | None:
    """The dry run of all that the address names."""
    asking = visit.askings.known(visit.user, visit.query.get("asked", ""))
    return asking if asking is not None and isinstance(asking.about, TryAll) else None


def _chosen(visit: Visit, groups: Sequence[Cause]) -> tuple[Cause | None, Failed | None]:
    """The failure that the address names, or the first."""
    key = visit.query.get("key")
    for cause in groups:
        for failed in cause.failed:
            if key in (None, failed.key):
                return cause, failed
    return None, None


def _input(visit: Visit, failed: Failed) -> dict[str, Any]:
    """The failed message as it was, and as it is in the field."""
    draft = _draft_of(visit.room, failed)
    text = visit.form.get("body", draft.body).replace("\r\n", "\n")
    shown = body_view.shown_text(draft.body, Format(draft.format))
    return {"draft": draft, "text": text, "shown": shown}


def _draft_of(room: Postroom, failed: Failed) -> Draft:
    """The failed message as a draft; what is no longer stored is taken from its error message."""
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
    """A message as its sender would send it, without computed and system properties, which are set again."""
    if message.corrupt:
        raise EntryInvalid(where="key", why=f"message {message.key} is damaged, and cannot be sent again")
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
    """The lines of the failed rule, with the failing one marked; none if the rule has changed since."""
    number = failed.place.rpartition(":")[0].rpartition(":")[2]
    for entry in visit.room.definitions.catalog() if failed.rule and failed.forms is None else ():
        body = entry.definition.get("body")
        if entry.what == "rule" and entry.name == failed.rule and isinstance(body, Mapping):
            first = int(body["line"])
            return [
                (first + index, line, str(first + index) == number)
                for index, line in enumerate(str(body["text"]).splitlines())
            ]
    return []


def _forms(visit: Visit, failed: Failed) -> dict[str, tuple[str, str]]:
    """By form with which a procedure has failed, what can be done with it at the station: a link, and its address."""
    station, links = failed.queue, {}
    for key in failed.forms or ():
        if visit.is_at(key, station):
            links[key] = "Write on it", visit.address("/desk/{station}/forms/{key}", {"station": station, "key": key})
        elif visit.is_at(key, mailbox(station)):
            links[key] = "Get it first", visit.address("/desk/{station}", {"station": station}, mail=key)
    return links


def _may(visit: Visit, failed: Failed) -> bool:
    try:
        _require(visit, failed)
    except PostroomError:
        return False
    return True


def _require(visit: Visit, failed: Failed) -> None:
    """Raise unless the user may remove the failure and send the edited message."""
    if failed.forms is not None:
        visit.require("work", "station", {"station": failed.queue})
        return
    visit.require("manage", "queue", {"queue": failed.waits_in})
    visit.require("send", "queue", {"queue": failed.queue})


def _effects(visit: Visit) -> list[Any]:
    effects = visit.room.engine.outbox() if visit.may("operate", "*") else []
    return [effect for effect in effects if effect.state == "failed"]


# --- what its buttons do ---


def _found(visit: Visit) -> Failed:
    failed = failed_of(visit.room.journal.show(visit.needed("key")))
    if failed is None:
        raise EntryInvalid(where="key", why="it is no error message and no dead letter")
    return failed


def _draft(visit: Visit, failed: Failed) -> Draft:
    """The message to send: the body in the field, and everything else from the failed message."""
    draft = _draft_of(visit.room, failed)
    text = visit.form.get("body")
    body = draft.body if text is None else text.replace("\r\n", "\n")
    return Draft.of(body, draft.format, None, None)._replace(type=draft.type, properties=draft.properties)


def try_one(visit: Visit) -> Again:
    """A dry run; changes nothing."""
    failed = _found(visit)
    _require(visit, failed)
    draft = _draft(visit, failed)
    return Again(_context(visit, _outcome(visit, failed, draft) | {"sign": _sign(failed, draft)}), 200)


def _sign(failed: Failed, draft: Draft) -> str:
    """A fingerprint of what was tried, checked when it is sent."""
    content = json.dumps([failed.key, *draft]).encode()
    return blake2b(content, digest_size=8).hexdigest()


def _outcome(visit: Visit, failed: Failed, draft: Draft) -> dict[str, Any]:
    tried = visit.room.definitions.try_message(
        failed.queue, body=draft.body, format=draft.format, type=draft.type, properties=json.loads(draft.properties)
    )
    actions = [] if tried is None else tried.as_dict()["actions"]
    works = not any(action["action"] == "error" for action in actions)
    taker = None if tried is not None else _taker(visit.room, failed.queue)  # of a dry run that says nothing
    return {"works": works, "taker": taker, "actions": actions, "queue": failed.queue}


def retry_one(visit: Visit) -> Goto | Again:
    """Send what was tried. If it has changed since, it is only tried again."""
    failed = _found(visit)
    _require(visit, failed)
    draft = _draft(visit, failed)
    if visit.form.get("tried") != _sign(failed, draft):
        return Again(try_one(visit).context, 409)
    _send_again(visit, failed, draft)
    return Goto(visit.address(PATH), f"Sent again to {failed.queue}. The failure {failed.key} is done.")


def _send_again(visit: Visit, failed: Failed, draft: Draft) -> None:
    """Remove the failure and send, in one commit. A second user finds it gone."""
    visit.room.consumers.redrive(failed.waits_in, to=failed.queue, keys=[failed.key], edit=lambda _: draft)


def _all(visit: Visit) -> list[Failed]:
    """The failures with the cause in the form that the user may send again."""
    key = visit.needed("key")
    for cause in causes(_seen(visit).several):
        if any(failure.key == key and failure.forms is None for failure in cause.failed):
            for failure in cause.failed:
                _require(visit, failure)
            return list(cause.failed)
    raise MessageNotWaiting(key=key, those="the failures")


def _each_tried(
    visit: Visit, edit: TryAll, failed: Sequence[Failed], progress: OnProgress
) -> Iterator[tuple[Failed, str | None, str]]:
    """For each failure, the fingerprint of what would be sent, or why it would fail again."""
    for number, failure in enumerate(failed):
        progress(number, len(failed))
        try:
            draft = _with_edit(visit.room, failure, edit)
            outcome = _outcome(visit, failure, draft)
        except PostroomError as error:
            yield failure, None, str(error)
            continue
        why = next((action["body"] for action in outcome["actions"] if action["action"] == "error"), "")
        yield failure, _sign(failure, draft) if outcome["works"] else None, _description(why)


def _with_edit(room: Postroom, failure: Failed, edit: TryAll) -> Draft:
    draft = _draft_of(room, failure)
    if not edit.find:
        return draft
    body = draft.body.replace(edit.find, edit.put)
    return Draft.of(body, draft.format)._replace(type=draft.type, properties=draft.properties)


def _description(body: str) -> str:
    match = re.search(r"<description>(.*?)</description>", body, re.ASCII | re.DOTALL)
    return match[1] if match else body[:200]


def try_all(visit: Visit) -> Goto:
    """A dry run for all failures of a cause, with the same edit; changes nothing."""
    failed = _all(visit)
    edit = TryAll(visit.needed("key"), visit.form.get("find", ""), visit.form.get("put", ""))
    asking = visit.begun(edit, partial(_tried, visit, edit, failed))
    return Goto(visit.again(key=edit.key, asked=asking.id))


def _tried(visit: Visit, edit: TryAll, failed: Sequence[Failed], progress: OnProgress) -> TriedAll:
    told = list(_each_tried(visit, edit, failed, progress))
    works = [(failure, sign) for failure, sign, _ in told if sign is not None]
    return TriedAll(works, [(failure.key, why) for failure, sign, why in told if sign is None])


def retry_all(visit: Visit) -> Goto:
    """Send those that worked in the dry run; the others stay."""
    edit, tried = _tried_before(visit)
    for failure, _ in tried.works:
        _require(visit, failure)
    sent, why = 0, ""
    for failure, sign in tried.works:
        try:
            draft = _with_edit(visit.room, failure, edit)
            if _sign(failure, draft) == sign:
                _send_again(visit, failure, draft)
                sent += 1
        except StoreError:
            raise
        except PostroomError as error:  # someone was faster, or the queue has changed
            why = str(error)
    left = len(tried) - sent
    stays = f", {count(left)} {'was' if left == 1 else 'were'} not" if left else ""
    stays += f" ({why[:200]})" if why else ""
    what = tried.works[0][0].cause[0] if tried.works else "none would work"
    return Goto(visit.address(PATH), f"Sent {counted(sent, 'message')} again{stays}: {what[:120]}.")


def _tried_before(visit: Visit) -> tuple[TryAll, TriedAll]:
    """The finished dry run that the address names, which must have the edit in the form."""
    asking = _asking(visit)
    if asking is not None and asking.is_over:
        edit, tried = asking.about, asking.result()
        if (edit.find, edit.put) == (visit.form.get("find", ""), visit.form.get("put", "")):
            return edit, tried
    raise EntryInvalid(where="asked", why="all are sent again after a dry run with the same edit")


def stop(visit: Visit) -> Goto:
    """Stop the dry run."""
    was_asked = visit.askings.stop(visit.user, visit.query.get("asked", ""))
    return Goto(visit.again(asked=None), "Stopped." if was_asked else "It was over already.")


def file_away(visit: Visit) -> Goto:
    """Remove an error of a procedure from the station's dossier of errors; the form stays at the station."""
    station, key = visit.needed("station"), visit.needed("key")
    visit.require("work", "station", {"station": station})
    visit.room.stations.admitted(station).remove_from_dossier(DOSSIER, key)
    return Goto(visit.address(PATH), f"Took {key} out of the dossier {DOSSIER} of {station}.")


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
    {
        "try": try_one,
        "retry": retry_one,
        "try-all": try_all,
        "retry-all": retry_all,
        "stop": stop,
        "done": file_away,
        "effect": retry_effect,
    },
    label="Failures",
    group="operators",
)
