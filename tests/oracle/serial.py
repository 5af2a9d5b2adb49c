"""The serial oracle: the plainest possible executor of a rule program, for the engine to be compared with.

All state is lists and dicts. One message at a time, one rule at a time, one property at a time; no batch, no index, no
conflict to settle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from postroom.rules.language.definitions import Program, RuleDefinition
from postroom.store.kernel.queues import SYSTEM_ERRORS

from .evaluation import (
    Enqueue,
    Failed,
    Letter,
    Reset,
    Surroundings,
    Value,
    actions,
    converted,
    text_of,
    translated,
    value,
)

ERRORS_MAX = 8  # errors of errors
SECOND = 1_000_000


class Refused(Exception):
    """A message from outside does not fit its queue."""


@dataclass
class Message:
    number: int  # its place in the order of arrival: its key
    queue: str
    letter: Letter
    properties: dict[str, Value]
    cause: int | None = None
    rule: str | None = None
    sender: str | None = None
    errors: int = 0  # how many errors led to it
    due: int | None = None
    processed: bool = False


@dataclass
class Oracle:
    program: Program
    sender: str = "sender"
    now: int = 0
    messages: list[Message] = field(default_factory=list)
    slices: dict[tuple[str, str], list[Message]] = field(default_factory=dict)
    translations: dict[str, str] = field(default_factory=dict)  # of rules, by their names

    # --- from outside ---

    def send(self, queue: str, body: str, format: str, properties: Mapping[str, Value]) -> None:
        """A message from outside; Refused if its properties do not fit."""
        for name in properties:
            known = self.program.properties.get(name)
            if known is not None and known.fixed and queue in known.queues:
                raise Refused
        try:
            explicit = {name: self._as_defined(name, queue, given) for name, given in properties.items()}
            self._enter(self._made(queue, Letter(body, format), explicit, None), sender=self.sender)
        except Failed as failed:
            raise Refused from failed

    def _as_defined(self, name: str, queue: str, given: Value) -> Value:
        known = self.program.properties.get(name)
        return converted(name, known.type, given) if known is not None and queue in known.queues else given

    # --- steps ---

    def claim(self, size: int) -> list[Message]:
        """What a step takes: timers first, then by priority, then by arrival."""
        waiting = [message for message in self.messages if not message.processed]
        due = [message for message in waiting if message.due is not None and message.due <= self.now]
        due.sort(key=lambda message: (message.due, message.number))
        watched = [message for message in waiting if self._watched(message.queue)]
        watched.sort(key=lambda message: (-self.program.queues[message.queue].priority, message.number))
        return [*due, *watched][:size]

    def _watched(self, queue: str) -> bool:
        return queue in self.program.queues and any(self._concerns(rule, queue) for rule in self.program.rules.values())

    def _concerns(self, rule: RuleDefinition, queue: str) -> bool:
        slicing = self.program.slicings.get(rule.target)
        if slicing is None:
            return rule.target == queue
        return queue in self.program.properties[slicing.property].queues

    def step(self, size: int, settled: int | None = None) -> int:
        """Claim and process, one after another; with ``settled`` only so many of the claimed."""
        claimed = self.claim(size)[:settled]
        for message in claimed:
            self._process(message)
        return len(claimed)

    def next_due(self) -> int | None:
        return min((each.due for each in self.messages if each.due is not None and not each.processed), default=None)

    def _process(self, message: Message) -> None:
        rule: RuleDefinition | None = None
        todo: list[Message | Reset] = []
        try:
            if message.due is not None:
                todo.append(self._echoed(message))
            for rule in self.program.rules.values():
                if self._applies(rule, message):
                    todo += self._evaluated(rule, message)
        except Failed as failed:
            todo = [self._error(message, failed.codes, rule)]
        for each in todo:
            if isinstance(each, Reset):
                self.slices.pop((each.slicing, each.key), None)
            else:
                self._enter(each)
        message.processed = True

    def _applies(self, rule: RuleDefinition, message: Message) -> bool:
        slicing = self.program.slicings.get(rule.target)
        has_value = slicing is None or slicing.property in message.properties
        return self._concerns(rule, message.queue) and has_value

    def _evaluated(self, rule: RuleDefinition, message: Message) -> list[Message | Reset]:
        found: list[Message | Reset] = []
        codes: set[str] = set()
        if rule.name not in self.translations:
            self.translations[rule.name] = translated(rule, self.program)
        for action in actions(self.translations[rule.name], self._around(rule, message)):
            if isinstance(action, Reset):
                found.append(action)
                continue
            codes |= action.failed
            try:
                if not action.failed:
                    found.append(self._enqueued(action, rule, message))
            except Failed as failed:
                codes |= failed.codes
        if codes:
            raise Failed(frozenset(codes))
        return found

    def _enqueued(self, action: Enqueue, rule: RuleDefinition, trigger: Message) -> Message:
        made = self._made(action.queue, action.letter, action.explicit, trigger)
        made.rule = rule.name
        return made

    def _around(self, rule: RuleDefinition, message: Message) -> Surroundings:
        queues = {name: [each.letter for each in self.messages if each.queue == name] for name in self.program.queues}
        properties = {name: (self._type(name, value), value) for name, value in message.properties.items()}
        around = Surroundings(message.letter, message.queue, {**properties, **_system(message)}, queues)
        slicing = self.program.slicings.get(rule.target)
        if slicing is not None:
            key = message.properties[slicing.property]
            members = self.slices.get((slicing.name, text_of(key)), [])
            around.slice = [each.letter for each in members]
            around.slicekey = (self._type(slicing.property, key), key)
        return around

    def _type(self, name: str, value: Value) -> str:
        known = self.program.properties.get(name)
        if known is not None:
            return known.type
        return "boolean" if isinstance(value, bool) else "integer" if isinstance(value, int) else "string"

    # --- new messages ---

    def _made(self, queue: str, letter: Letter, explicit: Mapping[str, Value], trigger: Message | None) -> Message:
        """A message with its properties; Failed if one does not fit."""
        properties = dict(explicit)
        for each in self.program.properties.values():
            if queue not in each.queues or each.name in properties:
                continue
            if each.inherited and trigger is not None and each.name in trigger.properties:
                properties[each.name] = trigger.properties[each.name]
                continue
            expression = each.value_for(queue)
            found = None if expression is None else value(each.name, each.type, expression.text, letter, queue)
            if found is not None:
                properties[each.name] = found
        due = self._due(queue, properties)
        return Message(-1, queue, letter, properties, None if trigger is None else trigger.number, due=due)

    def _due(self, queue: str, properties: Mapping[str, Value]) -> int | None:
        if queue not in self.program.queues or self.program.queues[queue].kind != "echo":
            return None
        seconds = properties.get("timeout")
        if properties.get("target") not in self.program.queues or not isinstance(seconds, int) or seconds < 0:
            raise Failed(frozenset({"PR0004"}))
        return self.now + seconds * SECOND

    def _enter(self, message: Message, sender: str | None = None) -> None:
        message.number = len(self.messages)
        message.sender = sender
        self.messages.append(message)
        for slicing in self.program.slicings.values():
            defined = message.queue in self.program.properties[slicing.property].queues
            if defined and slicing.property in message.properties:
                key = text_of(message.properties[slicing.property])
                self.slices.setdefault((slicing.name, key), []).append(message)

    def _echoed(self, message: Message) -> Message:
        """What was set on a message goes on with it; the rest is worked out anew."""
        goal = str(message.properties["target"])
        fixed = {each.name for each in self.program.properties.values() if each.fixed and goal in each.queues}
        kept = {name: self._as_defined(name, goal, given) for name, given in message.properties.items()}
        explicit = {name: value for name, value in kept.items() if name not in fixed | {"target", "timeout"}}
        made = self._made(goal, message.letter, explicit, message)
        made.rule = message.rule or message.queue
        return made

    # --- errors ---

    def _error(self, message: Message, codes: frozenset[str], rule: RuleDefinition | None) -> Message:
        made_by = rule.name if rule else None
        head = f"<class>application</class><code>{' '.join(sorted(codes))}</code><description/>"
        named = f"<rule>{made_by}</rule>" if made_by else ""
        letter = message.letter
        inside = letter.body if letter.format == "xml" else escape(letter.body)
        body = (
            f"<error>{head}{named}<queue>{message.queue}</queue>"
            f'<initialMessage key="{message.number}">{inside}</initialMessage></error>'
        )
        depth = message.errors + 1
        for queue in self._error_queues(message.queue, rule) if depth <= ERRORS_MAX else ():
            try:
                made = self._made(queue, Letter(body, "xml"), {}, message)
                break
            except Failed:  # what cannot even take an error passes it on
                continue
        else:
            made = Message(-1, SYSTEM_ERRORS, Letter(body, "xml"), {}, message.number)
        made.rule, made.errors = made_by or message.queue, depth
        return made

    def _error_queues(self, queue: str, rule: RuleDefinition | None) -> list[str]:
        program, home = self.program, self.program.queues[queue]
        module = program.modules[rule.module if rule else home.module]
        levels = [rule.errorqueue if rule else None, home.errorqueue, module.errorqueue]
        levels.append(program.system.errorqueue if program.system else None)
        return [level for level in levels if level is not None and level != queue]


def _system(message: Message) -> dict[str, tuple[str, Value]]:
    """What the system knows of a message; keys and times differ from run to run, so only whether they are there."""
    known: dict[str, tuple[str, Value]] = {
        "key": ("string", "some"),
        "queue": ("string", message.queue),
        "size": ("integer", len(message.letter.body.encode())),
    }
    if message.rule is not None:
        known["rule"] = ("string", message.rule)
    if message.cause is not None:
        known["cause"] = ("string", "some")
    if message.sender is not None:
        known["sender"] = ("string", message.sender)
    return known
