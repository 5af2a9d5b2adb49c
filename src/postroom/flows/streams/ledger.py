"""What the room stores of a stream: its checkpoint, the version for each batch, and the results.

A batch is pinned to a version before it is processed, and committed together with states, messages and errors. A batch
that was pinned and not committed is processed again, with the same version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from postroom.engine.steps.effects import Document
from postroom.engine.steps.failures import Failure, error_body, error_queue
from postroom.errors import BodyError, StreamCheckpoint
from postroom.flows.evaluation.states import StoredStates
from postroom.flows.graph.versions import RoomGraph, RoomGraphs
from postroom.flows.streams.routing import Ends, Refused
from postroom.model.message import NO_PROPERTIES, Draft
from postroom.store.kernel.base import Store
from postroom.store.kernel.batch import NOWHERE, Admit, Batch, Put
from postroom.store.kernel.queues import SYSTEM_ERRORS, Admission, Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.streams import Stream

_CODE = "PF0001"  # as of events that were published
_AGENT = "stream"


class Pinned(NamedTuple):
    """A batch with the version of its graph."""

    stream: Stream
    graph: RoomGraph


@dataclass
class Done:
    """The results of a batch, before they are committed."""

    states: Sequence[StoredStates] = ()
    stored: dict[str, Sequence[str]] = field(default_factory=dict)  # events by space
    errors: Sequence[Refused] = ()
    figures: dict[str, int] = field(default_factory=dict)


class Waits(Exception):
    """A queue that should take messages is on hold."""


class Ledger:
    def __init__(
        self, store: Store, room_graphs: RoomGraphs, admit: Admit, name: str, fence: Callable[[Transaction], None]
    ) -> None:
        self._store = store
        self._room_graphs = room_graphs
        self._admit = admit
        self._name = name
        self._fence = fence  # raises unless the stream is still ours

    def pin(self, batch: int) -> Pinned | None:
        """The graph for a batch, the same at each repetition; None if the batch is committed."""

        def work(tx: Transaction) -> Pinned | None:
            self._fence(tx)
            stream = self._stream(tx)
            if batch == stream.batch and stream.done:
                return None
            if batch != stream.batch:
                if batch != stream.batch + 1 or not stream.done:
                    why = f"its checkpoint begins batch {batch}, and the room has batch {stream.batch}"
                    raise StreamCheckpoint(stream=self._name, why=f"{why}: one of them is an older copy")
                stream = stream._replace(batch=batch, version=tx.definitions.version(), done=False)
                tx.streams.put(stream)
            return Pinned(stream, self._room_graphs.at(tx, stream.version))

        return self._store.transact("stream-pin", work)

    def finish(self, pinned: Pinned, done: Done) -> None:
        """Commit the results of a batch; raises ``Waits`` for a queue on hold."""

        def work(tx: Transaction) -> None:
            self._fence(tx)
            stream = self._stream(tx)
            assert (stream.batch, stream.done) == (pinned.stream.batch, False)
            known = self._room_graphs.now(tx).state_names
            for state in done.states:
                if state.arc in known:  # of an arc that has gone meanwhile, nobody will ask
                    state.write(len(state.writes))
            self._put(tx, pinned.graph, done.stored, done.errors)
            figures = {f"{name}_count": number for name, number in sorted(done.figures.items())}
            tx.streams.finish(pinned.stream, figures)

        self._store.transact("stream", work)

    def _stream(self, tx: Transaction) -> Stream:
        stream = tx.streams.find(self._name)
        if stream is None:
            raise StreamCheckpoint(stream=self._name, why="the room has forgotten it")
        return stream

    def _put(
        self, tx: Transaction, graph: RoomGraph, made: Mapping[str, Sequence[str]], refused: Sequence[Refused]
    ) -> None:
        targets = [tx.queues.named_to_read(name) for name, bodies in made.items() if bodies]
        ids = [queue.id for queue in targets if queue is not None and not queue.retired]
        error_queue(tx)
        errors_at = tx.queues.named_to_read(SYSTEM_ERRORS)
        assert errors_at is not None
        if refused:
            ids.append(errors_at.id)
        queues = {queue.name: queue for queue in map(tx.queues.locked, sorted(ids))}
        errors = [*refused]
        puts: list[tuple[Put, bool]] = []
        for name in (name for name in made if name in queues):
            if not queues[name].accepts:
                raise Waits(name)
            puts += self._let_in(tx, queues[name], made[name], errors, Ends(graph).passed(name))
        if errors:
            queue = queues.get(SYSTEM_ERRORS) or tx.queues.locked(errors_at.id)
            puts += [(Put(queue, _error(error), None, _AGENT), False) for error in errors]
        batch = Batch(tx)
        batch.reserve(len(puts) + sum(passed for _, passed in puts), len(puts))
        for (queue, draft, cause, actor, places, due), passed in puts:
            batch.put(queue, *draft[:4], cause, actor, places, due, passed)
        batch.finish(0)

    def _let_in(
        self, tx: Transaction, queue: Queue, bodies: Sequence[str], errors: list[Refused], passed: bool
    ) -> list[tuple[Put, bool]]:
        """Messages of a space, after admission by other capabilities."""
        left = queue.admission & ~int(Admission.FLOWS | Admission.SENDING)
        drafts = [Draft(body, "json", None, NO_PROPERTIES) for body in bodies]
        if not left:
            return [(Put(queue, draft, None, _AGENT, NOWHERE), passed) for draft in drafts]
        entries: list[tuple[Put, bool]] = []
        for draft in drafts:
            try:
                (put,) = self._admit(tx, queue._replace(admission=left), [draft])
            except BodyError as error:
                errors.append(Refused(queue.name, str(error), draft.body))
            else:
                entries.append((put, passed))
        return entries


def _error(refused: Refused) -> Draft:
    failure = Failure("application", _CODE, refused.why, refused.arc)
    return Draft(
        error_body(failure, refused.space, 0, Document(0, "json", None, refused.body)), "xml", None, NO_PROPERTIES
    )
