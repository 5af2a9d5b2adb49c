"""Answers of executors for a step, in parts, until the step is committed or abandoned.

An answer is identified by the engine's lease number, step, job and chunk, so a second attempt finds it there.
"""

from __future__ import annotations

from collections import defaultdict

from postroom.limits import STAGED_PART_BYTES
from postroom.store.kernel.session import StoreTable

_FIRST = """
INSERT INTO staged (fence, step, job, chunk, part, said) VALUES (?, ?, ?, ?, 0, ?)
ON CONFLICT (fence, step, job, chunk, part) DO NOTHING
"""
_MORE = "INSERT INTO staged (fence, step, job, chunk, part, said) VALUES (?, ?, ?, ?, ?, ?)"
_FIND = "SELECT chunk, said FROM staged WHERE fence = ? AND step = ? AND job = ? ORDER BY chunk, part"
_CLEAR = "DELETE FROM staged WHERE fence < ? OR (fence = ? AND (step = ? OR step < ?))"
_COUNT = "SELECT count(*) FROM staged"


class Staging(StoreTable):
    def add(self, fence: int, step: int, job: int, chunk: int, answer: bytes) -> bool:
        """Store an answer; False if another attempt has stored one."""
        first, *more = [answer[at : at + STAGED_PART_BYTES] for at in range(0, max(len(answer), 1), STAGED_PART_BYTES)]
        if self._session.run(_FIRST, (fence, step, job, chunk, first)) == 0:
            return False
        self._session.many(_MORE, [(fence, step, job, chunk, part, piece) for part, piece in enumerate(more, 1)])
        return True

    def answers(self, fence: int, step: int, job: int) -> dict[int, bytes]:
        """The answers of a job by chunk."""
        answers: defaultdict[int, list[bytes]] = defaultdict(list)
        for chunk, part in self._session.rows(_FIND, (fence, step, job)):
            answers[chunk].append(part)
        return {chunk: b"".join(parts) for chunk, parts in answers.items()}

    def clear(self, fence: int, step: int, before: int) -> None:
        """Delete the answers of a step, of all steps before another one, and of earlier engines."""
        self._session.run(_CLEAR, (fence, fence, step, before))

    @property
    def parts(self) -> int:
        """The number of stored parts."""
        return self._session.number(_COUNT)
