"""Runs XQuery in a child process with time and memory limits, for callers that would block others.

These are sends, loads and dry runs.

``python -m postroom.rules.evaluation.xquery_process`` is that process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from time import process_time

from postroom.engine.bounded_process import BoundedProcesses, Ended, attend, seconds_of
from postroom.engine.schema_process import SchemaTooSlow, check_bounded
from postroom.engine.spark.worker import Bounds
from postroom.limits import EVALUATION_SECONDS, XQUERY_CHECK_MORE_SECONDS, XQUERY_CHECK_SECONDS
from postroom.rules.evaluation.xquery import TOO_MUCH, QueryFailed, saxon


class BoundedXQuery:
    """Like :class:`postroom.rules.evaluation.xquery.Saxon`; raises for a query over the limits of time or memory."""

    def __init__(self, seconds: float = EVALUATION_SECONDS) -> None:
        self._seconds = seconds

    def run(self, query: str, document: str, parameters: Mapping[str, str] | None = None) -> str:
        return _asked([self._seconds, "run", query, document, dict(parameters or {})])

    def fits(self, schema: str, body: str | None) -> None:
        try:
            check_bounded(schema, body, self._seconds)
        except SchemaTooSlow as slow:
            raise QueryFailed(TOO_MUCH, str(slow), 1, 1) from None


class Compilation:
    """Compiles the expressions of one load, which share a budget of time."""

    def __init__(self, size: int = 0) -> None:
        self._left = XQUERY_CHECK_MORE_SECONDS * max(1.0, size / _USUAL_CHARS)

    def check(self, query: str, parameters: Sequence[str] = ()) -> None:
        """Raise if an expression does not compile, or not in time."""
        seconds = XQUERY_CHECK_SECONDS + self._left
        late = f"compiling it exceeded the limit of {seconds:.2g} seconds of processor time, which one load has for all"
        took, *wrong = json.loads(_asked([EVALUATION_SECONDS, "check", query, list(parameters), seconds], late))
        self._left -= min(self._left, max(0.0, took - XQUERY_CHECK_SECONDS))
        if wrong:
            raise QueryFailed(*wrong)


_USUAL_CHARS = 10_000  # of a program
_attendants = BoundedProcesses("postroom.rules.evaluation.xquery_process")


def _asked(request: list[object], late: str = "") -> str:
    try:
        answer = json.loads(_attendants.ask(json.dumps(request).encode()))
    except Ended as end:
        late = late or f"evaluation exceeded the limit of {request[0]:g} seconds"
        raise QueryFailed(TOO_MUCH, "evaluation exceeded the memory limit" if end.in_time else late, 1, 1) from None
    if isinstance(answer, list):
        raise QueryFailed(*answer)
    return str(answer)


def _answer(request: bytes, tell: object) -> bytes:
    _, verb, *rest = json.loads(request)
    answer: object = ""
    try:
        answer = saxon().run(*rest) if verb == "run" else json.dumps(_checked(*rest))
    except QueryFailed as error:
        answer = [error.code, error.what, error.line, error.column]
    return json.dumps(answer).encode()


def _checked(query: str, parameters: Sequence[str], seconds: float) -> list[object]:
    """The time to compile a query, and its error."""
    began = process_time()
    wrong: list[object] = []
    with Bounds(seconds).deadline(0, processor=True):
        try:
            saxon().check(query, parameters)
        except QueryFailed as error:
            wrong = [error.code, error.what, error.line, error.column]
    return [process_time() - began, *wrong]


if __name__ == "__main__":
    saxon()  # before the time counts
    attend(_answer, seconds_of)
