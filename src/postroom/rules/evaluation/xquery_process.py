"""Runs XQuery in a child process with time and memory limits, for callers that would block others.

These are sends, loads and dry runs.

``python -m postroom.rules.evaluation.xquery_process`` is that process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from postroom.engine.bounded_process import BoundedProcesses, Ended, attend
from postroom.engine.schema_process import SchemaTooSlow, check_bounded
from postroom.engine.spark.worker import Bounds
from postroom.limits import EVALUATION_SECONDS, XQUERY_CHECK_SECONDS
from postroom.rules.evaluation.xquery import TOO_MUCH, QueryFailed, saxon


class BoundedXQuery:
    """As :class:`postroom.rules.evaluation.xquery.Saxon`; what takes too long or too much memory fails."""

    def __init__(self, seconds: float = EVALUATION_SECONDS) -> None:
        self._seconds = seconds

    def run(self, query: str, document: str, parameters: Mapping[str, str] | None = None) -> str:
        return _asked([self._seconds, "run", query, document, dict(parameters or {})])

    def fits(self, schema: str, body: str | None) -> None:
        try:
            check_bounded(schema, body, self._seconds)
        except SchemaTooSlow as slow:
            raise QueryFailed(TOO_MUCH, str(slow), 1, 1) from None

    def check(self, query: str, parameters: Sequence[str] = ()) -> None:
        _asked([self._seconds, "check", query, list(parameters)], _COMPILED_LATE)


_COMPILED_LATE = f"compiling it exceeded the limit of {XQUERY_CHECK_SECONDS:g} seconds of processor time"
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


def _seconds(request: bytes) -> float:
    return float(request[1 : request.index(b",")])


def _answer(request: bytes, tell: object) -> bytes:
    _, verb, *rest = json.loads(request)
    answer: object = ""
    try:
        if verb == "run":
            answer = saxon().run(*rest)
        else:
            with Bounds(XQUERY_CHECK_SECONDS).deadline(len(request), processor=True):
                saxon().check(*rest)
    except QueryFailed as error:
        answer = [error.code, error.what, error.line, error.column]
    return json.dumps(answer).encode()


if __name__ == "__main__":
    saxon()  # before the time counts
    attend(_answer, _seconds)
