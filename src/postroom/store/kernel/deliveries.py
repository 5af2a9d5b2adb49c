"""Leased messages: delivered for a time under a number, and available again if the lease is not ended.

A lease's number is the journal number of its start. Ending it needs the number; an expired lease has no row, so ending
it is refused. A leased message keeps its place in the queue, like delayed messages, and messages blocked by an earlier
one of the same key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from postroom.errors import LeaseOver
from postroom.limits import BATCH_MESSAGES_MAX, DELIVERIES_DUE_MAX, LANE_LOOKS_MAX
from postroom.model.message import Draft, Stored, Value, message_hash, properties_text
from postroom.model.order import compared
from postroom.store.kernel import message_rows as rows
from postroom.store.kernel.counts import Counts
from postroom.store.kernel.journal import Journal
from postroom.store.kernel.message_rows import State, check_one
from postroom.store.kernel.messages import Messages
from postroom.store.kernel.owner import is_alive
from postroom.store.kernel.policies import DEAD_LETTERS, NO_POLICY, STRICT, Policies, Policy, delay_of_worker
from postroom.store.kernel.queues import Queue, Queues
from postroom.store.kernel.session import Session
from postroom.store.kernel.slices import Slices
from postroom.store.kernel.statement import NUMBERS, Statement

#: Nobody waits for a row that another is about to take.
_SKIP_LOCKED = Statement("", " FOR UPDATE SKIP LOCKED")
#: SQLite is told which index it is: an estimate of its own could lead it through all that waits.
BY_URGENCY, BY_DUE, BY_EXPIRY, BY_LANE = (
    Statement(f" INDEXED BY messages_{name}", "") for name in ("urgent", "due", "expiring", "lanes")
)
_ALL_URGENT = (
    "SELECT key FROM messages"
    + BY_URGENCY
    + " WHERE queue = ? AND state = 1 AND priority > 0 ORDER BY priority DESC, position LIMIT ?"
)
_URGENT = _ALL_URGENT + _SKIP_LOCKED
_NEXT = (
    "SELECT key FROM messages WHERE queue = ? AND state = 1 AND priority = 0 ORDER BY position LIMIT ?"
) + _SKIP_LOCKED
_FIRST = "SELECT position FROM messages WHERE queue = ? AND state = 1 ORDER BY position LIMIT 1"
_FIRST_URGENT = (
    "SELECT position FROM messages"
    + BY_URGENCY
    + " WHERE queue = ? AND state = 1 AND priority > 0 ORDER BY priority DESC, position LIMIT 1"
)


def addition(fence: str = "?") -> str:
    """The statement that inserts a lease: number, message, queue, owner and end."""
    return f"INSERT INTO deliveries (fence, message, queue, owner, until) VALUES ({fence}, ?, ?, ?, ?)"


ADD = Statement(addition(), "SELECT postroom_deliver(?, ?, ?, ?, ?)")
REMOVE = "DELETE FROM deliveries WHERE fence = ?"
_EXTEND = Statement("UPDATE deliveries SET until = ? WHERE fence = ?", "SELECT 1 WHERE postroom_extend(?, ?)")
_SELECT = "SELECT fence, message, queue, owner, until FROM deliveries "
_FIND = _SELECT + "WHERE fence = ?"
_OF_QUEUE = _SELECT + "WHERE queue = ? ORDER BY until, fence"
_OF_OWNER = _SELECT + "WHERE owner = ? ORDER BY fence"
_ALL = _SELECT + "ORDER BY queue, fence"
_AFTER = _SELECT + "WHERE fence > ? ORDER BY fence LIMIT ?"
# Those that their holder is just ending are left to it: it waits for the row of the queue, which we have.
_PAST = _SELECT + "WHERE queue = ? AND until <= ? ORDER BY until, fence LIMIT ?" + _SKIP_LOCKED
_OWNERS = "SELECT DISTINCT owner FROM deliveries WHERE queue = ?"
_HAS_ANY = "SELECT 1 FROM deliveries WHERE queue = ? LIMIT 1"
_COUNTED = "SELECT queue, count(*) FROM deliveries GROUP BY queue"
_DELAYED = "SELECT queue, count(*) FROM messages" + BY_DUE + " WHERE state = 3 GROUP BY queue"
_BLOCKED = "SELECT queue, count(*) FROM messages" + BY_LANE + " WHERE lane IS NOT NULL AND state = 4 GROUP BY queue"
_COUNT = "SELECT count(*) FROM deliveries WHERE queue = ?"
_FIRST_END = "SELECT min(until) FROM deliveries WHERE queue = ?"
_SOME_WAITING = "SELECT count(*) FROM (SELECT 1 FROM messages WHERE queue = ? AND state IN (3, 4) LIMIT ?) AS w"
_DUE = (
    "SELECT key FROM messages" + BY_DUE + " WHERE queue = ? AND state = 3 AND due <= ? ORDER BY due, position LIMIT ?"
)
_FIRST_DUE = "SELECT min(due) FROM messages" + BY_DUE + " WHERE queue = ? AND state = 3"
_EXPIRED = (
    "SELECT key FROM messages"
    + BY_EXPIRY
    + " WHERE queue = ? AND state > 0 AND expires IS NOT NULL AND expires <= ? AND state <> 2 ORDER BY expires LIMIT ?"
    + _SKIP_LOCKED
)
_FIRST_EXPIRY = (
    "SELECT min(expires) FROM messages" + BY_EXPIRY + " WHERE queue = ? AND state > 0 AND expires IS NOT NULL"
)
#: Whether time has ended a lease, brought a message or made one expire.
_STALE = (
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM deliveries WHERE queue = ? AND until <= ?) OR EXISTS (SELECT 1 FROM messages"
    + BY_DUE
    + " WHERE queue = ? AND state = 3 AND due <= ?) OR EXISTS (SELECT 1 FROM messages"
    + BY_EXPIRY
    + " WHERE queue = ? AND state > 0 AND expires IS NOT NULL AND expires <= ? AND state <> 2)"
)
_DETAILS = "SELECT state, attempts, priority, due, expires, lane FROM messages WHERE key = ?"
_ATTEMPTS = "SELECT key, attempts FROM messages WHERE attempts > 0 AND key IN " + NUMBERS
_OFTEN_DELAYED = "SELECT queue, key, attempts FROM messages" + BY_DUE + " WHERE state = 3 AND attempts >= ?"
_OFTEN_LEASED = (
    "SELECT m.queue, m.key, m.attempts - 1 FROM deliveries d JOIN messages m ON m.key = d.message WHERE m.attempts > ?"
)
#: Of the queues that the engine reads: those with a message that waits for its next attempt, and since when.
_WATCHED_DUE = (
    "SELECT w.queue, (SELECT min(m.due) FROM messages m"
    + BY_DUE
    + " WHERE m.queue = w.queue AND m.state = 3) FROM watchers w JOIN queues q ON q.id = w.queue WHERE q.hold < 2"
)
_DELAYED_BEFORE = "SELECT 1 FROM messages WHERE queue = ? AND state = 3 AND position < ? LIMIT 1"
_IN_LANE = " WHERE queue = ? AND lane IS NOT NULL AND lane = ? "
_LANE_TAKEN = "SELECT 1 FROM messages" + BY_LANE + _IN_LANE + "AND (state = -2 OR position < ?) LIMIT 1"
_LANE_HELD = "SELECT 1 FROM messages" + BY_LANE + _IN_LANE + "AND state IN (-2, 3) LIMIT 1"
_LANE_NEXT = "SELECT key FROM messages" + BY_LANE + _IN_LANE + "AND state = 4 ORDER BY position LIMIT 1"
_STUCK = (
    "SELECT key FROM messages WHERE queue = ? AND state = 4 AND NOT EXISTS (SELECT 1 FROM deliveries WHERE queue = ?)"
    " AND NOT EXISTS (SELECT 1 FROM messages WHERE queue = ? AND state = 3) ORDER BY position LIMIT 1"
)
#: What a message that has failed says of it, in its properties.
FAILED_IN, FAILED_WHY, FAILED_TIMES = FAILURE = ("dead.queue", "dead.reason", "dead.attempts")


class Delivery(NamedTuple):
    """A current lease."""

    fence: int
    message: int
    queue: int
    owner: str  # a process, or nobody: then only its time ends it
    until: int

    def is_lost(self, now: int) -> bool:
        """Whether its time is over, or its process is known to have ended."""
        return self.until <= now or is_alive(self.owner) is False


class Details(NamedTuple):
    """The delivery columns of a message's row."""

    state: int
    attempts: int = 0
    priority: int = 0
    due: int | None = None
    expires: int | None = None
    lane: str | None = None

    def own(self) -> Wanted:
        """The message's own options. The wait for a retry belongs to the queue, like attempts."""
        waits = self.state == State.DELAYED and not self.attempts
        return Wanted(self.priority, self.due if waits else None, self.expires)


class Wanted(NamedTuple):
    """The options of a send."""

    priority: int = 0
    due: int | None = None
    expires: int | None = None

    def detail(self) -> dict[str, int]:
        """The options for the journal."""
        return {name: value for name, value in self._asdict().items() if value}


PLAIN = Wanted()


class Deliveries:
    def __init__(
        self,
        session: Session,
        journal: Journal,
        queues: Queues,
        counts: Counts,
        messages: Messages,
        slices: Slices,
        policies: Policies,
    ) -> None:
        self._session = session
        self._journal = journal
        self._queues = queues
        self._counts = counts
        self._messages = messages
        self._slices = slices
        self._policies = policies

    # --- looking ---

    def find(self, fence: int) -> Delivery | None:
        return self._session.one(Delivery._make, _FIND, (fence,))

    def all(self, queue: Queue | None = None) -> list[Delivery]:
        rows = self._session.rows(_ALL) if queue is None else self._session.rows(_OF_QUEUE, (queue.id,))
        return [Delivery(*row) for row in rows]

    def after(self, fence: int, limit: int) -> list[Delivery]:
        """Leases by number: those after one, at most ``limit``."""
        return [Delivery(*row) for row in self._session.rows(_AFTER, (fence, limit))]

    def of_owner(self, owner: str) -> list[Delivery]:
        return [Delivery(*row) for row in self._session.rows(_OF_OWNER, (owner,))]

    def count(self, queue: Queue) -> int:
        return self._session.number(_COUNT, (queue.id,))

    def put_aside(self) -> Callable[[Queue], tuple[int, int, int]]:
        """A function that returns how many messages of a queue are leased, delayed and blocked."""
        counts: list[dict[int, int]] = [
            dict(self._session.rows(statement)) for statement in (_COUNTED, _DELAYED, _BLOCKED)
        ]
        return lambda queue: (counts[0].get(queue.id, 0), counts[1].get(queue.id, 0), counts[2].get(queue.id, 0))

    def inside(self, queue: Queue) -> int:
        """How many unprocessed messages a queue has, counting leased and delayed ones as at most one.

        So asking whether there are any is fast for large queues.
        """
        return queue.unprocessed + self.aside(queue, 1)

    def aside(self, queue: Queue, most: int) -> int:
        """How many are leased, delayed or blocked, up to ``most``."""
        return self.count(queue) + self._session.number(_SOME_WAITING, (queue.id, most))

    def is_stale(self, queue: Queue, *, owners: bool) -> bool:
        """Whether leases have expired, or messages are due or expired, which must be handled before a receive."""
        id, now = queue.id, self._session.now
        if self._session.row(_STALE, (id, now, id, now, id, now)) is not None:
            return True
        return owners and any(is_alive(row[0]) is False for row in self._session.rows(_OWNERS, (id,)))

    def details(self, message: int) -> Details:
        row = self._session.row(_DETAILS, (message,))
        return Details(int(State.PROCESSED)) if row is None else Details(*row)

    def attempts(self, messages: Sequence[int]) -> dict[int, int]:
        """How often messages were tried, for those that were."""
        rows = self._session.rows(_ATTEMPTS, (json.dumps(list(messages)),)) if messages else []
        return {row[0]: row[1] for row in rows}

    def often(self, attempts: int) -> list[tuple[int, int, int]]:
        """Messages that failed so often, and wait for the next attempt or are in it: queue, key, failed attempts."""
        rows = [row for each in (_OFTEN_DELAYED, _OFTEN_LEASED) for row in self._session.rows(each, (attempts,))]
        return sorted((row[0], row[1], row[2]) for row in rows)

    def watched_due(self) -> dict[int, int]:
        """The time of the first retry in each queue that the engine reads."""
        return {row[0]: row[1] for row in self._session.rows(_WATCHED_DUE) if row[1] is not None}

    def next_change(self, queue: Queue) -> int | None:
        """When time alone makes a message of a queue available."""
        moments = [self._session.value(statement, (queue.id,)) for statement in (_FIRST_END, _FIRST_DUE, _FIRST_EXPIRY)]
        return min((moment for moment in moments if moment is not None), default=None)

    def is_ready(self, queue: Queue, policy: Policy) -> bool:
        """Whether something may be delivered; without a lock, so a True may be wrong."""
        if policy.order != STRICT or not queue.unprocessed:
            return queue.unprocessed > 0
        if self._session.row(_HAS_ANY, (queue.id,)):
            return False
        first = self._session.value(_FIRST_URGENT, (queue.id,)) or self._session.value(_FIRST, (queue.id,))
        return not self._session.row(_DELAYED_BEFORE, (queue.id, first))

    # --- giving out ---

    def claim(self, queue: Queue, limit: int, policy: Policy) -> list[Stored]:
        """The next messages that may be delivered, at most ``limit``, exclusively for this transaction."""
        if policy.ordered:
            return self._claim_in_order(queue, limit, policy)
        return self._found(self._keys(queue, limit))

    def _keys(self, queue: Queue, limit: int) -> list[int]:
        keys = [row[0] for row in self._session.rows(_URGENT, (queue.id, limit))]
        if len(keys) < limit:
            keys += [row[0] for row in self._session.rows(_NEXT, (queue.id, limit - len(keys)))]
        return keys

    def urgent(self, queue: Queue) -> list[Stored]:
        """All waiting messages with a priority, in order."""
        return self._found([row[0] for row in self._session.rows(_ALL_URGENT, (queue.id, BATCH_MESSAGES_MAX))])

    def _found(self, keys: Sequence[int]) -> list[Stored]:
        messages = self._messages.find_many(keys)
        return [messages[key] for key in keys]

    def _claim_in_order(self, queue: Queue, limit: int, policy: Policy) -> list[Stored]:
        """Claim in order, with the queue's row locked. Messages whose key is busy are moved aside."""
        if policy.order == STRICT:
            head = [] if self._session.row(_HAS_ANY, (queue.id,)) else self._found(self._keys(queue, 1))
            return [stored for stored in head if not self._session.row(_DELAYED_BEFORE, (queue.id, stored.position))]
        for _ in range(LANE_LOOKS_MAX):
            claimed: list[Stored] = []
            lanes: set[str | None] = set()
            candidates = self._found(self._keys(queue, limit))
            for stored in candidates:
                lane = lane_of(stored, policy)
                if lane is not None and lane in lanes:
                    self.block(queue, stored, lane)
                elif lane is not None and self.is_taken(queue, lane, stored):
                    self.make_way(queue, stored, lane)
                else:
                    claimed.append(stored)
                    lanes.add(lane)
            if claimed or not (candidates or self._free_stuck(queue)):
                return claimed
        return []

    def _free_stuck(self, queue: Queue) -> bool:
        """Unblock a message whose key is not busy, as earlier versions left them."""
        keys = [row[0] for row in self._session.rows(_STUCK, (queue.id, queue.id, queue.id))]
        for key in keys:
            self.unblock(queue, self.details(key).lane)
        return bool(keys)

    def is_taken(self, queue: Queue, lane: str, stored: Stored) -> bool:
        """Whether a key is busy: a message of it is leased, or an earlier one is delayed or blocked."""
        return self._session.row(_LANE_TAKEN, (queue.id, lane, stored.position)) is not None

    def block(self, queue: Queue, stored: Stored, lane: str) -> None:
        """Block a message until earlier ones of its key are done."""
        line = self._messages.line("block", stored, queue, queue, {"lane": lane})
        check_one(self._session.run(rows.BLOCK, (line, lane, stored.key, queue.id)), stored)
        self._counts.depart(queue, stored.number, kept=False)

    def make_way(self, queue: Queue, stored: Stored, lane: str) -> None:
        """Block a message whose key is busy; if it is not, unblock the earliest one.

        A returned message with a priority may find an earlier one that is blocked because of it.
        """
        self.block(queue, stored, lane)
        self.unblock(queue, lane)

    def lease(self, queue: Queue, stored: Stored, owner: str, until: int, policy: Policy) -> int:
        """Lease a message until a time; returns the number of the lease."""
        lane = lane_of(stored, policy)
        line = self._messages.line("lease", stored, queue, queue, None if lane is None else {"lane": lane})
        values = (line, self._session.now, lane, stored.key, queue.id)
        check_one(self._session.run(rows.LEASE, values), stored)
        self._session.run(ADD, (line, stored.key, queue.id, owner, until))
        self._counts.depart(queue, stored.number, kept=False, leased=1)
        return line

    def add_lost(self, fence: int, message: int, queue: int) -> None:
        """Restore a lease whose row was damaged, as expired."""
        self._session.run(ADD, (fence, message, queue, "", 0))

    def forget(self, fence: int) -> None:
        """Remove the row of a lease that does not exist."""
        self._session.run(REMOVE, (fence,))

    # --- the end of a lease ---

    def done(self, fence: int) -> Stored:
        """Acknowledge a leased message: it is processed, or discarded if the queue keeps none."""
        queue, stored, details = self._ended(fence)
        self._messages.take_for_good(queue, stored, rows.MARK_LEASED, rows.DISCARD_LEASED)
        self._left(queue, stored, details)
        return stored

    def extend(self, fence: int, until: int) -> None:
        if self._session.run(_EXTEND, (until, fence)) != 1:
            raise self._over(fence)

    def release(self, fence: int, delay: int = 0) -> Stored:
        """Release a message; it counts as no attempt."""
        queue, stored, details = self._ended(fence)
        due = self._session.now + delay if delay else None
        self._give_back(queue, stored, details._replace(attempts=details.attempts - 1), "release", {}, due)
        return stored

    def fail(
        self, fence: int, reason: str, *, final: bool = False, verb: str = "fail", by_worker: bool = False
    ) -> tuple[Stored, str | None]:
        """An attempt has failed: the message waits for the next, or goes to the dead letters after the last.

        Returns the message, and the queue of dead letters if it went there.
        """
        queue, stored, details = self._ended(fence)
        policy = self._policies.of(queue)
        if final or policy.is_last(details.attempts):
            return stored, self._to_dead_letters(queue, stored, details, policy, reason).name
        delay = delay_of_worker(policy, details.attempts) if by_worker else policy.delay(details.attempts)
        detail = {"why": reason, "attempts": details.attempts}
        self._give_back(queue, stored, details, verb, detail, self._session.now + delay if delay else None)
        return stored, None

    def fail_at_once(self, queue: Queue, stored: Stored, reason: str, *, final: bool) -> str | None:
        """Note a failed attempt of the engine at a waiting message: lease and failure in one commit.

        Returns the queue of dead letters if it went there.
        """
        fence = self.lease(queue, stored, "", self._session.now, NO_POLICY)
        return self.fail(fence, reason, final=final)[1]

    def lapse(self, queue: Queue, *, owners: bool) -> list[Stored]:
        """Take back expired leases, and if ``owners`` are checked, those of ended processes."""
        past = [Delivery(*row) for row in self._session.rows(_PAST, (queue.id, self._session.now, DELIVERIES_DUE_MAX))]
        why = {delivery.fence: "its lease ran out" for delivery in past}
        if owners:
            gone = [row[0] for row in self._session.rows(_OWNERS, (queue.id,)) if is_alive(row[0]) is False]
            dead = [delivery for owner in gone for delivery in self.of_owner(owner) if delivery.queue == queue.id]
            past += [delivery for delivery in dead if delivery.fence not in why]
        ended = []
        for delivery in past:
            try:
                ended.append(self.fail(delivery.fence, why.get(delivery.fence, "its process ended"), verb="lapse")[0])
            except LeaseOver:  # someone else was first
                continue
        return ended

    def _ended(self, fence: int) -> tuple[Queue, Stored, Details]:
        """Remove the row of a lease, which ends it, then lock its queue; always in this order."""
        delivery = self.find(fence)
        if delivery is not None and not self._session.counts_arrivals:
            self._queues.locked(delivery.queue)  # where messages do not count, whoever ends a lease does
        if delivery is None or self._session.run(REMOVE, (fence,)) != 1:
            raise self._over(fence)
        details = self.details(delivery.message)
        queue, stored = self._queues.locked(delivery.queue), self._messages.find(delivery.message)
        assert stored is not None, "a leased message is in its queue"
        self._counts.end_lease(queue)
        return queue, stored, details

    def _over(self, fence: int) -> LeaseOver:
        event = self._journal.at(fence)
        if event is None or event.verb != "lease" or event.key is None:
            return LeaseOver(lease=fence, why="no message was given out under this number")
        return LeaseOver(lease=fence, why=f"message {event.key} is no longer leased under this number")

    def _give_back(
        self, queue: Queue, stored: Stored, details: Details, verb: str, detail: Mapping[str, Any], due: int | None
    ) -> None:
        if due is None:
            state, moment, lane = State.UNPROCESSED, None, None
            self._counts.come_back(queue)
        else:
            state, moment, lane = State.DELAYED, self._session.now, details.lane
        told = {**detail, **({} if due is None else {"due": due})}
        line = self._messages.line(verb, stored, queue, queue, told or None)
        values = (int(state), line, moment, due, lane, details.attempts, stored.key, queue.id)
        check_one(self._session.run(rows.UNLEASE, values), stored)

    # --- dead letters ---

    def to_dead_letters(self, queue: Queue, stored: Stored, reason: str) -> Queue:
        """Move a waiting message to the dead letters of its queue: it keeps its priority and does not expire."""
        return self._to_dead_letters(queue, stored, self.details(stored.key), self._policies.of(queue), reason)

    def _to_dead_letters(self, queue: Queue, stored: Stored, details: Details, policy: Policy, reason: str) -> Queue:
        target = self.dead_letters(queue, policy)
        about: dict[str, Value] = {FAILED_IN: queue.name, FAILED_WHY: reason, FAILED_TIMES: details.attempts}
        properties = properties_text({**json.loads(stored.properties), **about})
        detail = {"reason": reason, "attempts": details.attempts}
        self.move(queue, stored, details, target, "dead-letter", properties, detail, Wanted(details.priority))
        return target

    def dead_letters(self, queue: Queue, policy: Policy) -> Queue:
        """The queue of dead letters, locked; created if missing."""
        name = policy.dead_letters_of(queue.name)
        target = self._queues.made(name, "basic")
        if target.retired:
            self._queues.evolve(target, path=name, ordinal=0, command=None)
            target = self._queues.made(name, "basic")
        return target

    def move(
        self,
        queue: Queue,
        stored: Stored,
        details: Details,
        target: Queue,
        verb: str,
        properties: str,
        detail: Mapping[str, Any] | None = None,
        keeps: Wanted = PLAIN,
    ) -> int:
        """Take a message that waits, or whose lease has ended, out of one queue and append it to another.

        It leaves the slices and indexes of the first. Returns its position in the second.
        """
        content = (stored.body, stored.format, stored.type, properties)
        hash = message_hash(stored.key, stored.created, stored.cause, *content)
        seq = self._messages.line(verb, stored, queue, target, {**(detail or {}), **keeps.detail()} or None)
        (number,) = self._counts.arrive(target, (seq,))
        state = State.UNPROCESSED if keeps.due is None else State.DELAYED
        place = (target.id, int(state), seq, number, properties, hash)
        check_one(self._session.run(rows.MOVE_AWAY, (*place, *keeps, stored.key, queue.id)), stored)
        if keeps.due is not None:
            self._counts.depart(target, self._counts.newest(target), kept=False)
        if details.state == State.UNPROCESSED:
            self._counts.depart(queue, stored.number, kept=False)
        self._slices.forget(stored.key)
        self._left(queue, stored, details)
        return seq

    # --- what waits for its time ---

    def put(self, queue: Queue, draft: Draft, wanted: Wanted, cause: int | None = None) -> int:
        """Store a new message with a priority, a delay or an expiry."""
        key = self._messages.put(queue, draft, cause, wanted.detail())
        state = State.UNPROCESSED if wanted.due is None else State.DELAYED
        values = (int(state), wanted.priority, wanted.due, wanted.expires, key, queue.id)
        self._session.run(rows.QUALIFY, values)
        if wanted.due is not None:
            self._counts.depart(queue, self._counts.newest(queue), kept=False)
        return key

    def free_due(self, queue: Queue) -> list[Stored]:
        """Make delayed messages available that are due."""
        keys = [row[0] for row in self._session.rows(_DUE, (queue.id, self._session.now, DELIVERIES_DUE_MAX))]
        due = self._found(keys)
        for stored in due:
            self._free(queue, stored, State.DELAYED, "due")
        return due

    def expire(self, queue: Queue, policy: Policy) -> int:
        """Drop expired messages, or move them to the dead letters; returns how many."""
        keys = [row[0] for row in self._session.rows(_EXPIRED, (queue.id, self._session.now, DELIVERIES_DUE_MAX))]
        for stored in self._found(keys):
            if policy.expired == DEAD_LETTERS:
                self.to_dead_letters(queue, stored, "it expired")
            else:
                self.discard(queue, stored, "expire")
        return len(keys)

    def discard(self, queue: Queue, stored: Stored, verb: str, detail: Mapping[str, Any] | None = None) -> None:
        """Discard an unprocessed message in any state; the journal records it."""
        details = self.details(stored.key)
        line = self._messages.line(verb, stored, queue, None, detail)
        self._session.run(rows.DEPART, (stored.key, line, stored.cause, stored.type))
        check_one(self._session.run(rows.DISCARD_WAITING, (stored.key, queue.id)), stored)
        if details.state == State.UNPROCESSED:
            self._counts.depart(queue, stored.number, kept=False)
        self._slices.forget(stored.key)
        self._left(queue, stored, details)

    def _left(self, queue: Queue, stored: Stored, details: Details) -> None:
        """A message has left its queue, from any state; it may have blocked others, even as a returned one."""
        self.unblock(queue, details.lane or lane_of(stored, self._policies.of(queue)))

    def unblock(self, queue: Queue, lane: str | None) -> None:
        """A message of a key has left: unblock the next one, unless another is being delivered."""
        if lane is None or self._session.row(_LANE_HELD, (queue.id, lane)) is not None:
            return
        keys = [row[0] for row in self._session.rows(_LANE_NEXT, (queue.id, lane))]
        for stored in self._found(keys):
            self._free(queue, stored, State.BLOCKED, "unblock")

    def _free(self, queue: Queue, stored: Stored, state: State, verb: str) -> None:
        line = self._messages.line(verb, stored, queue, queue)
        check_one(self._session.run(rows.FREE, (line, stored.key, queue.id, int(state))), stored)
        self._counts.come_back(queue)


def lane_of(stored: Stored, policy: Policy) -> str | None:
    """The ordering key of a message; None if it has none. Equal values have one key."""
    value = None if policy.by is None else json.loads(stored.properties).get(policy.by)
    return None if value is None else json.dumps(compared(value), ensure_ascii=False)


def unmarked(properties: str) -> str:
    """Properties without those about a failure."""
    members = json.loads(properties)
    return properties_text({name: value for name, value in members.items() if name not in FAILURE})
