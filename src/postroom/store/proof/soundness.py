"""Checks stored data: hashes, chains of the journal, counts of queues.

Read-only. The caller says how much; everything takes as long as reading the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from postroom.limits import PAGE_ROWS
from postroom.store.kernel.message_rows import STORED, record
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.session import StoreTable
from postroom.store.kernel.statement import Statement

_PAGE = f"""
SELECT {STORED} FROM messages m JOIN queues q ON q.id = m.queue WHERE m.key > ? AND m.state < 2 ORDER BY m.key LIMIT ?
"""
_NTH_NEWEST = "SELECT key FROM messages ORDER BY key DESC LIMIT 1 OFFSET ?"
_SET_ASIDE = """
SELECT m.key, q.name FROM queues q JOIN messages m ON m.queue = q.id AND m.state = 2 ORDER BY m.key LIMIT ?
"""
# What was archived is elsewhere, and of heartbeats older lines may be forgotten; postroom verify looks at both.
_LOOSE = """
SELECT m.key FROM messages m WHERE m.key > ?
    AND coalesce(m.last, m.position) > (SELECT coalesce(max(last), 0) FROM archives)
    AND NOT EXISTS (SELECT 1 FROM journal j WHERE j.seq = coalesce(m.last, m.position) AND j.message = m.key)
    AND NOT EXISTS (SELECT 1 FROM queues q WHERE q.id = m.queue AND q.kind = 'alive')
ORDER BY m.key LIMIT ?
"""
_LOOSE_DEPARTED = """
SELECT d.key FROM departed d WHERE d.key > ?
    AND d.last > (SELECT coalesce(max(last), 0) FROM archives)
    AND NOT EXISTS (SELECT 1 FROM journal j WHERE j.seq = d.last AND j.message = d.key)
ORDER BY d.key LIMIT ?
"""
_TORN = """
SELECT j.message, j.seq FROM journal j WHERE j.seq > ? AND j.prior > (SELECT coalesce(max(last), 0) FROM archives)
    AND NOT EXISTS (SELECT 1 FROM journal p WHERE p.seq = j.prior AND p.message = j.message)
    AND NOT EXISTS (SELECT 1 FROM queues q WHERE q.id = j.source AND q.kind = 'alive')
ORDER BY j.seq LIMIT ?
"""
_SINCE = "SELECT count(*) FROM messages WHERE queue = ? AND state = 1 AND created > ?"
# By the rows themselves: an index that has lost one would count it out.
_BY_ROWS = Statement("messages NOT INDEXED", "messages")
_COUNTED = "SELECT queue, state, count(*) FROM " + _BY_ROWS + " WHERE state < 2 GROUP BY queue, state"


class Place(NamedTuple):
    """A message with its queue."""

    key: int
    queue: str


class Gap(NamedTuple):
    """A gap in a message's history, or a line without a valid message."""

    key: int | None
    line: int | None


class Soundness(StoreTable):
    def unsound(self, sample: int | None, limit: int) -> tuple[int, list[Place]]:
        """How many messages were read, and the damaged ones; ``sample`` limits it to the newest."""
        looked, unsound = 0, []
        for stored in map(record, self._session.pages(_PAGE, PAGE_ROWS, after=self._behind(sample))):
            looked += 1
            if not stored.sound:
                unsound.append(Place(stored.key, stored.queue))
        return looked, unsound[:limit]

    def set_aside(self, limit: int) -> list[Place]:
        """Messages that were set aside as damaged."""
        return [Place(*row) for row in self._session.rows(_SET_ASIDE, (limit,))]

    def torn(self, sample: int | None, newest: int, limit: int) -> list[Gap]:
        """Gaps in the journal's histories of messages; ``newest`` is its last number."""
        after, since = self._behind(sample), 0 if sample is None else newest - sample
        asked = ((_LOOSE, after), (_LOOSE_DEPARTED, after), (_TORN, since))
        rows = [row for statement, behind in asked for row in self._session.rows(statement, (behind, limit))]
        return list(dict.fromkeys(map(_gap, rows)))[:limit]

    def since(self, queue: Queue, moment: int) -> int:
        """How many unprocessed messages of a queue are younger than a moment."""
        return self._session.number(_SINCE, (queue.id, moment))

    def counts(self) -> dict[tuple[int, int], int]:
        """The number of messages by queue and state, counted one by one."""
        return {(queue, state): count for queue, state, count in self._session.rows(_COUNTED)}

    def _behind(self, sample: int | None) -> int:
        """The key after which the newest messages are."""
        return 0 if sample is None else self._session.value(_NTH_NEWEST, (sample,)) or 0


def _gap(row: Sequence[Any]) -> Gap:
    key, *line = row
    return Gap(key, None) if isinstance(key, int) else Gap(None, line[0])
