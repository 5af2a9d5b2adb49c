"""The sending side: a message gets a number in a sequence before it is sent, and has it until it is acknowledged.

Numbers are assigned in the commit that notes the attempt, and removed in the commit that notes the end. Several
messages are sent at a time; the partner puts them in order. A sequence with a gap, because a message failed, is
terminated, and the next one begins.

A partner may be unable to acknowledge one-way messages in its responses. It gets them one by one; then the sequence is
closed, and the response to that says which have arrived. The rest get new numbers in the next sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple
from uuid import uuid4

from postroom.gateways.reliable import protocol
from postroom.gateways.soap.terms import Terms, terms_of
from postroom.gateways.soap.transport import Answered, FaultReceived, SoapTransport, action_of
from postroom.gateways.transport import Delivered, Letter, Undelivered, guarded
from postroom.limits import SEQUENCE_AT_ONCE, SEQUENCE_MESSAGES
from postroom.model.soap import Envelope, addressed, name_of
from postroom.model.wsdl import Operation
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.sequences import OutSequence

_CLOSED = "SequenceClosed"
_LOST = ("UnknownSequence", "SequenceTerminated", _CLOSED)
_ENDINGS = 3  # attempts to close or terminate a sequence at once; then it is tried with the next message
_REPEATS = 3  # of a message whose answer was lost, before the next attempt


class Numbered(NamedTuple):
    """A message with its sequence and number."""

    letter: Letter
    sequence: int
    number: int
    last: bool  # there is no attempt after this one


Result = Delivered | Undelivered
Posted = tuple[Operation | None, Answered | Undelivered]  # the operation of a message, and what came of it


def give_numbers(tx: Transaction, queue: str, mark: str, messages: Sequence[int]) -> None:
    """Assign numbers to messages that have none, in order."""
    fresh = [key for key in messages if tx.sequences.numbered(key) is None]
    if not fresh:
        return
    known = tx.sequences.outgoing(queue)
    for sequence in known:
        if not sequence.ended and (sequence.mark != mark or sequence.upto >= SEQUENCE_MESSAGES):
            tx.sequences.end(sequence.id)
    current = known[-1] if known else None
    if current is None or current.ended or current.mark != mark or current.upto >= SEQUENCE_MESSAGES:
        current = tx.sequences.begin(queue, mark)
    tx.sequences.number(current, fresh)


def note_end(tx: Transaction, message: int, *, done: bool) -> None:
    """Note that a message is acknowledged, or has failed: then its sequence has a gap, and ends."""
    numbered = tx.sequences.numbered(message)
    if numbered is not None:
        tx.sequences.unnumber(message)
        if not done:
            tx.sequences.end(numbered.sequence)


class Source:
    def __init__(self, store: Store, soap: SoapTransport) -> None:
        self._store = store
        self._soap = soap
        self._acknowledging: set[str] = set()  # sequences whose partner acknowledges as it answers

    def send(self, queue: str, numbered: Sequence[Numbered]) -> list[Result]:
        """Send messages of one queue: sequence by sequence, each after the previous one has ended."""
        results: dict[int, Result] = {}
        blocked: Undelivered | None = None
        for sequence in self._store.read(lambda tx: tx.sequences.outgoing(queue)):
            members = [member for member in numbered if member.sequence == sequence.id]
            if blocked is None and sequence.ended and not members:
                blocked = self._terminated(sequence, numbered[0].letter)
            if blocked is None and members:
                try:
                    results |= self._transmitted(self._created(sequence, members[0].letter), members)
                except Undelivered as error:
                    results |= {id(member): error for member in members}
                if sequence.ended or any(isinstance(results[id(member)], Undelivered) for member in members):
                    blocked = Undelivered("it waits for the end of the sequence before it", tried=False)
            else:
                results |= {id(member): blocked for member in members if blocked is not None}
        return [results[id(member)] for member in numbered]

    def finish(self, queue: str, letter: Letter) -> None:
        """Terminate ended sequences without a message in progress."""
        for sequence in self._store.read(lambda tx: tx.sequences.outgoing(queue)):
            for _ in range(_ENDINGS):
                if not sequence.ended or self._terminated(sequence, letter) is None:
                    break

    def _created(self, sequence: OutSequence, letter: Letter) -> OutSequence:
        if sequence.identifier is not None:
            return sequence
        answered = self._control(letter, "CreateSequence", protocol.create_sequence())
        content = None if answered is None else answered.content()
        identifier = "" if content is None else protocol.identifier_of(content)
        if not identifier:
            raise Undelivered("the partner made no sequence", after_seconds=1.0)
        self._store.transact("sequence", lambda tx: tx.sequences.name(sequence, identifier))
        return sequence._replace(identifier=identifier)

    def _terminated(self, sequence: OutSequence, letter: Letter) -> Undelivered | None:
        """Terminate a sequence whose messages have all ended; returns why that is not possible yet."""
        if self._store.read(lambda tx: tx.sequences.pending(sequence.id)):
            return Undelivered("it waits for messages of the sequence before it", tried=False)
        if sequence.identifier is not None and sequence.mark == letter.endpoint.mark:
            try:
                body = protocol.ending("TerminateSequence", sequence.identifier, sequence.upto)
                self._control(letter, "TerminateSequence", body)
            except FaultReceived as error:
                if not _is_lost(error):
                    return Undelivered(str(error), tried=False, after_seconds=1.0)
            except Undelivered as error:
                return Undelivered(str(error), disconnected=error.disconnected, after_seconds=error.after_seconds)
        self._store.transact("sequence", lambda tx: tx.sequences.remove(sequence))
        return None

    def _control(self, letter: Letter, name: str, body: str, headers: Sequence[str] = ()) -> Envelope | None:
        action = protocol.action(name)
        heads = [*self._addressed(letter, action, f"urn:uuid:{uuid4()}"), *headers]
        plain = replace(letter, number=uuid4().hex)
        with guarded(letter.endpoint.name):
            return self._soap.exchange(_terms(letter), plain, action, heads, body, patient=True).envelope

    @staticmethod
    def _addressed(letter: Letter, action: str, id: str) -> list[str]:
        return addressed(action, id, to=letter.endpoint.settings["address"], reply_to=protocol.ANONYMOUS)

    def _transmitted(self, sequence: OutSequence, members: Sequence[Numbered]) -> dict[int, Result]:
        posted = self._all_posted(sequence, members)
        identifier = sequence.identifier or ""
        ranges = [pair for _, answered in posted for pair in _acknowledged(answered, identifier)]
        unsaid = [
            member
            for member, (_, answered) in zip(members, posted, strict=True)
            if isinstance(answered, Answered) and not protocol.within(member.number, ranges)
        ]
        if unsaid:
            ranges += self._asked(sequence, members[0].letter)
        final = None
        if (unsaid and not ranges) or any(_is_closed(answered) for _, answered in posted):
            final = self._closed(sequence, members)
        if final is not None:
            ranges = final
            posted = [
                (operation, _accounted(answered, came=protocol.within(member.number, final)))
                for member, (operation, answered) in zip(members, posted, strict=True)
            ]
        return {
            id(member): self._result(member, operation, answered, protocol.within(member.number, ranges))
            for member, (operation, answered) in zip(members, posted, strict=True)
        }

    def _closed(self, sequence: OutSequence, members: Sequence[Numbered]) -> list[tuple[int, int]] | None:
        """Close a sequence and return the ranges that have arrived; messages not in them get new numbers. None if the
        partner does not say.

        It is asked again with the next attempt. The sequence has been marked as ended before.
        """
        self._store.transact("sequence", lambda tx: tx.sequences.end(sequence.id))
        ranges = self._accounted(sequence, members[0].letter)
        if ranges is not None:
            missing = [member.number for member in members if not protocol.within(member.number, ranges)]
            self._store.transact("sequence", lambda tx: tx.sequences.take_back(sequence.id, missing))
        return ranges

    def _accounted(self, sequence: OutSequence, letter: Letter) -> list[tuple[int, int]] | None:
        """What the partner acknowledges of a sequence that it closes."""
        identifier = sequence.identifier or ""
        body = protocol.ending("CloseSequence", identifier, sequence.upto)
        for _ in range(_ENDINGS):
            try:
                envelope = self._control(letter, "CloseSequence", body)
            except FaultReceived:
                return None
            except Undelivered:
                continue
            known = envelope is not None and protocol.accounts_for(envelope, identifier)
            return protocol.acknowledged(envelope, identifier) if envelope is not None and known else None
        return None

    def _all_posted(self, sequence: OutSequence, members: Sequence[Numbered]) -> list[Posted]:
        """Send messages of a sequence side by side if the partner acknowledges in its answers.

        Requests with a reply go one by one: one that arrives out of order gets none.
        """
        if any(_has_reply(member.letter) for member in members):
            return self._one_by_one(sequence, members, 1)
        identifier = sequence.identifier or ""
        first: list[Posted] = []
        if identifier not in self._acknowledging:
            first = [self._posted(sequence, members[0])]
            if not _acknowledged(first[0][1], identifier):
                return self._one_by_one(sequence, members, _REPEATS, first)
            self._acknowledging.add(identifier)
        with ThreadPoolExecutor(min(SEQUENCE_AT_ONCE, len(members)), "postroom-sequence") as pool:
            return [*first, *pool.map(lambda member: self._posted(sequence, member), members[len(first) :])]

    def _one_by_one(
        self, sequence: OutSequence, members: Sequence[Numbered], repeats: int, begun: Sequence[Posted] = ()
    ) -> list[Posted]:
        """Send each message when the one before it was answered."""
        posted = list(begun)
        for member in members[len(begun) :]:
            last = posted[-1][1] if posted else None
            if isinstance(last, Undelivered) and not last.final:
                posted.append((None, Undelivered("it waits for the one before it", tried=False)))
                continue
            for _ in range(repeats):
                made = self._posted(sequence, member)
                if not (isinstance(made[1], Undelivered) and made[1].disconnected):
                    break
            posted.append(made)
        return posted

    def _posted(self, sequence: OutSequence, member: Numbered) -> Posted:
        letter, terms = member.letter, _terms(member.letter)
        operation = None
        try:
            with guarded(letter.endpoint.name):
                operation = self._soap.operation(terms, letter)
                heads = self._addressed(letter, action_of(terms, operation), f"urn:postroom:{letter.number}")
                identifier = sequence.identifier or ""
                heads += [protocol.sequence(identifier, member.number), protocol.ack_requested(identifier)]
                return operation, self._soap.exchange(terms, letter, operation.action, heads, letter.body, patient=True)
        except Undelivered as error:
            return operation, error

    def _asked(self, sequence: OutSequence, letter: Letter) -> list[tuple[int, int]]:
        """Request an acknowledgement."""
        identifier = sequence.identifier or ""
        try:
            envelope = self._control(letter, "AckRequested", "", [protocol.ack_requested(identifier)])
        except Undelivered:
            return []
        return [] if envelope is None else protocol.acknowledged(envelope, identifier)

    def _result(
        self, member: Numbered, operation: Operation | None, answered: Answered | Undelivered, acked: bool
    ) -> Result:
        if isinstance(answered, FaultReceived):
            if _is_lost(answered):
                why = f"the partner has lost the sequence: {answered}; whether it has the message is not known"
                return Undelivered(why, final=True, code="sequence-lost")
            return answered
        if isinstance(answered, Undelivered):
            if acked and answered.tried and (operation is None or operation.output is None or member.last):
                return Delivered("acknowledged")
            return answered
        if not acked:
            return Undelivered("the partner did not acknowledge it")
        assert operation is not None
        try:
            with guarded(member.letter.endpoint.name):
                return Delivered("acknowledged", self._soap.reply(_terms(member.letter), operation, answered))
        except Undelivered as error:
            return error


def _terms(letter: Letter) -> Terms:
    assert letter.terms is not None
    return terms_of(letter.terms)


def _has_reply(letter: Letter) -> bool:
    operation = _terms(letter).contract.sending(name_of(letter.body)) if letter.format == "xml" else None
    return operation is not None and operation.output is not None


def _acknowledged(answered: Answered | Undelivered, identifier: str) -> list[tuple[int, int]]:
    answer = answered.answered if isinstance(answered, FaultReceived) else answered
    if isinstance(answer, Undelivered) or answer.envelope is None:
        return []
    return protocol.acknowledged(answer.envelope, identifier)


def _is_lost(error: FaultReceived) -> bool:
    return _code(error) in _LOST


def _is_closed(answered: Answered | Undelivered) -> bool:
    return isinstance(answered, FaultReceived) and _code(answered) == _CLOSED


def _code(error: FaultReceived) -> str:
    return (error.fault.subcode or error.fault.code).rpartition(":")[2]


def _accounted(answered: Answered | Undelivered, *, came: bool) -> Answered | Undelivered:
    """The result for a message of a closed sequence; arriving after the close is no attempt."""
    if _is_closed(answered):
        return Undelivered("its sequence was closed before it came", tried=came)
    return answered
