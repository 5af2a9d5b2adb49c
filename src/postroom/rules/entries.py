"""What is computed for a message before it enters a queue: typed properties, slices, index entries, echo delay.

The same for a message from outside, from a rule, from an echo queue, and for an error message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from postroom.engine.steps.effects import Document
from postroom.engine.steps.failures import Failure
from postroom.errors import BodyTooLarge, PropertyInvalid, SchemaInvalid
from postroom.limits import BODY_BYTES_MAX, ECHO_SECONDS_MAX, SLICE_KEY_BYTES_MAX
from postroom.model.message import NO_PROPERTIES, check_properties
from postroom.model.moment import in_microseconds
from postroom.model.schema import check_schema
from postroom.model.xmltext import attribute
from postroom.rules.compilation.plan import DUE, Plan, Query, Target
from postroom.rules.compilation.translation import SYSTEM
from postroom.rules.evaluation.saxon_format import Answer, Failed, answer, batch, element, parts
from postroom.rules.evaluation.xquery import Evaluator, QueryFailed, saxon

#: Written by the system alone: a sender or a rule may not claim them.
RESERVED = frozenset(SYSTEM) | {"errors", "echoes"}
_INTEGERS = frozenset(
    "integer int long short byte nonNegativeInteger positiveInteger nonPositiveInteger negativeInteger "
    "unsignedInt unsignedLong unsignedShort unsignedByte".split()
)
_DIGITS_MAX = 20  # of a whole number in its canonical form, with its sign
_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")

Properties = dict[str, Any]


class Entry(NamedTuple):
    """A message that may enter its queue."""

    properties: str
    slices: tuple[tuple[str, str], ...] = ()
    entries: tuple[tuple[str, str], ...] = ()
    delay: int | None = None  # microseconds in an echo queue; a moment, if it is negative


class Candidate(NamedTuple):
    """A message to be admitted: content, the sender's properties, system properties."""

    document: Document
    explicit: Mapping[str, Any]
    system: Mapping[str, Any]


def admit(
    plan: Plan, target: Target, candidates: Sequence[Candidate], evaluator: Evaluator | None = None
) -> list[Entry | Failure]:
    """Compute, in batches, what messages from outside get in a queue."""
    entries: list[Entry | Failure | None] = [_refused(target, candidate) for candidate in candidates]
    todo = [number for number, refusal in enumerate(entries) if refusal is None]
    if not target.entry_queries:
        for number in todo:
            candidate = candidates[number]
            entries[number] = finish(
                plan, target, dict(candidate.explicit), candidate.system, (), candidate.document, evaluator
            )
        return [entry for entry in entries if entry is not None]
    shown = []
    for number in todo:
        document, explicit, _ = candidates[number]
        given = "".join(f"<p{attributes(name, value)}</p>" for name, value in explicit.items())
        shown.append(f"<m>{given}{element(document, plan)}</m>")
    try:
        answers = _asked(plan, target, batch(shown), len(shown), evaluator or saxon())
    except QueryFailed as error:
        why = f"{error.what}{_suspects(target)}"
        places = (query.place(error.line, error.column, error.module) for query in target.entry_queries)
        where = next((str(position) for position in places if position is not None), None)
        return [Failure("system", error.code, why, place=where) if entry is None else entry for entry in entries]
    for number, part in zip(todo, answers, strict=True):
        told = answer(part, plan.mark)
        if told.failed is not None:
            code, why = told.failed.code, told.failed.description
            if not code.startswith("PR"):  # our own say whose it is
                why += _suspects(target, candidates[number].explicit)
            entries[number] = Failure("application", code, why, place=place(target.entry_queries[0], told.failed))
        else:
            entries[number] = _finished(plan, target, told, candidates[number], evaluator)
    return [entry if entry is not None else Failure("system", "PR0000", "no answer") for entry in entries]


def _finished(
    plan: Plan, target: Target, told: Answer, candidate: Candidate, evaluator: Evaluator | None
) -> Entry | Failure:
    try:
        properties = {name: value_of(name, kind, text, target) for name, kind, text in told.properties}
    except PropertyInvalid as error:
        return Failure("message", error.code, str(error))
    return finish(plan, target, properties, candidate.system, tuple(told.entries), candidate.document, evaluator)


def _asked(plan: Plan, target: Target, document: str, count: int, evaluator: Evaluator) -> list[str]:
    """The results of the queries of a queue, message by message."""
    values = [""] * count
    for query in target.entry_queries if count else ():
        answers = parts(evaluator.run(query.text, document), plan.mark)
        values = [before + more for before, more in zip(values, answers, strict=True)]
    return values


def place(query: Query, failed: Failed) -> str | None:
    """The place of an error in the program, if known."""
    known = query.place(failed.line, failed.column, failed.module) if failed.line else None
    return None if known is None else str(known)


def _suspects(target: Target, explicit: Collection[str] = ()) -> str:
    """The names of the properties that may have caused an error: computed ones and the sender's."""
    names = [
        f"property {planned.name}" for planned in target.properties if planned.computed or planned.name in explicit
    ]
    names += [f"the index of {name}" for name in target.indexes]
    return f" ({', '.join(names)})" if names else ""


def attributes(name: str, value: Any) -> str:
    """The rest of a property's tag, and its value."""
    kind = "boolean" if isinstance(value, bool) else "integer" if isinstance(value, int) else "string"
    return f' n="{attribute(name)}" k="{kind}">{attribute(text_of(value))}'


def finish(
    plan: Plan,
    target: Target,
    properties: Properties,
    system: Mapping[str, Any],
    entries: tuple[tuple[str, str], ...],
    document: Document,
    evaluator: Evaluator | None = None,
) -> Entry | Failure:
    """The last part, with all values known: schema, slices, echo, limits."""
    everything = {**properties, **system}
    try:
        written = _said(tuple(everything.items()), tuple(map(type, everything.values())))
    except PropertyInvalid as error:
        return Failure("message", error.code, str(error))
    if target.plain:
        return _checked_size(document) or Entry(written)
    if target.schema is not None:
        try:
            fits = check_schema if evaluator is None else evaluator.fits
            fits(target.schema, document.body if document.format == "xml" else None)
        except SchemaInvalid as error:
            return Failure("message", error.code, str(error))
        except QueryFailed as error:
            return Failure("system", error.code, error.what)
    too_large = _checked_size(document)
    if too_large is not None:
        return too_large
    delay = None
    if target.echo:
        waited = _delay(plan, properties)
        if isinstance(waited, Failure):
            return waited
        delay = waited
    slices = _slices(target, everything)
    return slices if isinstance(slices, Failure) else Entry(written, slices, entries, delay)


def _slices(target: Target, properties: Mapping[str, Any]) -> tuple[tuple[str, str], ...] | Failure:
    """The slices of a message, identified by a property's value."""
    pairs = tuple((name, text_of(properties[property])) for name, property in target.slicings if property in properties)
    for name, value in pairs:
        if len(value.encode()) > SLICE_KEY_BYTES_MAX:
            why = f"a slice of {name} is known by at most {SLICE_KEY_BYTES_MAX} bytes"
            return Failure("message", PropertyInvalid.code, why)
    return pairs


def _checked_size(document: Document) -> Failure | None:
    if len(document.body) > BODY_BYTES_MAX // 4 and len(document.body.encode()) > BODY_BYTES_MAX:
        return Failure("message", BodyTooLarge.code, f"the body is larger than {BODY_BYTES_MAX} bytes")
    return None


def said(properties: Mapping[str, Any]) -> str:
    """Properties as stored."""
    return _said(tuple(properties.items()), tuple(map(type, properties.values())))


@lru_cache(maxsize=10_000)
def _said(properties: tuple[tuple[str, Any], ...], types: tuple[type, ...]) -> str:
    """The canonical JSON of properties; cached, because most messages of a rule have the same.

    Types are part of the cache key, because True equals 1.
    """
    return check_properties(dict(properties)) if properties else NO_PROPERTIES


def value_of(name: str, kind: str | None, text: str, target: Target) -> Any:
    """A property as JSON: booleans and integers as such, everything else in canonical form."""
    if kind is None:
        kind = next((planned.type for planned in target.properties if planned.name == name), "string")
    if kind == "boolean":
        return text == "true"
    if kind in _INTEGERS and len(text) > _DIGITS_MAX:
        raise PropertyInvalid(name=name, why="the whole number does not fit into 64 bits")
    return int(text) if kind in _INTEGERS else text


def text_of(value: Any) -> str:
    """The canonical form of a property's value, which identifies a slice."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def inherited(target: Target, trigger: Mapping[str, Any], properties: Mapping[str, Any]) -> Properties:
    """The properties that a new message inherits from its cause, unless they are set."""
    return {
        planned.name: trigger[planned.name]
        for planned in target.properties
        if planned.inherited and planned.name in trigger and planned.name not in properties
    }


def stored(properties: str) -> Properties:
    return {} if properties == NO_PROPERTIES else json.loads(properties)


def settable(target: Target, properties: Mapping[str, Any]) -> Properties:
    """The properties of a message that a sender may set; fixed ones are computed again."""
    fixed = {planned.name for planned in target.properties if planned.fixed}
    return {name: value for name, value in properties.items() if name not in fixed | RESERVED}


def _refused(target: Target, candidate: Candidate) -> Failure | None:
    for name in candidate.explicit:
        if name in RESERVED:
            return Failure("application", "PR0003", f"property {name} is set by the system")
        if any(planned.name == name and planned.fixed for planned in target.properties):
            return Failure("application", "PR0003", f"property {name} is fixed: it is computed and cannot be set")
    return None


def _delay(plan: Plan, properties: Mapping[str, Any]) -> int | Failure:
    """The delay of a message in an echo queue."""
    goal = properties.get("target")
    if not isinstance(goal, str) or (plan.known and goal not in plan.known):
        return Failure("application", "PR0004", f"an echo queue needs the property target, a queue; it is {goal!r}")
    if type(properties.get(DUE)) is int:  # it waits for something until a moment
        return -max(1, int(properties[DUE]))
    seconds = timeout_seconds(properties.get("timeout"))
    if seconds is None or not 0 <= seconds <= ECHO_SECONDS_MAX:
        value = properties.get("timeout")
        why = f"an echo queue needs the property timeout, seconds or a duration such as PT5M; it is {value!r}"
        return Failure("application", "PR0004", why)
    return in_microseconds(seconds)


def timeout_seconds(value: Any) -> float | None:
    """Seconds, or an ``xs:dayTimeDuration``.

    >>> timeout_seconds("PT1M30S"), timeout_seconds(2), timeout_seconds("0.5"), timeout_seconds("soon")
    (90.0, 2.0, 0.5, None)
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return float(value)
    duration = _DURATION.fullmatch(value)
    if duration and any(duration.groups()):
        days, hours, minutes, seconds = (float(part or 0) for part in duration.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    return float(value) if re.fullmatch(r"\d{1,12}(?:\.\d{1,9})?", value) else None
