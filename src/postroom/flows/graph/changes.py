"""Changing the graph: definitions, queues, epochs and the events about it, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from postroom.engine.steps.attempts import IN_ORDER, check_reader
from postroom.engine.steps.failures import error_queue
from postroom.errors import EventsOnTheWay, NameInvalid, NameTaken, QueueInUse
from postroom.flows.graph import checks
from postroom.flows.graph.by import By
from postroom.flows.graph.meta import Action, arc_said, body_of
from postroom.flows.graph.versions import (
    FILE,
    KIND,
    SPACE,
    Kept,
    RoomGraph,
    RoomGraphs,
    definition,
    domains_of,
    key_of,
    meta_of,
    with_queues,
)
from postroom.flows.language.definitions import Arc, Space
from postroom.flows.language.reader import META
from postroom.flows.language.types import UNTYPED
from postroom.limits import QUEUE_NAME_CHARS_MAX
from postroom.model.definitions import Definition
from postroom.model.message import NO_PROPERTIES, Draft
from postroom.store.kernel.queues import META_SPACE, PARKED, Admission, Keep, Queue
from postroom.store.kernel.transaction import Transaction


def changed(
    tx: Transaction,
    old: RoomGraph,
    wanted: Mapping[str, Kept],
    by: By,
    note: Mapping[str, Any],
    *,
    told_in: str | None = None,
    part_with: bool = True,
) -> RoomGraph:
    """The graph after a change, which takes effect with this transaction; raises if it is not allowed.

    ``told_in`` is the domain in whose meta-space the caller itself puts the event. A space with unread messages is
    removed only with ``part_with``; they stay readable under its name.
    """
    kept = with_queues(typed(wanted), old.kept)
    checks.check([entry.statement for entry in kept.values()], old.graph)
    return _Change(tx, old, RoomGraph(old.version, kept), by, part_with).write(note, told_in)


def typed(wanted: Mapping[str, Kept]) -> dict[str, Kept]:
    """Statements with a type for each space whose first arc implies one."""
    statements = checks.typed([entry.statement for entry in wanted.values()])
    return {
        key: entry if entry.statement is statement else replace(entry, statement=statement)
        for (key, entry), statement in zip(wanted.items(), statements, strict=True)
    }


class _Change:
    def __init__(self, tx: Transaction, old: RoomGraph, new: RoomGraph, by: By, part_with: bool) -> None:
        self._tx = tx
        self._old = old
        self._new = new
        self._by = by
        self._part_with = part_with

    def write(self, note: Mapping[str, Any], told_in: str | None) -> RoomGraph:
        tx, old, new = self._tx, self._old, self._new
        ended = [key for key in old.kept if key not in new.kept]
        begun = [definition(key, entry) for key, entry in new.kept.items() if old.kept.get(key) != entry]
        if not ended and not any(map(self._says_more, begun)):
            return old
        tx.definitions.lock()
        error_queue(tx)
        queues = self._queues()
        version = tx.definitions.change(KIND, ended, begun, note)
        detail = {"version": version, "principal": self._by.principal, "broker": self._by.broker}
        seq = tx.journal.add("graph", detail=detail)
        tx.epochs.begin(seq, version)
        self._set_flowing(queues, seq)
        for domain, action in self._events():
            if domain != told_in:
                self._tell(queues, domain, action)
        tx.epochs.forget()
        self._forget_states(version)
        tx.wake()
        return RoomGraph(version, new.kept)

    def _forget_states(self, version: int) -> None:
        """Forget the states of arcs that no event can reach any more."""
        present = self._tx.arc_states.arcs()
        if present:
            graphs = RoomGraphs()
            pinned = [stream.version for stream in self._tx.streams.all() if not stream.done]  # they will be run again
            known = {*self._tx.epochs.versions(), *pinned} - {version}
            older = [graphs.at(self._tx, earlier) for earlier in sorted(known)]
            needed = {name for graph in (self._new, *older) for name in graph.state_names}
            for name in present:
                if name not in needed:
                    self._tx.arc_states.forget(name)

    def _says_more(self, new: Definition) -> bool:
        """Whether a statement differs from the old one in more than its place in a file."""
        kept = self._old.kept.get(new.name)
        return kept is None or definition(new.name, kept).body != new.body

    # --- queues ---

    def _queues(self) -> dict[str, Queue]:
        """The queues of all spaces, created and retired as the graph requires, and locked where it changes.

        So each publish comes before the change or after it.
        """
        tx = self._tx
        before, after = _places(self._old), _places(self._new)
        for name, kind in after.items():
            if name not in before:
                self._make(name, kind)
        touched = {name for name in {*before, *after} if self._is_touched(name)} | (before.keys() ^ after.keys())
        touched |= {meta_of(domain) for domain in self._new.graph.domains}
        touched |= (self._old.flowing | self._new.flowing) & after.keys()  # whoever publishes there finishes first
        touched_queues = [tx.queues.named_to_read(name) for name in touched]
        locked = [tx.queues.locked(id) for id in sorted(queue.id for queue in touched_queues if queue is not None)]
        queues = {queue.name: queue for queue in locked}
        for name, queue in queues.items():
            if name not in after:
                self._put_away(queue)
            else:
                self._set_up(queue, after[name])
        return queues

    def _make(self, name: str, kind: str) -> None:
        tx = self._tx
        if len(name) > QUEUE_NAME_CHARS_MAX:
            raise NameInvalid(name=name, why=f"1 to {QUEUE_NAME_CHARS_MAX} characters")
        present = tx.queues.named(name)
        if present is None and not tx.queues.below(name):
            tx.queues.create(name, kind, path=name)
        elif present is None:
            raise NameTaken(name=name, owner="the queue description")
        elif not present.retired or present.kind != kind:
            raise NameTaken(name=name, owner=f"a queue of kind {present.kind}")
        else:
            tx.queues.evolve(present, path=name, ordinal=0, command=None)

    def _is_touched(self, name: str) -> bool:
        """Whether a space, or an arc from it, has changed."""
        old, new = self._old, self._new
        if old.graph.spaces.get(name) != new.graph.spaces.get(name) or (name in old.flowing) != (name in new.flowing):
            return True
        mine = [
            [(arc, room_graph.is_disabled(arc)) for arc in room_graph.outgoing.get(name, ())]
            for room_graph in (old, new)
        ]
        return mine[0] != mine[1]

    def _put_away(self, queue: Queue) -> None:
        self._check_empty(queue)
        self._tx.epochs.drop(queue.id)  # what still waits there has nowhere to go
        self._tx.queues.set_admission(queue, Admission.FLOWS, False)
        self._tx.queues.retire(queue)

    def _check_empty(self, queue: Queue) -> None:
        inside = self._tx.deliveries.inside(queue)
        if inside and not self._part_with:
            space = self._old.graph.spaces.get(queue.name)
            where = f" (it is defined at {space.position})" if space is not None else ""
            raise QueueInUse(queue=queue.name, count=inside, where=where)
        if not self._part_with:
            self._check_on_the_way(queue.name)

    def _check_on_the_way(self, space: str) -> None:
        """Raise if events that have yet to flow may be for a space that would be removed."""
        sources = self._old.before([space])
        for source in self._tx.epochs.flowing():
            if source.name in sources and self._tx.epochs.first_of_all(source) is not None:
                raise EventsOnTheWay(space=space, source=source.name, count=self._tx.epochs.count(source))

    def _set_up(self, queue: Queue, kind: str) -> None:
        tx, new = self._tx, self._new
        was = self._old.graph.spaces.get(queue.name)
        if was is not None and was.type not in (UNTYPED, new.graph.spaces[queue.name].type):
            self._check_empty(queue)  # what is there is of another type
        keeps = kind != PARKED and (queue.name not in new.flowing or new.graph.spaces[queue.name].retain)
        if bool(queue.keep) != keeps or queue.keep == Keep.SLICED:
            tx.queues.keep_processed(queue, keeps)
        tx.queues.set_admission(queue, Admission.FLOWS, True)

    def _set_flowing(self, queues: Mapping[str, Queue], seq: int) -> None:
        """Set which queues flow from now on."""
        old, new = self._old, self._new
        for name, queue in queues.items():
            reader = IN_ORDER if name in new.ordered else "arcs"
            if name in new.flowing:
                check_reader(self._tx, queue, reader)
            self._tx.queues.set_watcher(queue, reader, name in new.flowing)
            if name in new.flowing and name not in old.flowing:
                self._tx.epochs.open(queue.id, seq)
            elif name in old.flowing and name not in new.flowing and name in new.graph.spaces:
                self._tx.epochs.close(queue.id, seq)
        for name in new.durable.keys() - old.durable.keys():
            self._tx.epochs.open(queues[name].id, seq)  # what an earlier arc of this name kept is not its own

    # --- events ---

    def _events(self) -> Iterator[tuple[str, Action]]:
        """The changes as meta-space events, each with its domain."""
        old, new = self._old, self._new
        gone = [(domain, arc.name) for arc, _ in _arcs(old, new) for domain in domains_of(old.graph, arc)]
        for domain, name in dict.fromkeys(gone):
            yield domain, Action("deleteArc", {"arcName": name})
        for space in _spaces(old, new):
            yield space.domain, Action("deleteSpace", {"nodeName": space.name})
        for space in _spaces(new, old):
            yield space.domain, Action("addSpace", {"nodeName": space.name})
        for arc, disabled in _arcs(new, old):
            yield arc.domain, Action("addArc", arc_said(arc))
            if disabled:
                yield from self._switched(arc, "disableArc")
        for key in sorted(new.disabled ^ old.disabled):
            was, now = (room_graph.graph.arcs.get(key, (None,))[0] for room_graph in (old, new))
            if was is not None and was == now:
                yield from self._switched(was, "disableArc" if key in new.disabled else "enableArc")

    def _switched(self, arc: Arc, action: str) -> Iterator[tuple[str, Action]]:
        for domain in domains_of(self._new.graph, arc):
            yield domain, Action(action, {"arcName": arc.name})

    def _tell(self, queues: Mapping[str, Queue], domain: str, action: Action) -> None:
        draft = Draft(body_of(action, self._by), "json", None, NO_PROPERTIES)
        self._tx.messages.put(queues[meta_of(domain)], draft)


def _places(room_graph: RoomGraph) -> dict[str, str]:
    """The queues that a graph has, with their kinds."""
    places = {name: META_SPACE if name.startswith(f"{META}:") else SPACE for name in room_graph.graph.spaces}
    return places | dict.fromkeys(room_graph.durable, PARKED)


def _spaces(one: RoomGraph, other: RoomGraph) -> list[Space]:
    """The spaces of one graph that are not in another, or hold something else there."""
    known = other.graph.spaces
    return [
        space
        for name, space in one.graph.spaces.items()
        if not name.startswith(f"{META}:")
        and (name not in known or (known[name].type != space.type and UNTYPED not in (known[name].type, space.type)))
    ]


def _arcs(one: RoomGraph, other: RoomGraph) -> list[tuple[Arc, bool]]:
    """The arcs of one graph, each half for itself, that are not in another or do something else there."""
    arcs = []
    for key, kept in one.kept.items():
        arc = kept.statement
        if isinstance(arc, Arc) and not _is_same(arc, other.kept.get(key)):
            arcs.append((arc, bool(kept.disabled)))
    return arcs


def _is_same(arc: Arc, kept: Kept | None) -> bool:
    return kept is not None and (kept.statement is arc or str(kept.statement) == str(arc))


def with_statements(room_graph: RoomGraph, some: Sequence[Kept]) -> dict[str, Kept]:
    """The kept statements with some added or replaced by name."""
    return {**room_graph.kept, **{key_of(entry.statement): entry for entry in some}}


def without(room_graph: RoomGraph, keys: Sequence[str]) -> dict[str, Kept]:
    return {key: entry for key, entry in room_graph.kept.items() if key not in keys}


def without_domains(room_graph: RoomGraph, domains: set[str]) -> dict[str, Kept]:
    """What stays of a graph when the files of some domains are loaded again: other domains, and what was added at run
    time."""
    return {
        key: entry
        for key, entry in room_graph.kept.items()
        if entry.origin != FILE or entry.statement.domain not in domains
    }
