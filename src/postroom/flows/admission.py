"""Admission to spaces: an event must have its space's type; in a meta-space it may change the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from postroom.errors import EventInvalid, EventRefused
from postroom.flows.conversion import event
from postroom.flows.graph.by import By
from postroom.flows.graph.policy import prove
from postroom.flows.graph.reflection import published
from postroom.flows.graph.versions import RoomGraphs
from postroom.flows.language.types import UNTYPED, Type
from postroom.model.message import Draft
from postroom.model.types import MessageType
from postroom.store.kernel.queues import META_SPACE, PARKED, Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.types import find_type


class FlowAdmission:
    """Admission for one principal at one broker."""

    def __init__(self, room_graphs: RoomGraphs, by: By) -> None:
        self._room_graphs = room_graphs
        self._by = by

    def __call__(self, tx: Transaction, queue: Queue, drafts: Sequence[Draft]) -> list[Draft]:
        """The events as they are stored in a space; raises, and admits none, if one is invalid."""
        if queue.kind == META_SPACE:
            return list(self._meta(tx, queue, drafts))
        if queue.kind == PARKED:
            raise EventRefused(space=queue.name, why="only its arc puts events there")
        room_graph = self._room_graphs.now(tx)
        if queue.name in room_graph.shut:
            raise EventRefused(space=queue.name, why="its events come from outside; postroom stream brings them")
        type = room_graph.graph.spaces[queue.name].type
        if type == UNTYPED:
            raise EventInvalid(space=queue.name, what="the first arc to it will tell its type", type="no values yet")
        known = {name: find_type(tx, name) for name in {draft.type for draft in drafts} if name is not None}
        if len(drafts) == 1:
            return [event(drafts[0], type, queue.name, known)]
        return list(_events(drafts, type, queue.name, known))

    def _meta(self, tx: Transaction, queue: Queue, drafts: Sequence[Draft]) -> Iterator[Draft]:
        tx.definitions.lock()
        prove(tx, self._by)
        domain, room_graph = queue.name.partition(":")[2], self._room_graphs.now(tx)
        for draft in drafts:
            body, room_graph = published(tx, room_graph, domain, _text(draft, queue.name), self._by)
            yield draft._replace(body=body, format="json", type=None)


def _events(drafts: Sequence[Draft], type: Type, space: str, known: Mapping[str, MessageType]) -> Iterator[Draft]:
    """Admit many events; an error names the one that is refused."""
    for number, draft in enumerate(drafts, 1):
        try:
            yield event(draft, type, space, known)
        except EventInvalid as error:
            raise EventInvalid(space=space, what=f"event {number}: {error.facts['what']}", type=str(type)) from None


def _text(draft: Draft, space: str) -> str:
    if draft.format == "xml":
        raise EventInvalid(space=space, what="it is a Gryphon literal or JSON, not XML", type="a change of the graph")
    return draft.body
