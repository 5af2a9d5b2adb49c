"""The express lane: the commonest send and receive in as few calls as can be.

Its effect is that of the long way (``Messages.put`` and ``Messages.take``), and a test compares the two.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NoReturn

import apsw

from postroom import faults
from postroom.errors import StoreReplaced
from postroom.model.message import Draft, Message, message_hash
from postroom.store.kernel.base import Conflict, Store
from postroom.store.kernel.journal import APPEND, line_digest, put_digest
from postroom.store.kernel.message_rows import columns, insertion, processing, record
from postroom.store.kernel.queues import ARRIVALS, COUNT
from postroom.store.sqlite.open_files import OpenFiles
from postroom.store.sqlite.session import SqliteSession

_OPEN = f"""
BEGIN IMMEDIATE;
SELECT {ARRIVALS}, q.departed
FROM queues q WHERE q.id = ? AND q.hold = 0 AND q.retired = 0 AND q.command IS NULL AND q.door = 0
    AND NOT EXISTS (SELECT 1 FROM locks l WHERE l.queue = q.id)
"""
# The number of the line is the position of the message.
_PUT = f"{APPEND};{insertion(position='last_insert_rowid()')}"
_RECEIVE = f"""
BEGIN IMMEDIATE;
SELECT {columns(processed="?")}
FROM queues q CROSS JOIN messages m ON m.key = (
    SELECT i.key FROM messages i WHERE i.queue = q.id AND i.state = 1 ORDER BY i.position LIMIT 1
) AND m.queue = q.id AND m.state = 1 AND m.number <= q.departed + 1
WHERE q.id = ? AND q.hold < 2 AND q.retired = 0 AND q.keep = 1
    AND NOT EXISTS (SELECT 1 FROM locks l WHERE l.queue = q.id)
    AND NOT EXISTS (SELECT 1 FROM handouts h WHERE h.queue = q.id)
"""
_TAKE = f"{APPEND};{processing(position='last_insert_rowid()')};{COUNT}"


class ExpressLane(Store):
    session: SqliteSession
    _files: OpenFiles

    @abstractmethod
    def _take_turn(self, label: str) -> None:
        """Wait for the turn of the writers."""

    def send_one(self, queue: int, draft: Draft) -> int | None:
        with self._mutex:
            self._enter()
            committing = False
            try:
                transaction, execute = self._transaction, self.session.execute
                key = transaction.keys.ready()
                if key is None:
                    return None
                now = self.session.clock()
                actor, hash = transaction.journal.actor, message_hash(key, now, None, *draft)
                digest = put_digest(now, key, queue, actor)
                self._take_turn("send")
                counts: list[Any] = execute(_OPEN, (queue,)).fetchall()
                if not counts:
                    execute("ROLLBACK")
                    transaction.keys.give_back(key)
                    return None
                self._files.guard.forbid_recovery()
                arrivals, departed = counts[0]
                line = (now, "put", key, None, None, queue, actor, None, digest)
                execute(_PUT, (*line, key, queue, arrivals + 1, now, *draft, hash, None))
                if faults.armed:
                    _reach_both("send")
                self._files.guard.check_lock()
                committing = True
                execute("COMMIT")
                self._files.check()
                if faults.armed:
                    faults.reach("send.committed")
            except Conflict:
                self._rollback()
                return None
            except BaseException as error:
                self._fail_express("send", error, committing)
            finally:
                self._leave()
            if arrivals == departed:
                self._wake_after_commit()
            return key

    def receive_one(self, queue: int) -> Message | None:
        with self._mutex:
            self._enter()
            committing = False
            try:
                execute, now = self.session.execute, self.session.clock()
                self._take_turn("receive")
                try:
                    rows: list[Any] = execute(_RECEIVE, (now, queue)).fetchall()
                except UnicodeDecodeError:  # the long way reads what is left of it
                    rows = []
                if not rows or not (stored := record(rows[0])).sound:
                    execute("ROLLBACK")
                    return None
                self._files.guard.forbid_recovery()
                key, actor = stored.key, self._transaction.journal.actor
                line = (now, "take", key, stored.last, queue, queue, actor)
                counted = (1, 1, stored.number, queue)
                execute(_TAKE, (*line, None, line_digest(*line), now, key, queue, *counted))
                if faults.armed:
                    _reach_both("receive")
                self._files.guard.check_lock()
                committing = True
                execute("COMMIT")
                self._files.check()
                if faults.armed:
                    faults.reach("receive.committed")
            except (Conflict, apsw.FullError):  # the long way has the reserve
                self._rollback()
                return None
            except BaseException as error:
                self._fail_express("receive", error, committing)
            finally:
                self._leave()
            return Message(stored)

    def _fail_express(self, label: str, error: BaseException, committing: bool) -> NoReturn:
        if committing or isinstance(error, StoreReplaced):
            self._raise_uncommitted(label, error)
        self._rollback()
        self._raise_ours(error)


def _reach_both(label: str) -> None:
    """The express lane begins and is about to commit in one breath."""
    faults.reach(f"{label}.begun")
    faults.reach(f"{label}.committing")
