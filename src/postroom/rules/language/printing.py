"""Rule programs as text: each statement parses back to the same definition."""

from __future__ import annotations

from functools import singledispatch

from postroom.rules.language.definitions import (
    AnyDefinition,
    CollectionDefinition,
    LibraryDefinition,
    ModuleDefinition,
    PropertyDefinition,
    QueueDefinition,
    RuleDefinition,
    SlicingDefinition,
    SystemDefinition,
)


@singledispatch
def written(definition: AnyDefinition) -> str:
    """The statement that defines it, with a line end."""
    raise NotImplementedError(definition)  # no definition: each kind of them has its own function below


@written.register
def _(queue: QueueDefinition) -> str:
    clauses = {
        "schema": queue.schema,
        "priority": queue.priority or None,
        "errorqueue": queue.errorqueue,
        "interface": queue.interface,
        "port": queue.port,
    }
    words = [f" {clause} {value}" for clause, value in clauses.items() if value is not None]
    for policy in queue.policies:
        words.append(f" using {policy.extension}" + (f" policy {policy.file}" if policy.file is not None else ""))
    return f"create queue {queue.name} kind {queue.kind} mode {queue.mode}{''.join(words)}\n"


@written.register
def _(property: PropertyDefinition) -> str:
    flags = f"{' inherited' if property.inherited else ''}{' fixed' if property.fixed else ''}"
    lines = [f"create property {property.name} as xs:{property.type}{flags}"]
    for part in property.values:
        value = "" if part.value is None else f" value {part.value.text}"
        lines.append(f"  queue {', '.join(part.queues)}{value}")
    return "\n".join(lines) + "\n"


@written.register
def _(slicing: SlicingDefinition) -> str:
    return f"create slicing {slicing.name} on {slicing.property}\n"


@written.register
def _(collection: CollectionDefinition) -> str:
    return f"create collection {collection.name}\n"


@written.register
def _(rule: RuleDefinition) -> str:
    waits = ""
    if rule.unless is not None and rule.deadline is not None:
        waits = f"\nunless ({rule.unless.text}) within ({rule.deadline.text})"
    return f"create rule {rule.name} for {rule.target}{_errors(rule.errorqueue)}{waits}\n{rule.body.text}\n"


@written.register
def _(module: ModuleDefinition) -> str:
    declared = "" if module.prolog is None else f"{module.prolog.text}\n\n"
    return f"{declared}create module {module.name}{_errors(module.errorqueue)}\n"


@written.register
def _(library: LibraryDefinition) -> str:
    return library.text


@written.register
def _(system: SystemDefinition) -> str:
    return f"create system errorqueue {system.errorqueue}\n"


def _errors(queue: str | None) -> str:
    return "" if queue is None else f" errorqueue {queue}"
