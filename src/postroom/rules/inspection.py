"""Inspecting a rule: how it is executed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from postroom.errors import DefinitionUnknown
from postroom.model.definitions import nearest
from postroom.rules.compilation.plan import Plan, QueuePlan
from postroom.rules.language.definitions import Program, RuleDefinition
from postroom.rules.language.expression import read
from postroom.rules.language.printing import written


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a rule is executed."""

    rule: str
    where: str
    target: str
    watches: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    resets: tuple[str, ...]
    error_queues: tuple[str, ...]
    queries: dict[str, str] = field(default_factory=dict)  # by the queue whose messages it is for
    definition: str = ""  # as it was written

    def as_dict(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "where": self.where,
            "target": self.target,
            "watches": list(self.watches),
            "reads": list(self.reads),
            "writes": list(self.writes),
            "resets": list(self.resets),
            "error_queues": list(self.error_queues),
            "queries": self.queries,
            "as_written": self.definition,
        }


def explain(program: Program, plan: Plan, name: str) -> Explanation:
    rule = program.rules.get(name)
    if rule is None:
        raise DefinitionUnknown(name=f"rule {name}", nearest=nearest(name, program.rules))
    from postroom.rules.compilation.compiler import read_alone

    body = read(rule.body.text, 0, len(rule.body.text), program.prolog(rule.module).namespaces)
    watches = _watched(program, rule)
    arounds = [read_alone(rule, program, queue, plan.mark) for queue in watches]
    reads = dict.fromkeys(str(source) for around in arounds for source in around.reads)
    return Explanation(
        name,
        str(rule.position),
        f"{'slicing' if rule.target in program.slicings else 'queue'} {rule.target}",
        watches,
        tuple(reads),
        tuple(dict.fromkeys(goal.queue for enqueue in body.enqueues for goal in enqueue.sent)),
        tuple(dict.fromkeys(reset.slicing or rule.target for reset in body.resets)),
        tuple(program.error_queues(watches[0], name)) if watches else (),
        {queue: _query(plan.queues[queue], name) for queue in watches if queue in plan.queues},
        written(rule).rstrip("\n"),
    )


def _watched(program: Program, rule: RuleDefinition) -> tuple[str, ...]:
    slicing = program.slicings.get(rule.target)
    comes = program.sliced(slicing) if slicing else (rule.target,)
    return comes if rule.unless is None else (*comes, rule.due)


def _query(plan: QueuePlan, rule: str) -> str:
    """The query that evaluates a rule, together with others of its queue."""
    return plan.query_of(plan.rules.index(rule)).text
