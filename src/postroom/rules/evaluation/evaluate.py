"""Evaluating a chunk of arrivals: one query for all messages of a queue, in rounds until they are settled.

It runs in a worker, gets all input with the chunk and only returns effects.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from postroom.engine.steps.effects import PLAIN, Action, Arrival, Document, Effects, Enqueue, ResetSlice
from postroom.engine.steps.failures import Failure, error_body
from postroom.engine.steps.serial import Timeline, settle
from postroom.errors import BodyError, PropertyInvalid
from postroom.limits import (
    BODY_BYTES_MAX,
    ECHO_PASSES_MAX,
    ERROR_DEPTH_MAX,
    MESSAGE_ACTIONS_MAX,
    MESSAGE_OUTPUT_BYTES_MAX,
    TASK_ROUNDS_MAX,
)
from postroom.model.body import Format, check_body
from postroom.model.key import key_text
from postroom.model.message import NO_PROPERTIES, check_properties
from postroom.model.moment import to_datetime, to_iso
from postroom.model.xml import is_harmless
from postroom.model.xmltext import attribute
from postroom.rules import entries as admission
from postroom.rules.compilation.plan import ORIGIN, Plan, Query, QueuePlan, Target
from postroom.rules.entries import Candidate, Entry
from postroom.rules.evaluation.saxon_format import Answer, Made, answer, batch, by_template, element, parts
from postroom.rules.evaluation.sets import Base, Sets
from postroom.rules.evaluation.xquery import TOO_MUCH, Evaluator, QueryFailed, saxon
from postroom.store.kernel.queues import SYSTEM_ERRORS

_TOO_MUCH_MAX = 6  # then nothing more is evaluated
_SMALL = BODY_BYTES_MAX // 4  # characters that cannot be too many bytes
#: A new message before its body: rule, queue, format, type, properties. Behind it there is nothing of note.
_Ready = tuple[str, str, str, str | None, str]


def evaluate_chunk(
    plan: Plan, arrivals: Sequence[Arrival], base: Base, given: Timeline | None = None
) -> tuple[dict[int, Effects], set[int]]:
    """The effects of a chunk's messages as if processed one after another, and those that did not settle."""
    chunk = _Chunk(plan, base)
    return settle(arrivals, chunk.round, TASK_ROUNDS_MAX, given, guessing=True)


def evaluate_alone(
    plan: Plan, arrivals: Sequence[Arrival], base: Base, evaluator: Evaluator | None = None
) -> dict[int, Effects]:
    """The effects of each message as if it were alone."""
    effects: dict[int, Effects] = {}
    for some in _Chunk(plan, base, evaluator).round(arrivals, {}):
        effects.update(some)
    return effects


class _Chunk:
    def __init__(self, plan: Plan, base: Base, evaluator: Evaluator | None = None) -> None:
        self._plan = plan
        self._base = base
        self._evaluator = evaluator or saxon()
        self._too_much = 0  # how often evaluation was ended
        self._ready: dict[str, dict[str, _Ready]] = {}  # by queue

    def round(self, arrivals: Sequence[Arrival], known: Timeline) -> Iterator[Mapping[int, Effects]]:
        """Evaluate arrivals against known effects; none sees the others of this round."""
        by_queue: defaultdict[str, list[Arrival]] = defaultdict(list)
        for arrival in arrivals:
            if arrival.failure is not None:
                yield {arrival.order: self._failed(arrival, self._unfinished(arrival.queue, arrival.failure))}
            elif arrival.queue in self._plan.echoes:
                yield {arrival.order: self._echoed(arrival)}
            elif arrival.queue in self._plan.absences and self._is_over(arrival):
                yield {arrival.order: ()}
            else:
                by_queue[arrival.queue].append(arrival)
        for queue, some in by_queue.items():
            yield from self._evaluate(self._plan.queues[queue], some, known)

    def _evaluate(
        self, plan: QueuePlan, arrivals: Sequence[Arrival], known: Timeline
    ) -> Iterator[Mapping[int, Effects]]:
        if self._too_much > _TOO_MUCH_MAX:
            failure = self._unfinished(plan.queue, "it was not evaluated: others before it took too long")
            yield {arrival.order: self._failed(arrival, failure) for arrival in arrivals}
            return
        sets = Sets(self._plan, self._base, known, arrivals)
        shown = [self._message(plan, arrival, sets) for arrival in arrivals]
        document = batch(shown, sets.elements)
        answers = []
        for query in plan.queries:
            try:
                answers.append(self._said(query, document))
            except QueryFailed as error:
                yield from self._taken_apart(plan, arrivals, known, error, query)
                return
        told = zip(arrivals, answers[0] if len(answers) == 1 else map("".join, zip(*answers, strict=True)), strict=True)
        outcomes = ((arrival.order, self._effects(plan, arrival, part)) for arrival, part in told)
        if plan.reads:
            yield from ({order: effects} for order, effects in outcomes)
        else:
            yield dict(outcomes)

    def _is_over(self, arrival: Arrival) -> bool:
        """Whether the slice was reset in which a message waited: then it no longer waits."""
        slicing = self._plan.absences[arrival.queue].slicing
        origin = admission.stored(arrival.properties).get(ORIGIN)
        sets = [granule for granule in arrival.granules if granule.kind == "slice" and granule.name == slicing]
        inside = {key_text(document.key) for granule in sets for document in self._base.get(granule, ())}
        return slicing is not None and origin not in inside

    def _said(self, query: Query, document: str) -> list[str]:
        """The results of a query by message."""
        try:
            answer = self._evaluator.run(query.text, document, self._plan.collections)
        except QueryFailed as error:
            if error.code != "XTDE3530":
                raise
            # A rule failed when a part of its answer was written: now all are held back until they are whole.
            answer = self._evaluator.run(query.careful, document, self._plan.collections)
        return parts(answer, self._plan.mark)

    def _taken_apart(
        self, plan: QueuePlan, arrivals: Sequence[Arrival], known: Timeline, error: QueryFailed, query: Query
    ) -> Iterator[Mapping[int, Effects]]:
        """Find the rule or message to blame for an error that no rule could catch."""
        too_much = error.code == TOO_MUCH
        self._too_much += too_much
        if len(arrivals) > 1:
            size = -(-len(arrivals) // (8 if too_much else 2))
            for start in range(0, len(arrivals), size):
                yield from self._evaluate(plan, arrivals[start : start + size], known)
            return
        failure = self._unfinished(plan.queue, error.what)
        if not too_much:
            failure = self._blamed(plan, failure, error, query)
        yield {arrivals[0].order: self._failed(arrivals[0], failure)}

    def _blamed(self, plan: QueuePlan, failure: Failure, error: QueryFailed, query: Query) -> Failure:
        """The failure for an error of a variable: blamed on the first rule that uses it, at the variable."""
        where = query.place(error.line, error.column, error.module)
        failure = replace(failure, kind="application", code=error.code, place=None if where is None else str(where))
        users = query.users.get(error.variable, ())
        if not users:
            return failure
        return replace(failure, rule=plan.rules[users[0]], suspects=())

    def _unfinished(self, queue: str, why: str) -> Failure:
        """The failure of an evaluation that did not end: it cannot say which rule of the queue is to blame."""
        queue_plan = self._plan.queues.get(queue)
        rules = tuple(dict.fromkeys(queue_plan.rules)) if queue_plan is not None else ()
        alone = rules[0] if len(rules) == 1 else None
        return Failure("system", TOO_MUCH, why, alone, () if alone else rules)

    def _message(self, plan: QueuePlan, arrival: Arrival, sets: Sets) -> str:
        """One message in the query's document, with the properties that its rules may read."""
        document = Document(arrival.key, arrival.format, arrival.type, arrival.body)
        if plan.bare:
            return f"<m>{element(document, self._plan)}</m>"
        parts = ["<m"]
        properties: dict[str, Any] = {}
        if plan.properties or plan.inherited or plan.slicings or plan.system:
            properties = admission.stored(arrival.properties)
        for number, read in enumerate(arrival.reads):
            parts.append(f' s{number}="{sets.number(arrival.order, read)}"')
        for number, (_, name) in enumerate(plan.slicings):
            if name in properties:
                parts.append(f' k{number}="{attribute(admission.text_of(properties[name]))}"')
        has = " ".join(name for name in plan.inherited if name in properties)
        if has:
            parts.append(f' h="{has}"')
        parts += [
            f' {name}="{attribute(value)}"'
            for name in plan.system
            if (value := _system(name, arrival, properties)) is not None
        ]
        place = sets.place(arrival.key)
        parts.append(">" if place is None else f' d="{place}">')
        parts += [
            f"<p{admission.attributes(name, properties[name])}</p>" for name in plan.properties if name in properties
        ]
        return f"{''.join(parts)}{element(document, self._plan) if place is None else ''}</m>"

    # --- from answers to effects ---

    def _effects(self, plan: QueuePlan, arrival: Arrival, part: str) -> Effects:
        if not part:
            return ()
        short = len(part) < min(_SMALL, MESSAGE_OUTPUT_BYTES_MAX)
        if short and "connection" not in arrival.properties:  # most messages of most programs
            made = by_template(part, self._plan.mark)
            ready = self._ready.get(plan.queue) or self._make_ready(plan)
            known = made is not None and {number for number, _ in made} <= ready.keys()
            if made and known and len(made) <= MESSAGE_ACTIONS_MAX and _are_harmless(part, made):
                # The constructor's half cost counts here.
                return tuple([tuple.__new__(Enqueue, (*ready[number], body, *PLAIN)) for number, body in made])
        return self._worked_out(plan, arrival, answer(part, self._plan.mark, plan.templates))

    def _make_ready(self, plan: QueuePlan) -> Mapping[str, _Ready]:
        """By number, the templates whose messages need no computation."""
        ready = self._ready[plan.queue] = {}
        for number, (rule, queue, properties, _) in enumerate(plan.templates):
            made = self._enqueue(plan.rules[rule], Made(rule, queue, "xml", "<x/>", properties), {})
            if isinstance(made, Enqueue) and self._plan.target(queue).plain:
                ready[str(number)] = made[:5]
        return ready

    def _worked_out(self, plan: QueuePlan, arrival: Arrival, told: Answer) -> Effects:
        size = sum(len(made.body) for made in told.made)
        if len(told.made) > MESSAGE_ACTIONS_MAX or size > MESSAGE_OUTPUT_BYTES_MAX:
            what = f"{len(told.made)} actions with {size} characters; the budget of one message is smaller"
            first = told.made[0]
            failure = Failure("system", "PR0006", what, plan.rules[first.rule], place=plan.place(first.rule, first.at))
            return self._failed(arrival, failure)
        trigger = admission.stored(arrival.properties)
        actions: list[Action] = []
        number = len(plan.rules) if told.failed is None else told.failed.rule
        for made in told.made:
            if made.rule >= number:
                break
            rule = plan.rules[made.rule]
            if made.slicing is not None:
                actions.append(ResetSlice(rule, made.slicing, made.value))
                continue
            foreign = made.queue in plan.query_of(made.rule).foreign
            action = self._enqueue(rule, made, trigger, arrival.type if made.same else None, foreign)
            if isinstance(action, Failure):
                where = action.place or plan.place(made.rule, made.at)
                return self._failed(arrival, replace(action, place=where))
            actions.append(action)
        if told.failed is not None:  # only now: the first rule that fails is the one that is told
            place = admission.place(plan.query_of(number), told.failed) or plan.place(number)
            _, code, description, *_ = told.failed
            return self._failed(arrival, Failure("application", code, description, plan.rules[number], place=place))
        return tuple(actions)

    def _enqueue(
        self, rule: str, made: Made, trigger: Mapping[str, Any], type: str | None = None, foreign: bool = False
    ) -> Enqueue | Failure:
        if self._plan.known and made.queue not in self._plan.known:
            return Failure("system", "PR0007", f"the queue {made.queue} is gone", rule)
        try:  # as for a message from outside
            if not is_harmless(made.body) or made.format != "xml":
                check_body(made.body, Format(made.format))
        except BodyError as error:
            return Failure("message", error.code, str(error), rule)
        if made.compensates:  # it is worked on where it enters its queue, if it ever does
            return Enqueue(rule, made.queue, made.format, type, NO_PROPERTIES, made.body, compensates=True)
        target = self._plan.target(made.queue)
        if target.plain and "connection" not in trigger and len(made.body) < _SMALL:  # most messages of most programs
            try:
                given = _set_by_rule(rule, tuple(made.properties))
                return Enqueue(rule, made.queue, made.format, type, given, made.body)
            except PropertyInvalid as error:
                return Failure("message", error.code, str(error), rule)
        try:
            properties = {name: admission.value_of(name, kind, text, target) for name, kind, text in made.properties}
        except PropertyInvalid as error:
            return Failure("message", error.code, str(error), rule)
        properties |= admission.inherited(target, trigger, properties)
        document = Document(0, made.format, type, made.body)
        by, entries = _made_by(rule, trigger), tuple(made.entries)
        if foreign:  # its properties have other declarations around them than the rule
            entry = self._admit(target, document, properties, by)
        else:
            entry = admission.finish(self._plan, target, properties, by, entries, document, self._evaluator)
        if isinstance(entry, Failure):
            return replace(entry, rule=rule)
        return _enqueued(rule, target, document, entry)

    def _echoed(self, arrival: Arrival) -> Effects:
        """A message whose echo delay is over goes on to its target, with the properties set on it."""
        trigger = admission.stored(arrival.properties)
        goal = str(trigger.get("target"))
        if self._plan.known and goal not in self._plan.known:
            return self._failed(arrival, Failure("system", "PR0004", f"the target queue {goal} is gone"))
        target = self._plan.target(goal)
        passes = trigger.get("echoes", 0) + 1
        if target.echo and passes > ECHO_PASSES_MAX:
            why = f"it went from one echo queue to another {passes - 1} times; the last target is the echo queue {goal}"
            return self._failed(arrival, Failure("application", "PR0004", why))
        explicit = admission.settable(target, trigger)
        if not target.echo:
            explicit = {name: value for name, value in explicit.items() if name not in ("target", "timeout")}
        document = Document(0, arrival.format, arrival.type, arrival.body)
        system = _made_by(str(trigger.get("rule", arrival.queue)), trigger)
        if target.echo:
            system["echoes"] = passes
        entry = self._admit(target, document, explicit, system)
        if isinstance(entry, Failure):
            return self._failed(arrival, entry)
        return (_enqueued(arrival.queue, target, document, entry),)

    def _failed(self, arrival: Arrival, failure: Failure) -> Effects:
        """An error message instead of all effects, in the most specific error queue that accepts it."""
        trigger = admission.stored(arrival.properties)
        counted = trigger.get("errors", 0)  # a queue without admission: a sender may have written anything there
        depth = (max(counted, 0) if type(counted) is int else 0) + 1
        original = Document(arrival.key, arrival.format, arrival.type, arrival.body)
        document = Document(0, "xml", None, error_body(failure, arrival.queue, arrival.key, original))
        system = {**_made_by(failure.rule or arrival.queue, trigger), "errors": depth}
        levels = self._plan.errors_of(arrival.queue, failure.rule)
        for queue in levels if depth <= ERROR_DEPTH_MAX else ():
            if self._plan.known and queue not in self._plan.known:
                continue
            target = self._plan.target(queue)
            taken = admission.inherited(target, trigger, {})
            entry = self._admit(target, document, taken, system)
            if isinstance(entry, Entry):
                return (_enqueued(failure.rule or arrival.queue, target, document, entry)._replace(failed=True),)
        entry = self._admit(Target(SYSTEM_ERRORS), document, {}, system)
        assert isinstance(entry, Entry)
        made = _enqueued(failure.rule or arrival.queue, Target(SYSTEM_ERRORS), document, entry)
        return (made._replace(failed=True),)

    def _admit(
        self, target: Target, document: Document, explicit: Mapping[str, Any], system: Mapping[str, Any]
    ) -> Entry | Failure:
        return admission.admit(self._plan, target, [Candidate(document, explicit, system)], self._evaluator)[0]


@lru_cache(maxsize=1000)
def _set_by_rule(rule: str, properties: tuple[tuple[str, str | None, str], ...]) -> str:
    """The properties of a message for a queue without its own; cached, because most messages of a rule have the
    same."""
    target = Target("")
    given = {name: admission.value_of(name, kind, text, target) for name, kind, text in properties}
    return check_properties({**given, "rule": rule})


def _are_harmless(part: str, made: Sequence[tuple[str, str]]) -> bool:
    """Whether the bodies of a part can be stored as they are. Each is one element, as Saxon has written it, so mostly
    one look at all of them together is enough."""
    return is_harmless(f"<all>{part}</all>") or all(is_harmless(body) for _, body in made)


def _enqueued(rule: str, target: Target, document: Document, entry: Entry) -> Enqueue:
    return Enqueue(
        rule,
        target.queue,
        document.format,
        document.type,
        entry.properties,
        document.body,
        entry.slices,
        entry.entries,
        entry.delay,
    )


def _made_by(rule: str, trigger: Mapping[str, Any]) -> dict[str, Any]:
    system = {"rule": rule}
    if "connection" in trigger:
        system["connection"] = trigger["connection"]
    return system


def _system(name: str, arrival: Arrival, properties: Mapping[str, Any]) -> str | None:
    if name == "key":
        return key_text(arrival.key)
    if name == "queue":
        return arrival.queue
    if name == "cause":
        return None if arrival.cause is None else key_text(arrival.cause)
    if name == "created":
        return to_iso(to_datetime(arrival.created))
    if name == "size":
        return str(len(arrival.body.encode()))
    value = properties.get(name)
    return None if value is None else str(value)
