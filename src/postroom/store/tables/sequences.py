"""Sequences of reliable messaging (WS-RM 1.1): numbers of sent messages, and messages that arrived early."""

from __future__ import annotations

from collections.abc import Sequence as Many
from typing import NamedTuple

from postroom.store.kernel.session import StoreTable

_OUT = "SELECT id, queue, mark, identifier, upto, ended FROM sequences_out"
_ALL_OUT = f"{_OUT} WHERE queue = ? ORDER BY id"
_ADD_OUT = """
INSERT INTO sequences_out (queue, mark, identifier, upto, ended, created) VALUES (?, ?, NULL, 0, 0, ?) RETURNING id
"""
_NAME_OUT = "UPDATE sequences_out SET identifier = ? WHERE id = ? AND identifier IS NULL"
_END_OUT = "UPDATE sequences_out SET ended = 1 WHERE id = ?"
_COUNT_OUT = "UPDATE sequences_out SET upto = ? WHERE id = ?"
_REMOVE_OUT = "DELETE FROM sequences_out WHERE id = ?"
_UNNUMBER_ALL = "DELETE FROM sequence_numbers WHERE sequence = ?"
_NUMBER = "INSERT INTO sequence_numbers (message, sequence, number) VALUES (?, ?, ?)"
_NUMBERED = "SELECT message, sequence, number FROM sequence_numbers WHERE message = ?"
_NUMBERS = "SELECT count(*) FROM sequence_numbers WHERE sequence = ?"
_UNNUMBER = "DELETE FROM sequence_numbers WHERE message = ?"
_TAKE_BACK = "DELETE FROM sequence_numbers WHERE sequence = ? AND number = ?"

_ADD_IN = "INSERT INTO sequences_in (identifier, endpoint, next, state, touched) VALUES (?, ?, 1, 'open', ?)"
_FIND_IN = "SELECT identifier, endpoint, next, state FROM sequences_in WHERE identifier = ?"
_COUNT_IN = "SELECT count(*) FROM sequences_in WHERE endpoint = ?"
_MOVE_IN = "UPDATE sequences_in SET next = ?, touched = ? WHERE identifier = ?"
_STATE_IN = "UPDATE sequences_in SET state = ?, touched = ? WHERE identifier = ?"
_OLD_IN = "SELECT identifier FROM sequences_in WHERE touched < ? AND (state = 'terminated' OR next = 1)"
_REMOVE_IN = "DELETE FROM sequences_in WHERE identifier = ?"
_UNHOLD_ALL = "DELETE FROM sequence_held WHERE identifier = ?"
_HOLD = "INSERT INTO sequence_held (identifier, number, arrival) VALUES (?, ?, ?)"
_HELD = "SELECT number FROM sequence_held WHERE identifier = ? ORDER BY number"
_HELD_AT = "SELECT arrival FROM sequence_held WHERE identifier = ? AND number = ?"
_UNHOLD = "DELETE FROM sequence_held WHERE identifier = ? AND number = ?"


class OutSequence(NamedTuple):
    id: int
    queue: str
    mark: str  # of the endpoint it leads to
    identifier: str | None  # as the partner calls it; None until it has said so
    upto: int  # the last number that was given
    ended: bool  # no more numbers are given


class InSequence(NamedTuple):
    identifier: str
    endpoint: str
    next: int  # the lowest number that has not come
    state: str  # open, closed, terminated


class Numbered(NamedTuple):
    message: int
    sequence: int
    number: int


class Sequences(StoreTable):
    # --- that we send ---

    def outgoing(self, queue: str) -> list[OutSequence]:
        """The sequences of a queue, oldest first."""
        return [
            OutSequence(id, name, mark, identifier, upto, bool(ended))
            for id, name, mark, identifier, upto, ended in self._session.rows(_ALL_OUT, (queue,))
        ]

    def begin(self, queue: str, mark: str) -> OutSequence:
        id = self._session.number(_ADD_OUT, (queue, mark, self._session.now))
        return OutSequence(id, queue, mark, None, 0, False)

    def name(self, sequence: OutSequence, identifier: str) -> None:
        self._session.run(_NAME_OUT, (identifier, sequence.id))

    def end(self, sequence: int) -> None:
        """End a sequence: it gets no more numbers."""
        self._session.run(_END_OUT, (sequence,))

    def remove(self, sequence: OutSequence) -> None:
        self._session.run(_UNNUMBER_ALL, (sequence.id,))
        self._session.run(_REMOVE_OUT, (sequence.id,))

    def number(self, sequence: OutSequence, messages: Many[int]) -> OutSequence:
        """Number messages in order."""
        rows = [(key, sequence.id, sequence.upto + at) for at, key in enumerate(messages, 1)]
        self._session.many(_NUMBER, rows)
        self._session.run(_COUNT_OUT, (sequence.upto + len(rows), sequence.id))
        return sequence._replace(upto=sequence.upto + len(rows))

    def numbered(self, message: int) -> Numbered | None:
        return self._session.one(Numbered._make, _NUMBERED, (message,))

    def pending(self, sequence: int) -> int:
        """How many of its messages are not acknowledged yet."""
        return self._session.number(_NUMBERS, (sequence,))

    def unnumber(self, message: int) -> None:
        self._session.run(_UNNUMBER, (message,))

    def take_back(self, sequence: int, numbers: Many[int]) -> None:
        """Free numbers that never arrived: their messages get new ones."""
        self._session.many(_TAKE_BACK, [(sequence, number) for number in numbers])

    # --- that we receive ---

    def accept(self, identifier: str, endpoint: str) -> None:
        self._session.run(_ADD_IN, (identifier, endpoint, self._session.now))

    def incoming(self, identifier: str) -> InSequence | None:
        return self._session.one(InSequence._make, _FIND_IN, (identifier,))

    def count(self, endpoint: str) -> int:
        return self._session.number(_COUNT_IN, (endpoint,))

    def move(self, identifier: str, next: int) -> None:
        """Note that everything below a number has arrived."""
        self._session.run(_MOVE_IN, (next, self._session.now, identifier))

    def set_state(self, identifier: str, state: str) -> None:
        self._session.run(_STATE_IN, (state, self._session.now, identifier))

    def hold(self, identifier: str, number: int, arrival: str | None) -> None:
        """Keep an early message; None for one that was refused, or has entered when the sequence ended."""
        self._session.run(_HOLD, (identifier, number, arrival))

    def held(self, identifier: str) -> list[int]:
        return [row[0] for row in self._session.rows(_HELD, (identifier,))]

    def release(self, identifier: str, number: int) -> str | None:
        """Remove and return a kept message."""
        arrival: str | None = self._session.value(_HELD_AT, (identifier, number))
        self._session.run(_UNHOLD, (identifier, number))
        return arrival

    def ranges(self, sequence: InSequence) -> list[tuple[int, int]]:
        """The received ranges, for acknowledgements."""
        used = [(1, sequence.next - 1)] if sequence.next > 1 else []
        for number in self.held(sequence.identifier):
            if used and number == used[-1][1] + 1:
                used[-1] = (used[-1][0], number)
            else:
                used.append((number, number))
        return used

    def forget(self, before: int) -> list[str]:
        """Delete sequences that ended before a time, or were idle since; returns their names."""
        old = [row[0] for row in self._session.rows(_OLD_IN, (before,))]
        for identifier in old:
            self._session.run(_UNHOLD_ALL, (identifier,))
            self._session.run(_REMOVE_IN, (identifier,))
        return old
