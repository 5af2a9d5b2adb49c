"""The order of a sequence: which message is next, which arrived early, and which are duplicates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from postroom.errors import ArrivalRefused, ArrivalTooEarly, PostroomError
from postroom.gateways.reliable.destination import OPEN, TERMINATED, Refusal, known_sequence
from postroom.gateways.transport import Arrival
from postroom.limits import SEQUENCE_WINDOW
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.sequences import InSequence


class Arrived(NamedTuple):
    number: int  # 0 ends the sequence
    arrival: Arrival


@dataclass
class Turn:
    """The outcome for messages of one sequence that arrived together."""

    due: list[tuple[int, int, Arrival]] = field(default_factory=list)  # in their order: place, number, what came
    again: dict[int, int] = field(default_factory=dict)  # by place: the numbers of what has come before, or is kept
    refused: dict[int, PostroomError | Refusal] = field(default_factory=dict)


def turned(tx: Transaction, endpoint: str, identifier: str, arrived: Mapping[int, Arrived]) -> Turn:
    """Store what has arrived, and return what enters the queue now; kept messages have positions below 0."""
    known = known_sequence(tx, identifier, endpoint)
    held = set(tx.sequences.held(identifier))
    turn = Turn()
    fresh = _fresh(known, held, arrived, turn)
    ends = any(number == 0 for number, _ in arrived.values())
    upto = known.next
    for number in sorted(held | set(fresh)):
        if number != upto and not ends:
            continue
        at = fresh.pop(number, -number)
        arrival = arrived[at].arrival if at >= 0 else _kept(tx, endpoint, identifier, number)
        if arrival is not None:
            turn.due.append((at, number, arrival))
        if number == upto:
            upto += 1
        else:  # it enters though one before it never came, which must not count as come
            tx.sequences.hold(identifier, number, None)
    for number, at in fresh.items():
        _keep(tx, identifier, number, arrived[at].arrival)
        turn.again[at] = number
    if upto != known.next:
        tx.sequences.move(identifier, upto)
    if ends and known.state != TERMINATED:
        tx.sequences.set_state(identifier, TERMINATED)
    return turn


def _fresh(known: InSequence, held: set[int], arrived: Mapping[int, Arrived], turn: Turn) -> dict[int, int]:
    """The positions of new messages by number; the outcome of the others is noted in ``turn``."""
    fresh: dict[int, int] = {}
    for at, (number, _) in arrived.items():
        if number < known.next or number in held or number in fresh:  # or 0, which ends the sequence
            turn.again[at] = number
        elif known.state != OPEN:
            code = "SequenceTerminated" if known.state == TERMINATED else "SequenceClosed"
            turn.refused[at] = Refusal(code, "the sequence takes no more messages")
        elif number >= known.next + SEQUENCE_WINDOW:
            turn.refused[at] = ArrivalTooEarly(gateway=known.endpoint, number=number, next=known.next)
        else:
            fresh[number] = at
    return fresh


def receipt_of(identifier: str, number: int | None) -> str:
    """The name of a receipt; that of None sorts after all numbers."""
    return f"sequence {identifier} {'~' if number is None else f'{number:020d}'}"


def _keep(tx: Transaction, identifier: str, number: int, arrival: Arrival) -> None:
    record = {
        "body": arrival.body.decode(errors="backslashreplace").replace("\0", "\ufffd"),
        "media_type": arrival.media_type,
        "sender": arrival.sender,
        "properties": dict(arrival.properties),
        "flaw": None if arrival.flaw is None else str(arrival.flaw),
    }
    tx.sequences.hold(identifier, number, json.dumps(record, ensure_ascii=False))


def _kept(tx: Transaction, endpoint: str, identifier: str, number: int) -> Arrival | None:
    text = tx.sequences.release(identifier, number)
    if text is None:
        return None
    record = json.loads(text)
    flaw = None if record["flaw"] is None else ArrivalRefused(gateway=endpoint, why=record["flaw"])
    return Arrival(
        endpoint,
        record["body"].encode(),
        record["media_type"],
        record["sender"],
        record["properties"],
        flaw=flaw,
        sequence=(identifier, number),
    )
