"""Checks what definitions do against the rights of the user who loads them: they act with these rights only.

The check runs inside the load's transaction, so a refused load leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from postroom.errors import RightMissing
from postroom.flows.loading import FlowLanguage
from postroom.model.rights import EVERYTHING, OPERATE
from postroom.queues.tree import hierarchy
from postroom.queues.tree.loading import QueueLanguage
from postroom.room.catalog import CatalogEntry, catalog
from postroom.room.identity import Identity, identity_of
from postroom.room.parts import Parts
from postroom.rules.inspection import Explanation, explain
from postroom.rules.language.definitions import (
    AnyDefinition,
    ModuleDefinition,
    Program,
    PropertyDefinition,
    QueueDefinition,
    SlicingDefinition,
    SystemDefinition,
)
from postroom.rules.loading import RuleLanguage
from postroom.rules.programs import read
from postroom.stations.counters.definitions import Way
from postroom.stations.counters.definitions import kept as kept_counters
from postroom.stations.loading import FormLanguage
from postroom.stations.procedures.catalog import kept, set_enabled
from postroom.store.kernel.queues import SYSTEM_ERRORS
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.bindings import Binding

_SUFFIXES = tuple(
    suffix
    for language in (QueueLanguage, FormLanguage, FlowLanguage, RuleLanguage)
    for suffix in (language.suffix, *language.others)
)
_GATEWAYS = ("incomingGateway", "outgoingGateway")
#: Kinds of definitions that act by themselves, with the rights of whoever has loaded them.
BOUND = ("rule", "arc", "procedure", "counter")


class Need(NamedTuple):
    """A right that a definition needs."""

    verb: str
    object: str
    what: str  # the kind of the definition
    name: str = ""


class Owned(NamedTuple):
    """A definition with the user who loaded it."""

    what: str
    name: str
    by: str
    version: int
    domain: str | None = None  # of what flow graphs consist of


def owned(tx: Transaction) -> list[Owned]:
    """All definitions with owners. A definition keeps its owner when someone else enables or disables it."""
    bound = {
        (binding.what, _shown_name(binding.what, binding.name)): binding.principal for binding in tx.bindings.all()
    }
    return [
        Owned(entry.what, entry.name, bound.get((entry.what, entry.name), entry.by), entry.version, _domain(entry))
        for entry in catalog(tx)
    ]


def refuse_others(tx: Transaction, identity: Identity, what: str, name: str) -> None:
    """Raise if a definition belongs to another user, unless an operator changes it. Called with their lock."""
    if not _operates(identity):
        for definition in owned(tx):
            if (definition.what, definition.name) == (what, name) and definition.by != identity.principal:
                raise _not_own(identity, definition)


class Loading:
    """One load: started before anything is written, checked afterwards.

    The definitions act for the user who loads them. Without a user (direct access to the room) they have no owner.
    """

    def __init__(self, parts: Parts, identity: Identity | None, files: Sequence[str]) -> None:
        self._parts = parts
        self._identity = identity
        self._files = frozenset(files)
        self._before: list[Owned] = []

    def begin(self, tx: Transaction) -> None:
        """Record the owners before the load; called with the lock of the definitions."""
        self._before = owned(tx)

    def check(self, tx: Transaction) -> None:
        """Raise unless the user may do all that the definitions do, and has replaced nobody else's."""
        identity = self._identity
        others: list[Owned] = []
        needs = list(self._needs(tx)) if identity is not None or tx.bindings.all() else []
        if identity is not None and not _operates(identity):
            others = [definition for definition in self._before if definition.by != identity.principal]
            self._refuse_others(tx, identity, others)
            for need in needs:
                why = _why_not(tx, identity, need)
                if why is not None:
                    raise RightMissing(
                        principal=identity.principal,
                        verb=need.verb,
                        object=need.object,
                        why=f"{need.what} {need.name}: {why}",
                    )
        self._bind(tx, needs, {(other.what, other.name) for other in others})
        refresh(tx, self._parts)

    def _bind(self, tx: Transaction, needs: Sequence[Need], others: set[tuple[str, str]]) -> None:
        """Make the user the owner of what was loaded; owners of the rest are unchanged."""
        for what, name in {(need.what, need.name) for need in needs if need.what in BOUND}:
            if self._identity is None:
                tx.bindings.free(what, name)
            elif (what, _shown_name(what, name)) not in others:
                tx.bindings.put(Binding(what, name, self._identity.principal))

    def _refuse_others(self, tx: Transaction, identity: Identity, others: Sequence[Owned]) -> None:
        """Raise if definitions of other users are replaced or removed, unless by an operator."""
        now = owned(tx)
        same = {(definition.what, definition.name, definition.version) for definition in now}
        for other in others:
            if (other.what, other.name, other.version) not in same:
                raise _not_own(identity, other)
        domains = {other.name: other for other in others if other.what == "domain"}
        before = {(definition.what, definition.name, definition.version) for definition in self._before}
        for definition in now:
            is_new = (definition.what, definition.name, definition.version) not in before
            if definition.what == "allow" and is_new and definition.domain in domains:
                raise _not_own(identity, domains[definition.domain])

    def _needs(self, tx: Transaction) -> Iterator[Need]:
        for name in self._files:
            if not name.endswith(_SUFFIXES):  # of what such definitions do, nothing is known here
                yield Need(OPERATE, EVERYTHING, "file", name)
        if any(name.endswith(QueueLanguage.suffix) for name in self._files):
            yield from _of_tree(tx)
        for space in self._parts.room_graphs.now(tx).graph.spaces.values():
            if space.outside is not None and space.position.file in self._files:
                yield Need(OPERATE, EVERYTHING, "space", space.name)
        yield from _of_program(read(tx), self._files)
        yield from acting(tx, self._parts, self._files)


def _operates(identity: Identity) -> bool:
    return identity.why_not(OPERATE, EVERYTHING) is None


def _not_own(identity: Identity, owned: Owned) -> RightMissing:
    why = f"{owned.by} has loaded it, and an operator may replace or remove it"
    return RightMissing(principal=identity.principal, verb="load", object=f"{owned.what} {owned.name}", why=why)


def _shown_name(what: str, name: str) -> str:
    """The catalog's name of an owned definition."""
    domain, _, arc = name.partition(":")
    return f"{arc} in {domain}" if what == "arc" else name


def _domain(entry: CatalogEntry) -> str | None:
    domain: str | None = entry.definition.get("domain")
    return domain


def refresh(tx: Transaction, parts: Parts) -> None:
    """Check for each owned definition which rights it lacks now; disable procedures that lack one."""
    bound = tx.bindings.all()
    if not bound:
        return
    needs: dict[tuple[str, str], list[Need]] = {}
    for need in acting(tx, parts):
        needs.setdefault((need.what, need.name), []).append(need)
    identities = {binding.principal: identity_of(tx, binding.principal) for binding in bound}
    for binding in bound:
        if (binding.what, binding.name) not in needs:
            tx.bindings.free(binding.what, binding.name)  # it is no longer defined
            continue
        lacking = _lacking(tx, identities[binding.principal], needs[binding.what, binding.name])
        if lacking != binding.lacking:
            tx.bindings.put(binding._replace(lacking=lacking))
        if lacking is not None and binding.what == "procedure":
            set_enabled(tx, binding.name, False)


def _lacking(tx: Transaction, identity: Identity, needs: Sequence[Need]) -> str | None:
    for need in needs:
        why = _why_not(tx, identity, need)
        if why is not None:
            return f"{identity.principal}, who has loaded it, may not {need.verb} {need.object}: {why}"
    return None


def _why_not(tx: Transaction, identity: Identity, need: Need) -> str | None:
    paths = [queue.path for queue in tx.queues.all() if queue.name == need.object]
    return identity.why_not(need.verb, need.object, *paths)


def acting(tx: Transaction, parts: Parts, files: Collection[str] | None = None) -> Iterator[Need]:
    """The rights that definitions need, all of them or those of some files."""
    program = read(tx)
    plan = parts.programs.plan(tx) if program.rules else None
    for rule in program.rules.values():
        if plan is not None and (files is None or rule.position.file in files):
            yield from _of_rule(explain(program, plan, rule.name))
    for arcs in parts.room_graphs.now(tx).graph.arcs.values():
        for arc in arcs:
            if files is None or arc.position.file in files:
                yield Need("subscribe", arc.source, "arc", arc.full_name)
                yield Need("publish", arc.target, "arc", arc.full_name)
    for entry in kept(tx):
        if files is None or (entry.where is not None and entry.where.file in files):
            yield Need("work", entry.procedure.station, "procedure", entry.procedure.name)
    for present in kept_counters(tx):
        counter = present.counter
        if files is None or counter.position.file in files:
            yield Need("work", counter.station, "counter", counter.name)
            yield Need("receive" if counter.way is Way.TAKES else "send", present.queue, "counter", counter.name)


def _of_rule(explained: Explanation) -> Iterator[Need]:
    what = ("rule", explained.rule)
    for queue in explained.watches:
        yield Need("receive", queue, *what)
    for queue in (*explained.writes, *explained.error_queues):
        if queue != SYSTEM_ERRORS:  # everyone's errors go there
            yield Need("send", queue, *what)
    for source in explained.reads:  # a slice or an index can have messages of any queue
        queue = source.removeprefix("the whole queue ")
        yield Need("look", EVERYTHING if queue == source else queue, *what)


def _of_program(program: Program, files: Collection[str]) -> Iterator[Need]:
    """What the modules of some files need besides their rules."""
    for definition in (definition for definition in program.definitions if definition.position.file in files):
        yield from _of_errors(definition)
        if isinstance(definition, QueueDefinition):
            verb = OPERATE if definition.kind in _GATEWAYS else "manage"
            yield Need(verb, EVERYTHING if verb == OPERATE else definition.name, definition.what, definition.name)
        elif isinstance(definition, PropertyDefinition):
            yield from (Need("manage", queue, definition.what, definition.name) for queue in definition.queues)
        elif isinstance(definition, SlicingDefinition):  # it keeps messages until it is reset
            yield from (Need("manage", queue, definition.what, definition.name) for queue in program.sliced(definition))


def _of_errors(owner: AnyDefinition) -> Iterator[Need]:
    """The rights for the error queues of a queue, a module, or the system. Those of rules are in their plan."""
    if isinstance(owner, SystemDefinition):
        yield Need(OPERATE, EVERYTHING, "the system error queue", owner.errorqueue)
    elif isinstance(owner, (QueueDefinition, ModuleDefinition)) and owner.errorqueue not in (None, SYSTEM_ERRORS):
        yield Need("send", str(owner.errorqueue), owner.what, owner.name)


def _of_tree(tx: Transaction) -> Iterator[Need]:
    """The right to replace the whole tree."""
    yield Need("manage", EVERYTHING, "the description of queues")
    for level in hierarchy.read(tx):
        if level.command is not None:
            yield Need(OPERATE, EVERYTHING, "the command line of", level.path)
