"""Limits of queues: whether there is room for a send, and what is moved away if not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from postroom.errors import ArgumentInvalid, QueueFull
from postroom.limits import DELAY_SECONDS_MAX, PRIORITY_MAX
from postroom.model.key import key_text
from postroom.model.message import Draft, Stored
from postroom.model.moment import in_microseconds
from postroom.store.kernel.deliveries import PLAIN, Wanted
from postroom.store.kernel.message_rows import State
from postroom.store.kernel.policies import DEAD_LETTERS, REFUSE, STRICT, Policy
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.transaction import Transaction


def make_room(tx: Transaction, queue: Queue, drafts: Sequence[Draft]) -> None:
    """Raise if a queue has no room for the drafts; or move its oldest messages to the dead letters, as its policy
    says."""
    policy = tx.policies.of(queue)
    if not policy.limited:
        return
    _make_young(tx, queue, policy)
    _make_few(tx, queue, policy, len(drafts))
    _make_light(tx, queue, policy, drafts)


def portions(tx: Transaction, queue: Queue, drafts: Sequence[Draft]) -> Iterator[Sequence[Draft]]:
    """Split a send into parts that each fit.

    One part, unless the oldest messages give way: then any number may follow each other.
    """
    policy = tx.policies.of(queue)
    gives_way = policy.limited and policy.over == DEAD_LETTERS
    for part in _parts(policy, drafts) if gives_way else [drafts]:
        make_room(tx, queue, part)
        yield part


def _parts(policy: Policy, drafts: Sequence[Draft]) -> Iterator[list[Draft]]:
    """Parts that each fit into the empty queue, or are one message."""
    part: list[Draft] = []
    weight = 0
    for draft in drafts:
        size = len(draft.body.encode())
        many = policy.max_messages is not None and len(part) == policy.max_messages
        heavy = policy.max_bytes is not None and weight + size > policy.max_bytes
        if part and (many or heavy):
            yield part
            part, weight = [], 0
        part.append(draft)
        weight += size
    if part:
        yield part


def check_room(tx: Transaction, queue: Queue, count: int, size: int, *, let_in: tuple[int, int] = (0, 0)) -> None:
    """Raise if a queue that refuses has no room for ``count`` messages of ``size`` bytes; changes nothing.

    ``let_in`` counts messages and bytes that a dry run has let in before.
    """
    policy = tx.policies.of(queue)
    if not policy.limited or policy.over != REFUSE:
        return
    _make_young(tx, queue, policy)
    messages, held = let_in
    _make_few(tx, queue, policy, count, messages)
    if policy.max_bytes is not None:
        held += tx.weights.measured(queue)
        if held + size > policy.max_bytes:
            raise QueueFull(queue=queue.name, why=_why(policy.max_bytes, "bytes", held, size))


def _why(most: int, what: str, held: int, coming: int) -> str:
    return f"it may have {most} {what} and has {held}; {coming} more {'was' if coming == 1 else 'were'} to come"


def _make_few(tx: Transaction, queue: Queue, policy: Policy, count: int, let_in: int = 0) -> None:
    if policy.max_messages is None:
        return
    waiting = tx.counts.waiting(queue) + tx.deliveries.aside(queue, policy.max_messages) + let_in
    over = waiting + count - policy.max_messages
    if over <= 0:
        return
    if policy.over == REFUSE:
        why = _why(policy.max_messages, "messages", waiting, count)
        raise QueueFull(queue=queue.name, why=why if count <= policy.max_messages else f"{why}, too many for one send")
    for _ in range(over):
        if _bury_oldest(tx, queue) is None:
            why = f"it may have {policy.max_messages} messages, and those that it has are leased or wait for their time"
            raise QueueFull(queue=queue.name, why=why)


def _make_light(tx: Transaction, queue: Queue, policy: Policy, drafts: Sequence[Draft]) -> None:
    """Keep to ``max_bytes``: refuse, or move the oldest to the dead letters."""
    if policy.max_bytes is None:
        return
    arrivals, coming = tx.counts.newest(queue), sum(len(draft.body.encode()) for draft in drafts)
    held = tx.weights.at_most(queue, arrivals)
    if held is None or held + coming > policy.max_bytes:
        held = tx.weights.measured(queue)
    while held + coming > policy.max_bytes:
        buried = None if policy.over == REFUSE or coming > policy.max_bytes else _bury_oldest(tx, queue)
        if buried is None:
            raise QueueFull(queue=queue.name, why=_why(policy.max_bytes, "bytes", held, coming))
        held -= len(buried.body.encode())
    tx.weights.note(queue, held + coming, arrivals + len(drafts))


def _bury_oldest(tx: Transaction, queue: Queue) -> Stored | None:
    """Move the oldest waiting message to the dead letters; None if all are leased or delayed."""
    oldest = next(iter(tx.messages.page(queue, State.UNPROCESSED, 0, 1)), None)
    if oldest is not None:
        tx.deliveries.to_dead_letters(queue, oldest, "its queue was full")
    return oldest


def _make_young(tx: Transaction, queue: Queue, policy: Policy) -> None:
    """Keep to ``max_age``: refuse, or move the oldest to the dead letters."""
    if policy.max_age is None:
        return
    eldest = tx.now - in_microseconds(policy.max_age)
    for stored in tx.messages.page(queue, State.UNPROCESSED, 0, 100):
        if stored.created >= eldest:
            return
        if policy.over == REFUSE:
            raise QueueFull(queue=queue.name, why=f"its oldest message waits for more than {policy.max_age:g} seconds")
        tx.deliveries.to_dead_letters(queue, stored, "it waited too long")


def put_wanted(tx: Transaction, queue: Queue, draft: Draft, wanted: Wanted, cause: int | None) -> int:
    """Store a message with a priority, a delay or an expiry."""
    if is_read(tx, queue):
        why = f"{queue.name} is read by the engine, in the order of sending"
        raise ArgumentInvalid(argument="priority, delay or expires", why=why)
    key = tx.deliveries.put(queue, draft, _timely(tx, queue, wanted), cause)
    tx.wake()  # whoever waits must know when to look again
    return key


def kept(tx: Transaction, queue: Queue, asked: Wanted, key: int) -> Wanted:
    """The options that a moved message keeps: all of them; raises if the queue cannot honour one, such as a priority
    where the engine reads in its own order."""
    if asked == PLAIN or not is_read(tx, queue):
        return _timely(tx, queue, asked)
    if asked.due is None and asked.expires is None:
        return PLAIN
    what = "waits for its time" if asked.due is not None else "has a time when it expires"
    why = f"message {key_text(key)} {what}, and {queue.name} is read by the engine, in the order of arrival"
    raise ArgumentInvalid(argument="to", why=why)


def is_read(tx: Transaction, queue: Queue) -> bool:
    """Whether the engine takes the messages of a queue."""
    return bool(queue.admission) or tx.queues.watcher(queue) is not None


def _timely(tx: Transaction, queue: Queue, asked: Wanted) -> Wanted:
    if asked.due is not None and tx.policies.of(queue).order == STRICT:
        raise ArgumentInvalid(argument="delay", why=f"{queue.name} keeps a strict order, in which nothing comes later")
    return asked._replace(due=None) if asked.due is not None and asked.due <= tx.now else asked


def wanted(now: int, *, priority: int, delay: float | None, at: int | None, expires: float | None) -> Wanted:
    """The options of a send, checked; times as moments."""
    if not (isinstance(priority, int) and 0 <= priority <= PRIORITY_MAX):
        raise ArgumentInvalid(argument="priority", why=f"a whole number from 0 to {PRIORITY_MAX}")
    if delay is not None and at is not None:
        raise ArgumentInvalid(argument="delay", why="it excludes at")
    if delay is not None and not 0 <= delay <= DELAY_SECONDS_MAX:
        raise ArgumentInvalid(argument="delay", why=f"seconds from 0 to {DELAY_SECONDS_MAX:.0f}")
    if expires is not None and not (0 < expires <= DELAY_SECONDS_MAX and in_microseconds(expires)):
        why = f"seconds, more than 0 and at most {DELAY_SECONDS_MAX:.0f}; without it, a message does not expire"
        raise ArgumentInvalid(argument="expires", why=why)
    due = now + in_microseconds(delay) if delay else at
    ends = None if expires is None else now + in_microseconds(expires)
    if due is None and ends is None and not priority:
        return PLAIN
    return Wanted(int(priority), due, ends)
