"""Sends the messages of outgoing gateway queues: each committed message is sent, or ends as an error message.

It is a row of the outbox from the commit that put it into its queue. The result of an attempt (message processed, reply
as a new message, or error message) is one commit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from postroom.engine.dispatch import Attempts, Gateway, Outcome, Tried
from postroom.engine.steps.effects import Document
from postroom.engine.steps.failures import Failure
from postroom.errors import BodyError, EntryRefused, SchemaInvalid
from postroom.gateways.credentials import hidden, hidden_in_reply
from postroom.gateways.media import draft_of
from postroom.gateways.reliable.source import Numbered, Source, give_numbers, note_end
from postroom.gateways.soap.terms import terms_of
from postroom.gateways.soap.transport import SoapTransport
from postroom.gateways.transport import Delivered, Letter, Reply, Transport, Undelivered, guarded
from postroom.limits import GATEWAY_ATTEMPTS, GATEWAY_RUN, OUTBOX_BACKOFF_SECONDS
from postroom.model.key import key_text
from postroom.model.message import Draft, Stored
from postroom.model.moment import to_datetime
from postroom.store.kernel.base import Store
from postroom.store.kernel.batch import Batch, Change, Put, Take
from postroom.store.kernel.message_rows import State
from postroom.store.kernel.outbox import SENDING, Effect
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.endpoints import ANSWER, OUT, REPLY, Port


class Entry(Protocol):
    """How replies and errors enter the room's queues."""

    def entered(
        self, tx: Transaction, queue: Queue, arrived: Sequence[tuple[Draft, Mapping[str, Any]]]
    ) -> list[Put | EntryRefused]: ...

    def failed(
        self, tx: Transaction, failure: Failure, queue: str, document: Document, properties: Mapping[str, Any]
    ) -> Put: ...


class OutgoingGateway(Gateway):
    kind = SENDING
    run = GATEWAY_RUN

    def __init__(self, store: Store, transports: Mapping[str, Transport], entry: Callable[[], Entry]) -> None:
        """``entry`` is called when there is a reply or an error, so that a process that only sends does not load the
        rules' compiler."""
        self._store = store
        soap = transports.get(SoapTransport.name)
        self._source = Source(store, soap) if isinstance(soap, SoapTransport) else None
        self._letters: dict[int, Letter | Undelivered] = {}  # of runs that have begun, read at once
        self._transports = transports
        self._entry = entry

    def act(self, effect: Effect) -> Outcome:
        letter = self._letters.pop(effect.id, None) or self._store.read(lambda tx: _found(tx, effect))
        if isinstance(letter, Undelivered):
            return Outcome(False, {"outcome": str(letter)}, final=True, found=letter)
        policy = _policy(letter)
        try:
            if effect.attempts >= policy.most:
                raise _given_up(effect)
            with guarded(letter.endpoint.name):
                sent: Delivered | Undelivered = self._send(letter)
        except Undelivered as error:
            sent = error
        return _outcome(sent, policy, letter)

    def destination(self, tx: Transaction, effect: Effect) -> str:
        """The endpoint; with reliable messaging the queue, because a sequence belongs to a queue and has its own
        order."""
        port = tx.endpoints.port(str(effect.payload.get("queue")))
        if port is None or port.direction != OUT or _is_reliable(port):
            return effect.destination
        return f"endpoint {port.endpoint}"

    # --- reliable messaging ---

    def attempting(self, tx: Transaction, run: Sequence[Effect]) -> None:
        port = tx.endpoints.port(str(run[0].payload.get("queue")))
        if port is None or port.direction != OUT or not _is_reliable(port):
            return
        endpoint = tx.endpoints.find(port.endpoint)
        if endpoint is not None:
            keys = [effect.message for effect in run if effect.message is not None]
            give_numbers(tx, port.queue, endpoint.mark, keys)

    def act_together(self, run: Sequence[Effect]) -> list[Outcome] | None:
        begun, letters = self._store.read(lambda tx: _begun(tx, run))
        if self._source is None or not any(begun):
            self._letters |= letters
            return None
        sent: dict[int, Delivered | Undelivered] = {}
        ready = []
        for effect, numbered in zip(run, begun, strict=True):
            if numbered is None or isinstance(numbered, Undelivered):
                sent[effect.id] = numbered or Undelivered("it has no number yet", tried=False)
            elif effect.attempts >= _policy(numbered.letter).most:
                sent[effect.id] = _given_up(effect)
            else:
                ready.append((effect, numbered))
        queue = str(run[0].payload["queue"])
        results = self._source.send(queue, [numbered for _, numbered in ready]) if ready else []
        sent |= {effect.id: result for (effect, _), result in zip(ready, results, strict=True)}
        letter = next(numbered.letter for numbered in begun if isinstance(numbered, Numbered))
        return [_outcome(sent[effect.id], _policy(letter), letter) for effect in run]

    def recorded(self, run: Sequence[Effect]) -> None:
        """End a sequence at once if it has a gap or enough messages."""
        for effect in run:
            self._letters.pop(effect.id, None)
        queue = str(run[0].payload["queue"])
        known = self._store.read(lambda tx: _finishing(tx, queue))
        if known is not None and self._source is not None:
            self._source.finish(queue, known)

    def _send(self, letter: Letter) -> Delivered:
        if letter.endpoint.transport == ANSWER:
            _check_answer(letter)
            return Delivered("answered")
        transport = self._transports.get(letter.endpoint.transport)
        if transport is None:
            raise Undelivered(f"this program has no transport {letter.endpoint.transport}")
        return transport.outgoing(letter)

    def failed(self, tx: Transaction, effect: Effect, outcome: Outcome) -> None:
        told = {"attempt": effect.attempts + 1, "retry": outcome.again(effect.attempts)}
        _note_unsent(tx, effect, told | {"outcome": str(outcome.result["outcome"])})

    def conclude(self, tx: Transaction, ended: Tried) -> None:
        together: list[Change] = []  # messages that are sent, and nothing follows from it
        ports: dict[str, Port | None] = {}
        for effect, outcome in ended:
            if not outcome.done:
                tx.outbox.drop(effect)  # its error message has what was to be sent
            note_end(tx, effect.message or 0, done=outcome.done)
            found = _locked(tx, effect)
            if found is None:
                continue
            queue, stored = found
            if queue.name not in ports:
                ports[queue.name] = tx.endpoints.port(queue.name)
            changes = self._following(tx, queue, stored, ports[queue.name], effect, outcome)
            together += changes
            if not all(isinstance(change, Take) for change in changes):
                Batch(tx).write(together, 0)  # what comes next sees what has entered
                together = []
        Batch(tx).write(together, 0)

    def _following(
        self, tx: Transaction, queue: Queue, stored: Stored, port: Port | None, effect: Effect, outcome: Outcome
    ) -> list[Change]:
        """The changes after the last attempt: the message is processed, and there may be an error or a reply."""
        reply, done = outcome.found, outcome.done
        if done and reply is None and port is not None and port.direction == ANSWER:
            done, reply = _answer(tx, stored)
        if outcome.done:
            told = {"outcome": str(outcome.result["outcome"])} if done else {"retry": False, "outcome": str(reply)}
            stored = _noted(tx, queue, stored, "sent" if done else "not-sent", {"effect": effect.id, **told})
        changes: list[Change] = []
        if not done:
            document = Document(stored.key, stored.format, stored.type, stored.body)
            failure, properties = _failure(reply, outcome), json.loads(stored.properties)
            changes.append(self._entry().failed(tx, failure, stored.queue, document, properties))
        elif isinstance(reply, Reply):
            changes += self._reply(tx, stored, reply)
        taken = _taken(tx, queue, stored, failed=not done)
        return changes if taken is None else [taken, *changes]

    def _reply(self, tx: Transaction, stored: Stored, reply: Reply) -> list[Change]:
        """The reply as a message of the incoming gateway at the same port; dropped if there is none."""
        port = tx.endpoints.port(stored.queue)
        name = None if port is None else tx.endpoints.queue_at(port.endpoint, REPLY)
        queue = None if name is None else tx.queues.named(name)
        endpoint = None if port is None else tx.endpoints.find(port.endpoint)
        if queue is None or endpoint is None or not reply.body:
            return []
        body = hidden_in_reply(reply.body, endpoint.settings)
        properties = json.loads(stored.properties)
        system = {"sender": reply.sender, "request": key_text(stored.key)}
        system["connection"] = properties.get("connection", key_text(stored.key))
        try:
            if reply.flaw is not None:
                raise reply.flaw
            (put,) = self._entry().entered(tx, queue, [(draft_of(body, reply.media_type), system)])
            if isinstance(put, EntryRefused):
                raise put
        except BodyError as error:
            text = body.decode(errors="backslashreplace").replace("\0", "\ufffd")
            why = hidden(f"a reply cannot be taken in: {error}", endpoint.settings)
            failure = Failure("message", error.code, why)
            document = Document(stored.key, "text", None, text)
            return [self._entry().failed(tx, failure, queue.name, document, properties)]
        return [put._replace(cause=stored.key)]


def _found(tx: Transaction, effect: Effect) -> Letter | Undelivered:
    """The letter to send, or why it cannot be sent."""
    stored = tx.messages.find(effect.message or 0)
    if stored is None:
        return Undelivered("the message is gone, so nothing is sent")
    if not stored.sound:
        return Undelivered("the message does not match its hash, so nothing is sent")
    port = tx.endpoints.port(stored.queue)
    endpoint = None if port is None else tx.endpoints.find(port.endpoint)
    if port is None or endpoint is None:
        return Undelivered(f"{stored.queue} has no gateway any more")
    if port.direction == ANSWER:  # nothing goes out: whoever asked is waiting inside
        endpoint = endpoint._replace(transport=ANSWER)
    return Letter(
        f"{endpoint.mark}-{key_text(stored.key)}",
        key_text(stored.key),
        stored.queue,
        stored.body,
        stored.format,
        stored.type,
        to_datetime(stored.created),
        json.loads(stored.properties),
        endpoint,
        port.terms,
    )


def _is_reliable(port: Port) -> bool:
    return port.terms is not None and terms_of(port.terms).reliable


def _policy(letter: Letter) -> Attempts:
    settings = letter.endpoint.settings
    return Attempts(
        int(settings.get("attempts", GATEWAY_ATTEMPTS)), float(settings.get("backoff", OUTBOX_BACKOFF_SECONDS))
    )


def _given_up(effect: Effect) -> Undelivered:
    return Undelivered(f"given up: {effect.attempts} attempts ended without a result", final=True)


def _outcome(sent: Delivered | Undelivered, policy: Attempts, letter: Letter) -> Outcome:
    if isinstance(sent, Delivered):
        return Outcome(True, {"outcome": sent.outcome}, policy, found=sent.reply)
    sent.change(lambda text: hidden(text, letter.endpoint.settings))
    return Outcome(
        False,
        {"outcome": str(sent)},
        policy,
        final=sent.final,
        tried=sent.tried,
        after_seconds=sent.after_seconds,
        found=sent,
    )


def _begun(
    tx: Transaction, run: Sequence[Effect]
) -> tuple[list[Numbered | Undelivered | None], dict[int, Letter | Undelivered]]:
    """The messages of a run, with their numbers if they belong to a sequence."""
    reliable = tx.sequences.outgoing(str(run[0].payload["queue"]))
    if reliable:
        return [_numbered(tx, effect) for effect in run], {}
    return [], {effect.id: _found(tx, effect) for effect in run}


def _numbered(tx: Transaction, effect: Effect) -> Numbered | Undelivered | None:
    """A message with its sequence number, or why it cannot be sent; None if it is of no sequence."""
    numbered = tx.sequences.numbered(effect.message or 0)
    if numbered is None:
        return None
    letter = _found(tx, effect)
    if isinstance(letter, Undelivered):
        letter.final = True
        return letter
    return Numbered(letter, numbered.sequence, numbered.number, effect.attempts + 1 >= _policy(letter).most)


def _finishing(tx: Transaction, queue: str) -> Letter | None:
    """A letter that shows where to send the end of a sequence, if one of a queue has ended."""
    port = tx.endpoints.port(queue)
    endpoint = None if port is None else tx.endpoints.find(port.endpoint)
    if port is None or endpoint is None or port.terms is None:
        return None
    if not any(sequence.ended for sequence in tx.sequences.outgoing(queue)):
        return None
    return Letter("", "", queue, "", "xml", None, to_datetime(tx.now), {}, endpoint, port.terms)


def _answer(tx: Transaction, stored: Stored) -> tuple[bool, Undelivered | None]:
    """Whether the message answers a waiting request; if nobody waits, or it was answered already, an error."""
    connection = json.loads(stored.properties).get("connection")
    if isinstance(connection, str) and tx.requests.answer(connection, stored.key):
        return True, None
    return False, Undelivered("no request waits for this answer", disconnected=str(connection))


def _check_answer(letter: Letter) -> None:
    """Raise if the interface does not have this answer; the request goes on waiting."""
    if letter.terms is None:
        return
    try:
        if letter.format != "xml":
            raise SchemaInvalid(why="an answer is XML")
        terms_of(letter.terms).is_fault(letter.body)
    except SchemaInvalid as error:
        raise Undelivered(str(error), final=True, kind="message", code=error.code) from None


def _failure(cause: object, outcome: Outcome) -> Failure:
    why = str(cause) if isinstance(cause, Undelivered) else str(outcome.result.get("outcome", ""))
    if isinstance(cause, Undelivered) and cause.disconnected is not None:
        return Failure("network", "disconnected", why, kinds=(("disconnectedTransport", cause.disconnected),))
    if isinstance(cause, Undelivered):
        return Failure(cause.kind, cause.code, why, kinds=cause.kinds)
    return Failure("network", "refused", why, kinds=(("refusedMessage", ""),))


def note_dropped(tx: Transaction, effect: Effect) -> None:
    """Say in the history of a message that it was not sent, and will not be."""
    _note_unsent(tx, effect, {"retry": False, "outcome": "dropped from the outbox"})


def _note_unsent(tx: Transaction, effect: Effect, told: Mapping[str, Any]) -> None:
    if (found := _locked(tx, effect)) is not None:
        _noted(tx, *found, "not-sent", {"effect": effect.id, **told})


def _locked(tx: Transaction, effect: Effect) -> tuple[Queue, Stored] | None:
    """The message that is sent, as it is while its queue is locked, and that queue; None if the message is gone."""
    stored = tx.messages.find(effect.message or 0)
    while stored is not None and (queue := tx.queues.named(stored.queue)) is not None:
        stored = tx.messages.find(stored.key)  # someone may have taken or moved it before its queue was locked
        if stored is not None and stored.queue == queue.name:
            return queue, stored
    return None


def _noted(tx: Transaction, queue: Queue, stored: Stored, verb: str, told: Mapping[str, Any]) -> Stored:
    """Say in the history of a message what came of sending it, unless someone else has it in hand."""
    if _is_in_hand(tx, queue, stored):
        return stored
    seq = tx.journal.add(verb, message=stored.key, prior=stored.last, source=queue.id, target=queue.id, detail=told)
    tx.messages.set_last_line(stored.key, seq)
    return stored._replace(last=seq)


def _is_in_hand(tx: Transaction, queue: Queue, stored: Stored) -> bool:
    """Whether a step, a consumer or a sphere may have it, which would find it changed."""
    state = tx.messages.state(stored.key)
    waits = state == State.UNPROCESSED and tx.queues.watcher(queue) is None
    return not waits and state != State.PROCESSED


def _taken(tx: Transaction, queue: Queue, stored: Stored, *, failed: bool) -> Take | None:
    """Mark a sent message as processed. If rules watch its queue, the engine does that."""
    if stored.processed is not None or _is_in_hand(tx, queue, stored):
        return None
    return Take(queue, stored, sliced=True, failed=failed)
