"""Looking at what is defined: the catalog, and what one rule became."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from postroom.engine.failures import SYSTEM_ERRORS
from postroom.errors import DefinitionUnknown
from postroom.model.catalog import nearest
from postroom.model.moment import to_datetime, to_iso
from postroom.rules.definitions import Program, RuleDefinition
from postroom.rules.expression import read
from postroom.rules.plan import Plan
from postroom.store.transaction import Transaction

#: Words for what the catalog keeps.
_WORDS = {"queue-level": "queue level", "type": "type", "collection": "collection"}


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One definition in force."""

    what: str
    name: str
    where: str | None
    version: int
    since: str
    by: str
    definition: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "name": self.name,
            "where": self.where,
            "version": self.version,
            "since": self.since,
            "by": self.by,
            "definition": self.definition,
        }


def catalog(tx: Transaction) -> list[CatalogEntry]:
    """Everything that is defined, in the order of definition."""
    versions = {version: (at, actor) for version, at, actor in tx.definitions.versions()}
    found = []
    for definition in tx.definitions.all():
        what = definition.body.get("what") or _WORDS.get(definition.kind) or definition.kind
        at, actor = versions[definition.since]
        found.append(
            CatalogEntry(
                what,
                definition.name.removeprefix(f"{what} "),
                str(definition.position) if definition.position else None,
                definition.since,
                to_iso(to_datetime(at)),
                actor,
                _shown(dict(definition.body)),
            )
        )
    return found


def _shown(body: dict[str, Any]) -> dict[str, Any]:
    """A definition without what is empty, and with master data by its size only."""
    if "documents" in body:
        body = {"files": body.get("files", []), "documents": len(body["documents"])}
    if "rows" in body:
        body["rows"] = len(body["rows"])
    return {name: value for name, value in body.items() if value not in (None, [], False) and name != "schema_text"}


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a rule became."""

    rule: str
    where: str
    target: str
    watches: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    resets: tuple[str, ...]
    error_queues: tuple[str, ...]
    queries: dict[str, str] = field(default_factory=dict)  # by the queue whose messages it is for

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
        }


def explain(program: Program, plan: Plan, name: str) -> Explanation:
    rule = program.rules.get(name)
    if rule is None:
        raise DefinitionUnknown(name=f"rule {name}", nearest=nearest(name, program.rules))
    body = read(rule.body.text, 0, len(rule.body.text))
    watches = _watched(program, rule)
    reads = dict.fromkeys(str(each) for queue in watches for each in _reads(program, plan, queue, rule))
    return Explanation(
        name,
        str(rule.position),
        f"{'slicing' if rule.target in program.slicings else 'queue'} {rule.target}",
        watches,
        tuple(reads),
        tuple(dict.fromkeys(each.queue for enqueue in body.enqueues for each in enqueue.sent)),
        tuple(dict.fromkeys(each.slicing or rule.target for each in body.resets)),
        tuple(program.error_queues(watches[0], name)) if watches else (),
        {queue: plan.queues[queue].query for queue in watches if queue in plan.queues},
    )


def error_queues(plan: Plan) -> list[str]:
    """Every queue that may take error messages; the built-in one takes those of arcs, too."""
    return list(dict.fromkeys([SYSTEM_ERRORS, *(name for names in plan.error_queues.values() for name in names)]))


def _watched(program: Program, rule: RuleDefinition) -> tuple[str, ...]:
    slicing = program.slicings.get(rule.target)
    return program.sliced(slicing) if slicing else (rule.target,)


def _reads(program: Program, plan: Plan, queue: str, rule: RuleDefinition) -> tuple[Any, ...]:
    """What this rule alone reads, of all that the rules of its queue do."""
    from postroom.rules.translation import Surroundings, translated

    around = Surroundings(program, queue, plan.mark)
    translated(rule, around)
    return tuple(around.reads)
