"""The fast path on PostgreSQL: the most frequent send, receive, lease and acknowledgement, each one function call.

Its effect is that of the general path (``Messages``, ``Deliveries``); tests compare the two. It locks a queue shared,
the general path exclusively (decisions 0054 and 0064). ``IN_FORCE`` in ``store/migrations`` names the module that has
the text of each function.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from time import monotonic_ns
from typing import LiteralString, TypeVar

import psycopg

from postroom import faults
from postroom.errors import PostroomError, StoreError
from postroom.limits import (
    CALM_LOOKS,
    FOLD_LINES,
    KEY_RESERVE_MAX,
    KEYS_SENT_MIN,
    SERVER_LANES_MAX,
    SERVER_TIME_SECONDS,
)
from postroom.model.message import Draft, Message, message_hash, message_hashes
from postroom.model.moment import in_microseconds, system_clock
from postroom.store.kernel.base import Conflict, Lent, Receipt, Sending, Store
from postroom.store.kernel.journal import put_digest
from postroom.store.kernel.message_rows import record
from postroom.store.kernel.session import Row
from postroom.store.postgres.call import Call, RecordCall
from postroom.store.postgres.session import PostgresSession

T = TypeVar("T")

_SEND = Call("SELECT postroom_send($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)", "nnntttbtbn", "n")
_SEND_MANY: LiteralString = "SELECT postroom_send_many(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
_STORED = "ntnntttbtnnnn"  # the columns of ``Stored``
# Key, time, place, number, last line and the line of the call, then others; behind them cause, queue and the rest.
_RECEIVE = RecordCall("SELECT postroom_receive($1, $2, $3)", "ntn", 7, "nttttbt")
_LEASE = RecordCall("SELECT postroom_lease($1, $2, $3, $4, $5)", "nttnn", 8, "nttttbt")
_LEASE_MANY = Call("SELECT * FROM postroom_lease_many($1, $2, $3, $4, $5, $6)", "nttnnn", f"{_STORED}nnn")
_DONE = Call("SELECT postroom_done($1, $2, $3)", "ntn", "n")
_DONE_MANY = Call("SELECT * FROM postroom_done_many($1, $2, $3)", "ltn", "nn")
# The lease comes second, because it is given something of the end of the other; if there was none, of no queue.
_TURN = Call(
    "SELECT d.line, postroom_lease($4 + 0 * d.line, $2, $5, $6, $3)"
    " FROM (SELECT postroom_done($1, $2, $3) AS line OFFSET 0) d",
    "ntnntn",
    "nb",
)
_CALM: LiteralString = "SELECT postroom_calm(%s)"
_CALM_AT: LiteralString = "SELECT postroom_calm(source) FROM journal WHERE seq = %s"
_NAME: LiteralString = "SELECT name FROM queues WHERE id = %s"
_KEYS: LiteralString = "SELECT postroom_keys(%s)"
_DAMAGED = "it no longer says what was sent"


class PostgresExpress(Store):
    session: PostgresSession
    _looks = 0  # of calls that had to look at more than the tally of a queue
    _told = (0, 0)  # the server's time, and ours by a clock that nobody sets, when it was told; microseconds

    def __init__(self, session: PostgresSession, actor: str) -> None:
        super().__init__(session, actor)
        self._names: dict[int, str] = {}  # of queues
        self._seen: dict[int, int] = {}  # of queues: under which number of changes each could be sent to

    def _set_time(self, now: int) -> None:
        self._told = (now, monotonic_ns() // 1000)

    def _server_time(self) -> int | None:
        """The server's current time; None if it was not read recently."""
        clock = self.session.clock
        if clock is not system_clock:
            return clock()
        told, at = self._told
        since = monotonic_ns() // 1000 - at
        return told + since if told and since < in_microseconds(SERVER_TIME_SECONDS) else None

    def send_one(self, queue: int, draft: Draft, receipt: Receipt | None = None) -> int | None:
        if receipt is not None:
            return None
        with self._mutex:
            keys, now = self._transaction.keys, self._server_time()
            if now is None:
                return None
            self._enter()  # not by ``_entered``, which takes longer
            try:
                key = keys.ready() or self._more_keys()
                if key is None:
                    return None
                actor, hash = self.actor, message_hash(key, now, None, *draft)
                body, form, _, properties = draft
                digest = put_digest(now, key, queue, actor)
                values = (queue, key, now, body, form, properties, hash, actor, digest, self._seen.get(queue))
                connection = self.session.connection
                answer = self._called("send", lambda: _SEND.number(connection, values))
                if answer is None:
                    keys.give_back(key)
                    return None
                self._sent(queue, answer, 1)
                return key
            finally:
                self._leave()

    def send_some(self, queue: int, drafts: Sequence[Draft]) -> Sequence[int] | None:
        with self._mutex:
            now = self._server_time()
            if now is None:
                return None
            with self._entered():
                count, reserved = len(drafts), self._transaction.keys
                if not reserved.has(count) and count <= KEY_RESERVE_MAX:
                    self._reserve(count)
                keys = reserved.ready_many(count)
                if keys is None:
                    return None
                actor, hashes = self.actor, list(message_hashes(keys, now, None, drafts))
                digests = [put_digest(now, key, queue, actor) for key in keys]
                bodies, forms, _, properties = map(list, zip(*drafts, strict=True))
                seen = self._seen.get(queue)
                values = (queue, list(keys), now, bodies, forms, properties, hashes, actor, digests, seen)
                execute = self.session.connection.execute
                answer = self._called("send-many", lambda: execute(_SEND_MANY, values).fetchall()[0][0])
                if answer is None:
                    reserved.give_back(keys[0])
                    return None
                self._sent(queue, answer, count)
                return keys

    def _sent(self, queue: int, answer: int, count: int) -> None:
        """Take note of the answer to a send: its last line, or below zero the number of changes at its look."""
        if answer < 0:
            self._seen[queue] = -answer
        else:
            self._fold(queue, answer, count)

    def _given_time(self) -> int | None:
        """A test clock's time; None if the server's time counts."""
        clock = self.session.clock
        return None if clock is system_clock else clock()

    def send_each(self, sends: Sequence[Sending]) -> list[int | PostroomError | None]:
        """Sends to one queue share a commit; a server groups commits of several connections anyway."""
        outcomes: list[int | PostroomError | None] = [None] * len(sends)
        groups: dict[int, list[int]] = {}
        for place, sending in enumerate(sends):
            if sending.receipt is None and sending.confirms is None and sending.actor == self.actor:
                groups.setdefault(sending.queue, []).append(place)
        for queue, places in groups.items():
            told: Sequence[int | PostroomError | None]
            try:
                told = self.send_some(queue, [sends[place].draft for place in places]) or [
                    self.send_one(queue, sends[place].draft) for place in places
                ]
            except PostroomError as error:
                told = [error if error.happened != "no" else None] * len(places)
            for place, outcome in zip(places, told, strict=True):
                outcomes[place] = outcome
        return outcomes

    def receive_one(self, queue: int) -> Message | None:
        with self._mutex:
            with self._entered():
                name = self._names.get(queue) or self._learned(queue)
                values = (queue, self.actor, self._given_time())
                connection = self.session.connection
                row = self._called("receive", lambda: _RECEIVE.told(connection, values))
                if row is None:
                    return None
                key, created, place, number, last, line, now, cause, looked, type, form, body, hash, properties = row
                stored = record(
                    (key, name, created, now, type, form, body, hash, properties, cause, place, number, last)
                )
                if stored.sound:
                    self._fold(queue, line, 1, looked is not None)
                    return Message(stored)
            # The long way sets it aside.
            self.transact("receive", lambda tx: tx.handouts.put_back(queue, stored, _DAMAGED))
            return None

    def lease_one(self, queue: int, owner: str, microseconds: int) -> Lent | None:
        with self._mutex:
            with self._entered():
                name = self._names.get(queue) or self._learned(queue)
                values = (queue, self.actor, owner, microseconds, self._given_time())
                connection = self.session.connection
                row = self._called("hand-out", lambda: _LEASE.told(connection, values))
                if row is None:
                    return None
                lent, looked = _lent(name, row)
                self._fold(queue, lent.fence, 1, looked)
            sound = self._sound([lent])
            return sound[0] if sound else None

    def lease_some(self, queue: int, owner: str, microseconds: int, most: int) -> list[Lent] | None:
        with self._mutex:
            with self._entered():
                name = self._names.get(queue) or self._learned(queue)
                values = (queue, self.actor, owner, microseconds, self._given_time(), most)
                connection = self.session.connection
                rows = self._called("hand-out", lambda: _LEASE_MANY.made(connection, values))
                if not rows or rows[0][0] is None:
                    return None
                lent = [Lent(record((row[0], name, *row[2:-3])), *row[-3:]) for row in rows]
                self._fold(queue, lent[-1].fence, len(lent), rows[0][1] is not None)
            return self._sound(lent)

    def _sound(self, lent: list[Lent]) -> list[Lent] | None:
        """Sound leases; damaged messages are released, and the general path sets them aside."""
        sound = [loan for loan in lent if loan.stored.sound]
        if len(sound) != len(lent):
            fences = [loan.fence for loan in lent if not loan.stored.sound]
            self.transact("release", lambda tx: [tx.deliveries.release(fence) for fence in fences])
        return sound or None

    def turn_one(self, fence: int, queue: int, owner: str, microseconds: int) -> tuple[bool, Lent | None]:
        with self._mutex:
            with self._entered():
                name = self._names.get(queue) or self._learned(queue)
                values = (fence, self.actor, self._given_time(), queue, owner, microseconds)
                connection = self.session.connection
                answer = self._called("done", lambda: _TURN.made(connection, values)[0])
                if answer is None or answer[0] is None:
                    return False, None
                row = _LEASE.record(answer[1])
                if row is None:
                    self._fold(queue, answer[0], 2)
                    return True, None
                lent, looked = _lent(name, row)
                self._fold(queue, lent.fence, 2, looked)
            sound = self._sound([lent])
            return True, sound[0] if sound else None

    def done_one(self, fence: int) -> bool:
        return self._done(_DONE, fence, 1)

    def done_some(self, fences: Sequence[int]) -> bool:
        return self._done(_DONE_MANY, list(fences), len(fences))

    def _done(self, call: Call, fences: int | list[int], count: int) -> bool:
        with self._mutex, self._entered():
            connection, values = self.session.connection, (fences, self.actor, self._given_time())
            row = self._called("done", lambda: call.made(connection, values)[0])
            if row is None or row[-1] is None:
                return False
            self._fold(None, row[-1], count)
            return True

    def _learned(self, queue: int) -> str:
        """The name of a queue; cached, because it never changes. Called before anything is taken that could be lost."""
        rows = self._asked(_NAME, queue)
        name = self._names[queue] = str(rows[0][0]) if rows else ""
        return name

    def reserve_keys(self, count: int) -> None:
        with self._mutex, self._entered():
            if not self._transaction.keys.has(count):
                self._reserve(count)

    def _more_keys(self) -> int | None:
        """A key of a new block; None if there is none."""
        self._reserve(KEYS_SENT_MIN)
        return self._transaction.keys.ready()

    def _reserve(self, count: int) -> None:
        """Take a new block of at least so many keys before anything is locked; none if they are lent.

        If that fails, the block may be lost, which leaves a gap.
        """
        keys = self._transaction.keys
        size = max(keys.block, count)
        stop = self._asked(_KEYS, size)[0][0]
        if stop is not None:
            keys.use(stop - size, stop)

    def _asked(self, statement: LiteralString, value: int) -> list[Row]:
        """The result of a statement, outside of a transaction."""
        try:
            return self.session.connection.execute(statement, (value,)).fetchall()
        except psycopg.Error as error:
            if self.session.connection.closed:
                self._stop("the connection to the database is gone")
            self._raise_ours(error)

    def _called(self, label: str, call: Callable[[], T]) -> T | None:
        """The result of a function that commits by itself; None after a conflict.

        Only errors from the server are certain not to have committed.
        """
        if faults.armed:
            faults.reach(f"{label}.begun")
            faults.reach(f"{label}.committing")
        try:
            answer = call()
            if faults.armed:
                faults.reach(f"{label}.committed")
        except BaseException as error:
            if isinstance(error, (UnicodeError, psycopg.DataError)):
                self._raise_ours(error)
            try:
                self._raise_uncommitted(label, error)
            except Conflict:
                return None
        return answer

    def _finish(self, label: str) -> None:
        super()._finish(label)
        for queue in self._transaction.counts.to_fold():
            with contextlib.suppress(psycopg.Error):  # what was committed is committed; and others will do it
                self.session.connection.execute(_CALM, (queue,))

    def _fold(self, queue: int | None, line: int, count: int, looked: bool = False) -> None:
        """Now and then, write the tally of a queue, so that counting stays fast, and whether it is calm, also after
        several slow looks.

        Without a queue it is that of the line.
        """
        self._looks += looked
        if line % FOLD_LINES < count or (looked and self._looks % CALM_LOOKS == 0):
            with contextlib.suppress(psycopg.Error):  # what was sent is sent; and others will do it
                if queue is None:
                    self.session.connection.execute(_CALM_AT, (line,))
                else:
                    self.session.connection.execute(_CALM, (queue,))


class Lanes:
    """Stores with their own connections, for threads that share one: created on demand, up to a few."""

    def __init__(self, make: Callable[[], PostgresExpress]) -> None:
        self._make = make
        self._free: list[PostgresExpress] = []
        self._turn = threading.Lock()
        self._made = 0
        self._closed = False

    @contextlib.contextmanager
    def one(self) -> Iterator[PostgresExpress | None]:
        """An exclusive connection; None if all are in use, or the server has none left."""
        lane = self._take()
        try:
            yield lane
        finally:
            if lane is not None:
                self._give_back(lane)

    def close(self) -> None:
        with self._turn:
            self._closed = True
            free, self._free = self._free, []
        for lane in free:
            lane.close()

    def _take(self) -> PostgresExpress | None:
        with self._turn:
            if self._free:
                lane = self._free.pop()
            elif self._closed or self._made >= SERVER_LANES_MAX:
                return None
            else:
                lane = None
                self._made += 1
        try:
            lane = lane or self._make()
            if lane._server_time() is None:
                lane.read(lambda tx: None)  # asks for the time
        except StoreError:
            self._give_up(lane)
            return None
        return lane

    def _give_back(self, lane: PostgresExpress) -> None:
        with self._turn:
            if not (self._closed or lane.stopped):
                self._free.append(lane)
                return
        self._give_up(lane)

    def _give_up(self, lane: PostgresExpress | None) -> None:
        with self._turn:
            self._made -= 1
        if lane is not None:
            lane.close()


def _lent(name: str, row: Row) -> tuple[Lent, bool]:
    """The leases, and whether the server had to examine the queue."""
    key, created, place, number, last, line, attempts, until, cause, looked, type, form, body, hash, properties = row
    stored = record((key, name, created, None, type, form, body, hash, properties, cause, place, number, last))
    return Lent(stored, line, attempts, until), looked is not None
