"""Receives from all transports: durable before it is answered, many in one commit.

Invalid input becomes an error message, and its sender gets an answer that says so. A request whose endpoint has a queue
for answers waits for a message with its connection number; after a while it gets a URL to poll.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from time import monotonic

from postroom.engine.steps.effects import Document
from postroom.engine.steps.failures import Failure
from postroom.errors import (
    ArgumentInvalid,
    ArrivalRefused,
    BodyError,
    GatewayUnknown,
    MessageGone,
    PostroomError,
    QueueHeld,
)
from postroom.gateways.media import draft_of
from postroom.gateways.outgoing import Entry
from postroom.gateways.reliable.destination import Refusal
from postroom.gateways.reliable.ordering import Arrived, receipt_of, turned
from postroom.gateways.transport import Arrival
from postroom.limits import BODY_BYTES_MAX, REQUEST_KEPT_SECONDS
from postroom.model.key import key_text
from postroom.model.message import NO_PROPERTIES, Draft, Message, draft_hash
from postroom.model.moment import in_microseconds
from postroom.store.kernel.base import Store, Waiter
from postroom.store.kernel.batch import Batch
from postroom.store.kernel.queues import Hold, Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.endpoints import ANSWER, IN

_SHOWN_BYTES_MAX = BODY_BYTES_MAX // 8  # of what was refused, in its error message
_LOOK_SECONDS = 0.5  # a wake-up ends a sleep at once
_FORGET_SECONDS = 60.0  # between two looks for requests that are too old


@dataclass(frozen=True, slots=True)
class Entered:
    """A message that is stored."""

    key: str
    connection: str | None  # by which its answer is known, if its endpoint has a queue for answers


Outcome = Entered | PostroomError | Refusal
Outcomes = dict[int, Outcome]
#: Is called with the answer to a request, or with the reason why there is none.
Tell = Callable[[Message | PostroomError], object]


class Incoming:
    def __init__(self, store: Store, entry: Entry) -> None:
        self._store = store
        self._entry = entry
        self._forgotten = 0.0

    def accept(self, arrival: Arrival) -> Entered:
        """Store one; when this returns, it is on disk."""
        (outcome,) = self.accept_many([arrival])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def accept_many(self, arrivals: Sequence[Arrival]) -> list[Outcome]:
        """Store many in one commit, in their order; one that is refused leaves the others alone."""
        drafts = [_draft(arrival) for arrival in arrivals]
        return self._store.transact("gateway-in", lambda tx: self._taken_in(tx, arrivals, drafts))

    def _taken_in(
        self, tx: Transaction, arrivals: Sequence[Arrival], drafts: Sequence[Draft | PostroomError]
    ) -> list[Outcome]:
        """The outcome of each; invalid input becomes an error message in the same commit."""
        outcomes = self._accept_all(tx, arrivals, drafts)
        for arrival, outcome in zip(arrivals, outcomes, strict=True):
            if isinstance(outcome, (BodyError, ArrivalRefused)) and arrival.sequence is None:
                self._report(tx, arrival, outcome)
        return outcomes

    def _accept_all(
        self, tx: Transaction, arrivals: Sequence[Arrival], drafts: Sequence[Draft | PostroomError]
    ) -> list[Outcome]:
        outcomes: Outcomes = {}
        for endpoint in dict.fromkeys(arrival.endpoint for arrival in arrivals):
            queue = _queue(tx, endpoint)
            some = [at for at, arrival in enumerate(arrivals) if arrival.endpoint == endpoint]
            if isinstance(queue, PostroomError):
                outcomes.update(dict.fromkeys(some, queue))
                continue
            sequences: dict[str, dict[int, tuple[Arrival, Draft | PostroomError]]] = {}
            good: list[tuple[int, Arrival, Draft]] = []
            for at in some:
                arrival, draft = arrivals[at], drafts[at]
                if arrival.sequence is not None:
                    sequences.setdefault(arrival.sequence[0], {})[at] = (arrival, draft)
                elif isinstance(draft, PostroomError):
                    outcomes[at] = draft
                else:
                    good.append((at, arrival, draft))
            for identifier, members in sequences.items():
                self._enter_sequence(tx, queue, identifier, members, outcomes)
            if good:
                self._enter(tx, queue, endpoint, good, outcomes)
        return [outcomes[at] for at in range(len(arrivals))]

    def _enter_sequence(
        self,
        tx: Transaction,
        queue: Queue,
        identifier: str,
        members: Mapping[int, tuple[Arrival, Draft | PostroomError]],
        outcomes: Outcomes,
    ) -> None:
        """Enter the messages of a sequence that are next in order; keep later ones, and repeat the first outcome for
        duplicates."""
        endpoint = next(iter(members.values()))[0].endpoint
        answers = tx.endpoints.queue_at(endpoint, ANSWER) is not None
        try:
            arrived = {
                at: Arrived(arrival.sequence[1], arrival) for at, (arrival, _) in members.items() if arrival.sequence
            }
            turn = turned(tx, endpoint, identifier, arrived)
        except Refusal as error:
            outcomes.update(dict.fromkeys(members, error))
            return
        outcomes.update(turn.refused)
        for at, number in turn.again.items():
            key = tx.receipts.message(receipt_of(identifier, number)) if answers else None
            outcomes[at] = Entered("", None) if key is None else Entered(key_text(key), tx.requests.connection_of(key))
        fresh: dict[str, tuple[int, Arrival, Draft]] = {}
        for at, number, arrival in turn.due:
            draft = members[at][1] if at in members else _draft(arrival)
            if isinstance(draft, PostroomError):
                outcomes[at] = draft
                self._report(tx, arrival, draft)
            else:
                fresh[receipt_of(identifier, number)] = (at, arrival, draft)
        self._put(tx, queue, fresh, answers, outcomes)
        for at, arrival, _ in fresh.values():
            refusal = outcomes[at]
            if isinstance(refusal, PostroomError):  # its number has come: the error message has what it said
                self._report(tx, arrival, refusal)

    def _enter(
        self,
        tx: Transaction,
        queue: Queue,
        endpoint: str,
        arrived: Sequence[tuple[int, Arrival, Draft]],
        outcomes: Outcomes,
    ) -> None:
        answers = tx.endpoints.queue_at(endpoint, ANSWER) is not None
        fresh: dict[str, tuple[int, Arrival, Draft]] = {}  # by number: the same number in one commit is one message
        again: dict[int, str] = {}
        for at, arrival, draft in arrived:
            number = _receipt(arrival) or f"{at}"
            try:
                earlier = tx.receipts.find(number, _fingerprint(queue, draft)) if arrival.number is not None else None
            except ArgumentInvalid as error:  # a number that was used for something else
                outcomes[at] = error
                continue
            if earlier is None and arrival.token is not None and tx.receipts.message(_token(arrival)) is not None:
                outcomes[at] = ArrivalRefused(gateway=endpoint, why="its token was used before")
            elif earlier is not None:
                outcomes[at] = Entered(key_text(earlier), tx.requests.connection_of(earlier) if answers else None)
            elif number in fresh:
                again[at] = number
            else:
                fresh[number] = (at, arrival, draft)
        self._put(tx, queue, fresh, answers, outcomes)
        for at, number in again.items():
            outcomes[at] = outcomes[fresh[number][0]]

    def _put(
        self,
        tx: Transaction,
        queue: Queue,
        fresh: Mapping[str, tuple[int, Arrival, Draft]],
        answers: bool,
        outcomes: Outcomes,
    ) -> None:
        connections = [arrival.connection or secrets.token_hex(16) for _, arrival, _ in fresh.values()]
        arrived = [
            (draft, {"sender": arrival.sender, "connection": connection})
            for (_, arrival, draft), connection in zip(fresh.values(), connections, strict=True)
        ]
        puts = []
        entered = []
        for (number, (at, arrival, draft)), connection, put in zip(
            fresh.items(), connections, self._entry.entered(tx, queue, arrived), strict=True
        ):
            if isinstance(put, PostroomError):
                outcomes[at] = put
            else:
                puts.append(put._replace(actor=arrival.endpoint))
                entered.append((number, at, arrival, draft, connection))
        keys = Batch(tx).write(puts, 0)
        for key, (number, at, arrival, draft, connection) in zip(keys, entered, strict=True):
            if arrival.number is not None if arrival.sequence is None else answers:
                tx.receipts.add(number, key, _fingerprint(queue, draft))
            if arrival.token is not None:
                tx.receipts.add(_token(arrival), key, _fingerprint(queue, draft))
            if answers:
                tx.requests.add(connection, arrival.endpoint, key)
            outcomes[at] = Entered(key_text(key), connection if answers else None)

    def _report(self, tx: Transaction, arrival: Arrival, error: PostroomError) -> None:
        """Put an error message with as much of the input as can be shown."""
        queue = tx.endpoints.queue_at(arrival.endpoint, IN)
        if queue is None:
            return
        shown = arrival.body[:_SHOWN_BYTES_MAX]
        text = shown.decode(errors="backslashreplace").replace("\0", "\ufffd")
        what = f"from {arrival.sender}: {error}"
        if len(shown) < len(arrival.body):
            what += f"; its first {len(shown)} of {len(arrival.body)} bytes are here"
        failure = Failure("message", error.code, what)
        put = self._entry.failed(tx, failure, queue, Document(0, "text", None, text), {})
        Batch(tx).write([put._replace(actor=arrival.endpoint)], 0)

    def answer_of(self, connection: str, endpoint: str | None = None) -> tuple[bool, Message | None]:
        """Whether a request is known, and its answer if there is one; raises if there never will be.

        Only requests to ``endpoint`` are known.
        """

        def work(tx: Transaction) -> tuple[bool, Message | None]:
            request = tx.requests.find(connection)
            if request is None or endpoint not in (None, request.endpoint):
                return False, None
            if request.response is None:
                if tx.endpoints.queue_at(request.endpoint, ANSWER) is None:
                    raise GatewayUnknown(gateway=request.endpoint, nearest=" that answers requests")
                return True, None
            stored = tx.messages.find(request.response)
            if stored is None:
                raise MessageGone(key=key_text(request.response))
            return True, stored.message()

        return self._store.read(work)

    def forget(self) -> None:
        """Forget requests that can no longer be asked about; called now and then."""
        if monotonic() - self._forgotten > _FORGET_SECONDS:
            self._forgotten = monotonic()
            kept = in_microseconds(REQUEST_KEPT_SECONDS)
            self._store.transact("gateway-forget", partial(_forget, kept=kept))


def _forget(tx: Transaction, kept: int) -> None:
    tx.requests.forget(tx.now - kept)
    for identifier in tx.sequences.forget(tx.now - kept):
        tx.receipts.forget(receipt_of(identifier, 0), receipt_of(identifier, None))


class Answers:
    """Waits for the answers of many requests with one thread, during the ``with`` block."""

    def __init__(self, store: Store, incoming: Incoming) -> None:
        self._store = store
        self._incoming = incoming
        self._lock = threading.Lock()
        self._waiting: dict[str, Tell] = {}  # by connection: what to call with the answer
        self._waiter: Waiter | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="postroom-answers", daemon=True)

    def __enter__(self) -> Answers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        with self._lock:
            if self._waiter is not None:
                self._waiter.wake()
        self._thread.join()

    def wait_for(self, connection: str, tell: Tell) -> None:
        """Call ``tell`` from another thread with the message that answers a request, or with the reason why there will
        be none."""
        with self._lock:
            self._waiting[connection] = tell
            if self._waiter is not None:
                self._waiter.wake()

    def leave(self, connection: str) -> None:
        with self._lock:
            self._waiting.pop(connection, None)

    def _look(self) -> None:
        with self._store.waiter() as waiter:
            self._waiter = waiter
            try:
                while not self._ended.is_set():
                    with self._lock:
                        waiting = list(self._waiting)
                    for connection in waiting:
                        self._tell(connection)
                    waiter.wait(_LOOK_SECONDS)
            finally:
                with self._lock:  # whoever wakes it does so before it is closed
                    self._waiter = None

    def _tell(self, connection: str) -> None:
        outcome: Message | PostroomError | None
        try:
            _, outcome = self._incoming.answer_of(connection)
        except (GatewayUnknown, MessageGone) as error:
            outcome = error
        if outcome is not None:
            with self._lock:
                tell = self._waiting.pop(connection, None)
            if tell is not None:
                tell(outcome)


def _token(arrival: Arrival) -> str:
    return f"gateway {arrival.endpoint} token {arrival.token}"


def _draft(arrival: Arrival) -> Draft | PostroomError:
    """The message, or why it is invalid; checked before anyone waits for the store."""
    try:
        if arrival.flaw is not None:
            return arrival.flaw
        if len(arrival.body) > BODY_BYTES_MAX:
            raise ArrivalRefused(gateway=arrival.endpoint, why=f"it has more than {BODY_BYTES_MAX} bytes")
        return draft_of(arrival.body, arrival.media_type, arrival.properties)
    except (BodyError, ArrivalRefused) as error:
        return error


def _queue(tx: Transaction, endpoint: str) -> Queue | PostroomError:
    """The queue for the messages of an endpoint, locked, or why there is none."""
    name = tx.endpoints.queue_at(endpoint, IN)
    queue = None if name is None else tx.queues.named(name)
    if queue is None or queue.retired:
        return GatewayUnknown(gateway=endpoint, nearest=" that takes messages in")
    if not queue.accepts:
        return QueueHeld(queue=queue.name, hold=Hold(queue.hold).label, verb="accept", level=queue.name)
    return queue


def _fingerprint(queue: Queue, draft: Draft) -> bytes:
    return draft_hash(queue.name, draft._replace(properties=NO_PROPERTIES))  # headers of a repetition may differ


def _receipt(arrival: Arrival) -> str | None:
    """The sender's number as an idempotency key of the room, distinct for each endpoint."""
    if arrival.number is None:
        return None
    digest = blake2b(arrival.number.encode(errors="backslashreplace"), digest_size=16).hexdigest()
    return f"gateway {arrival.endpoint} {digest}"
