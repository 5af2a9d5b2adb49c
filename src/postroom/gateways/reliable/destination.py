"""The receiving side: creates sequences, acknowledges what is on disk, and ends sequences.

Messages after a gap are kept; when it is filled, they enter the queue in the same commit. If a sequence ends with a
gap, they enter it anyway, because they were acknowledged.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import uuid4

from postroom.gateways.reliable import protocol
from postroom.limits import SEQUENCES_MAX
from postroom.model.soap import RELIABLE, Envelope
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.sequences import InSequence

OPEN, CLOSED, TERMINATED = "open", "closed", "terminated"


class Refusal(Exception):
    """A fault of reliable messaging; ``code`` is its name in the specification."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


class Control(NamedTuple):
    """The response to an envelope without an application message."""

    action: str
    body: str
    headers: list[str]
    terminated: str | None = None  # a sequence whose kept messages are to be let in


class Destination:
    def __init__(self, store: Store) -> None:
        self._store = store

    def control(self, endpoint: str, envelope: Envelope) -> Control | None:
        """The response to an envelope of the protocol itself; None if it has a message."""
        word = protocol.body_name(envelope)
        if word == "CreateSequence":
            return self._create(endpoint)
        if word in ("CloseSequence", "TerminateSequence"):
            return self._end(endpoint, word, protocol.identifier_of(envelope.content()))
        if word is not None:
            raise Refusal("WSRMRequired", f"{word} is not taken here")
        asked = envelope.headers(RELIABLE, "AckRequested")
        if asked and envelope.content() is None:
            identifier = protocol.identifier_of(asked[0])
            return Control(protocol.action("SequenceAcknowledgement"), "", self.acknowledged(identifier, endpoint))
        return None

    def numbered(self, envelope: Envelope) -> tuple[str, int]:
        """The sequence and number of a message."""
        blocks = envelope.headers(RELIABLE, "Sequence")
        if len(blocks) != 1:
            raise Refusal("WSRMRequired", "this port takes messages of a sequence")
        number = protocol.message_number(blocks[0])
        if number is None:
            raise Refusal("MessageNumberRollover", "the number of the message is none")
        return protocol.identifier_of(blocks[0]), number

    def acknowledged(self, identifier: str, endpoint: str | None = None) -> list[str]:
        """The acknowledgement header of a sequence."""

        def work(tx: Transaction) -> list[str]:
            known = known_sequence(tx, identifier, endpoint)
            return [protocol.acknowledgement(identifier, tx.sequences.ranges(known), known.state != OPEN)]

        return self._store.read(work)

    def _create(self, endpoint: str) -> Control:
        identifier = f"urn:uuid:{uuid4()}"

        def work(tx: Transaction) -> None:
            if tx.sequences.count(endpoint) >= SEQUENCES_MAX:
                raise Refusal("CreateSequenceRefused", "there are too many sequences; terminate some")
            tx.sequences.accept(identifier, endpoint)

        self._store.transact("sequence", work)
        return Control(protocol.action("CreateSequenceResponse"), protocol.create_sequence_response(identifier), [])

    def _end(self, endpoint: str, word: str, identifier: str) -> Control:
        """Close or terminate a sequence.

        Closing refuses later messages; terminating enters kept ones, by an arrival without a number.
        """
        if word == "CloseSequence":

            def work(tx: Transaction) -> None:
                if known_sequence(tx, identifier, endpoint).state == OPEN:
                    tx.sequences.set_state(identifier, CLOSED)

            self._store.transact("sequence", work)
        action = protocol.action(f"{word}Response")
        headers = self.acknowledged(identifier, endpoint)
        return Control(
            action, protocol.ended(word, identifier), headers, identifier if word == "TerminateSequence" else None
        )


def known_sequence(tx: Transaction, identifier: str, endpoint: str | None) -> InSequence:
    """A sequence of an endpoint; raises ``Refusal``."""
    known = tx.sequences.incoming(identifier)
    if known is None or (endpoint is not None and known.endpoint != endpoint):
        raise Refusal("UnknownSequence", "there is no such sequence")
    return known
