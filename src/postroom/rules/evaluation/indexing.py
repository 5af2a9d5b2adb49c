"""Maintains the indexes of rules: an index that a new rule needs is filled from the stored messages.

Values are computed before the loading transaction, in pieces, in a separate process, because the time of a path depends
on untrusted messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NoReturn

from postroom.engine.steps.effects import Document
from postroom.errors import ProgramInvalid
from postroom.limits import EVALUATION_SECONDS, TRYOUT_SECONDS
from postroom.model.definitions import Problem, refuse
from postroom.model.key import key_text
from postroom.model.message import Stored
from postroom.model.types import MessageType
from postroom.rules.compilation.checks import at
from postroom.rules.compilation.compiler import answered, read_alone
from postroom.rules.compilation.plan import Index, Plan
from postroom.rules.compilation.translation import indexed, prolog
from postroom.rules.evaluation.saxon_format import answer, batch, element, parts
from postroom.rules.evaluation.xquery import QueryFailed
from postroom.rules.evaluation.xquery_process import BoundedXQuery
from postroom.rules.language.definitions import Program
from postroom.store.kernel.base import Store, Unprepared
from postroom.store.kernel.slices import Member
from postroom.store.kernel.transaction import Transaction

_PIECE_MESSAGES = 200  # read and evaluated at a time
_PIECE_CHARS = 500_000
# What came while the others were worked out is caught up with in the transaction, if it is little; else one that is
# never still could not be filled. Others wait for it about as long as for a large send.
_LATE_MESSAGES = 20
_LATE_CHARS = 20_000
_LATE_SECONDS = 0.2


class Filling:
    """Computes the values of new indexes, for one load. Raises ``Unprepared`` for what is missing."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._types: Mapping[str, MessageType] = {}
        # By the index, and by what a message is known by: its key and its hash.
        self._values: dict[str, dict[tuple[int, bytes], tuple[str, ...]]] = {}

    def fill(self, tx: Transaction, before: Plan, after: Plan, program: Program) -> None:
        """Empty the indexes that no rule needs any more, and fill new ones."""
        for name in before.indexes:
            if name not in after.indexes:
                tx.slices.empty_index(tx.slices.index(name))
        for name, index in after.indexes.items():
            number = tx.slices.index(name)
            if name not in before.indexes:
                tx.slices.empty_index(number)
                tx.slices.add((), self._members(tx, number, _Question(index, after, program)))

    def _members(self, tx: Transaction, number: int, question: _Question) -> Iterator[Member]:
        if question.plan.types != self._types:  # a message is shown as its type says
            self._types, self._values = question.plan.types, {}
        values = self._values.get(question.index.name, {})
        stored = tx.slices.queue(question.index.queue, bodies=False)
        missing = [message.key for message in stored if (message.key, message.hash) not in values]
        if missing:
            self._catch_up(tx, question, missing)
            values = self._values[question.index.name]
        # Arrival numbers stand in for positions: both grow in the order of arrival, and these are the older ones.
        return (
            Member(number, value, message.number - 2**40, message.key)
            for message in stored
            for value in values[message.key, message.hash]
        )

    def _catch_up(self, tx: Transaction, question: _Question, missing: Sequence[int]) -> None:
        later = Unprepared(partial(self._work_out, question, missing))
        if question.index.name not in self._values or len(missing) > _LATE_MESSAGES:
            raise later
        messages = list(tx.messages.find_many(missing).values())
        if sum(len(message.body) for message in messages) > _LATE_CHARS:
            raise later
        try:
            self._note(question, question.answered(messages, _LATE_SECONDS))
        except QueryFailed:
            raise later from None

    def _work_out(self, question: _Question, missing: Sequence[int]) -> None:
        """Compute values outside the transaction: others send, receive and load meanwhile."""
        self._values.setdefault(question.index.name, {})
        for start in range(0, len(missing), _PIECE_MESSAGES):
            keys = missing[start : start + _PIECE_MESSAGES]
            messages = self._store.read(partial(_found, keys))
            for piece in _pieces(list(messages.values())):
                self._note(question, question.values(piece))

    def _note(self, question: _Question, answers: Mapping[tuple[int, bytes], tuple[str, ...]]) -> None:
        self._values[question.index.name].update(answers)


class _Question:
    """The query of an index."""

    def __init__(self, index: Index, plan: Plan, program: Program) -> None:
        self.index = index
        self.plan = plan
        self._program = program
        self._query = (
            f"{prolog(plan.mark, ())}\nfor $qs:m in /Q{{}}b/Q{{}}m let $qs:message := qs:doc($qs:m/Q{{}}d) return "
            f"{answered(indexed(index, plan.mark))}"
        )

    def values(self, messages: Sequence[Stored]) -> dict[tuple[int, bytes], tuple[str, ...]]:
        """The values of each message; raises if one takes longer than allowed."""
        alone = len(messages) == 1
        try:
            return self.answered(messages, EVALUATION_SECONDS if alone else TRYOUT_SECONDS)
        except QueryFailed as error:
            if alone:
                self._refuse(messages[0], error)
        half = len(messages) // 2
        return self.values(messages[:half]) | self.values(messages[half:])

    def answered(self, messages: Sequence[Stored], seconds: float) -> dict[tuple[int, bytes], tuple[str, ...]]:
        """The values of each message; a damaged one has none, as no rule reads it."""
        answers: dict[tuple[int, bytes], tuple[str, ...]] = {(message.key, message.hash): () for message in messages}
        sound = [message for message in messages if message.sound]
        if not sound:
            return answers
        shown = [
            f"<m>{element(Document(message.key, message.format, message.type, message.body), self.plan)}</m>"
            for message in sound
        ]
        texts = parts(BoundedXQuery(seconds).run(self._query, batch(shown)), self.plan.mark)
        for message, part in zip(sound, texts, strict=True):
            answers[message.key, message.hash] = tuple(value for _, value in answer(part, self.plan.mark).entries)
        return answers

    def _refuse(self, message: Stored, error: QueryFailed) -> NoReturn:
        """Blame the new rules that use the index."""
        what = (
            f"it reads {self.index.queue} by {self.index.expression}, which cannot be worked out for the stored "
            f"message {key_text(message.key)}: {error.what}"
        )
        problems = {}
        for queue in self._program.watched:
            for rule in self._program.rules_of(queue):
                if self.index.name in read_alone(rule, self._program, queue, self.plan.mark).indexes:
                    problems[rule.name] = Problem(at(rule, rule.body, 0), f"rule {rule.name}: {what}", error.code)
        refuse(ProgramInvalid, list(problems.values()))


def _found(keys: Sequence[int], tx: Transaction) -> dict[int, Stored]:
    return tx.messages.find_many(keys)


def _pieces(messages: Sequence[Stored]) -> Iterator[list[Stored]]:
    """Split messages into parts with bodies of limited total length."""
    piece, size = list[Stored](), 0
    for message in messages:
        if piece and size + len(message.body) > _PIECE_CHARS:
            yield piece
            piece, size = [], 0
        piece.append(message)
        size += len(message.body)
    if piece:
        yield piece
