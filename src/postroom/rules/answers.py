"""Query results that a transaction needs, computed before it in a separate process.

A missing result ends the transaction (``Unprepared``), which is retried when it is there. Results are used once,
because a query contains the time of its message.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from postroom.engine.schema_process import is_quick
from postroom.errors import SchemaInvalid
from postroom.model.schema import check_schema
from postroom.rules.evaluation.xquery import QueryFailed
from postroom.rules.evaluation.xquery_process import BoundedXQuery
from postroom.store.kernel.base import Unprepared
from postroom.store.kernel.transaction import Transaction

_KEPT_CHARS = 16 * 1024 * 1024  # of documents whose answers nobody has asked for again


class _Question(NamedTuple):
    said: str  # a query, or a schema
    document: str
    is_schema: bool = False


class Answers:
    def __init__(self) -> None:
        self._ready: OrderedDict[_Question, str | QueryFailed] = OrderedDict()
        self._taken: dict[_Question, str | QueryFailed] = {}  # by the transaction that is under way
        self._began = 0  # when that one began

    def of(self, tx: Transaction) -> Answers:
        """The results for a transaction; those used before are dropped."""
        if tx.now != self._began:
            self._began = tx.now
            self._taken.clear()
        return self

    def run(self, query: str, document: str, parameters: Mapping[str, str] | None = None) -> str:
        """The result of a query that was computed before."""
        return self._answer(_Question(query, document))

    def fits(self, schema: str, body: str | None) -> None:
        """Raise unless a message fits a schema; checked before the transaction unless that is fast."""
        if body is None or is_quick(schema, body):
            check_schema(schema, body)
        elif why := self._answer(_Question(schema, body, is_schema=True)):
            raise SchemaInvalid(why=why)

    def _answer(self, question: _Question) -> str:
        answer = self._taken.get(question)
        if answer is None:
            answer = self._ready.pop(question, None)
        if answer is None:
            self._ready.update(self._taken)  # they will be asked for again, from the first on
            wanted = frozenset(self._taken)
            self._taken.clear()
            raise Unprepared(partial(self._work_out, question, wanted))
        self._taken[question] = answer
        if isinstance(answer, QueryFailed):
            raise answer
        return answer

    def _work_out(self, question: _Question, wanted: frozenset[_Question]) -> None:
        answer: str | QueryFailed
        try:
            answer = _unfit(*question[:2]) if question.is_schema else BoundedXQuery().run(*question[:2])
        except QueryFailed as error:
            answer = error
        self._ready[question] = answer
        left = sum(len(other.document) for other in list(self._ready))
        for old in [other for other in list(self._ready) if other != question and other not in wanted]:
            if left <= _KEPT_CHARS:
                return
            self._ready.pop(old, None)  # of a transaction that was given up
            left -= len(old.document)


def _unfit(schema: str, body: str) -> str:
    """Why a message does not fit a schema; empty if it does."""
    try:
        BoundedXQuery().fits(schema, body)
    except SchemaInvalid as error:
        return str(error.facts["why"])
    return ""
