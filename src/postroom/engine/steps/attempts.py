"""Attempts of the engine: what happens to a message whose rules, arcs or counter failed.

If the policy of its queue has attempts, it is retried, and becomes a dead letter after the last one; until then none of
its effects are applied. The error message is put after the last failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from postroom.engine.spheres import withdraw
from postroom.engine.steps.effects import Arrival, Effects, Enqueue, Failed, changes
from postroom.engine.steps.failures import told
from postroom.errors import ArgumentInvalid
from postroom.limits import REASON_CHARS_MAX
from postroom.model.message import Stored
from postroom.store.kernel.message_rows import State
from postroom.store.kernel.policies import DEAD_LETTERS, FREE, PASSING, Policy
from postroom.store.kernel.queues import Admission, Queue
from postroom.store.kernel.timers import ECHO, Timer
from postroom.store.kernel.transaction import Transaction

#: Who reads a queue whose events must come in their order, and once.
IN_ORDER = "arcs with state"


class Tries(NamedTuple):
    """The policies with attempts of the queues of a claim, and how often its messages were tried before."""

    policies: Mapping[str, Policy]
    before: Mapping[int, int]

    @classmethod
    def of(cls, tx: Transaction, messages: Sequence[Stored], once: frozenset[str] = frozenset()) -> Tries:
        """Read them for claimed messages; queues whose events are taken ``once`` have none."""
        names = {stored.queue for stored in messages} - once
        known = {
            name: policy for name, policy in tx.policies.all().items() if policy.attempts is not None and name in names
        }
        if not known:
            return NO_TRIES
        return cls(known, tx.deliveries.attempts([stored.key for stored in messages if stored.queue in known]))

    def judged(self, queue: str, key: int, made: Effects) -> Effects:
        """The effects of a message after a possible failure: none if it is retried, else its error messages."""
        policy = self.policies.get(queue)
        errors = [] if policy is None else [effect for effect in made if type(effect) is Enqueue and effect.failed]
        if policy is None or not errors or type(made[0]) is Failed:
            return made
        failure, reason = told(errors[0].body)
        final = policy.ends(failure, self.before.get(key, 0) + 1)
        failed = Failed(reason, final)
        return (failed, *errors) if final else (failed,)

    def each(
        self, groups: Iterator[Mapping[int, Effects]], arrivals: Sequence[Arrival]
    ) -> Iterator[Mapping[int, Effects]]:
        """``judged`` for every message of a step. Errors of messages that are retried are hidden from later
        messages."""
        by_order = {arrival.order: arrival for arrival in arrivals}
        for group in groups:
            judged = {
                order: self.judged(by_order[order].queue, by_order[order].key, made) for order, made in group.items()
            }
            for order, made in group.items():
                if order in judged and judged[order] is not made and not _is_final(judged[order]):
                    gone = {granule for granule, _ in changes(order, made)}
                    for later in [other for other in judged if other > order and gone & set(by_order[other].granules)]:
                        del judged[later]
            yield judged


NO_TRIES = Tries({}, {})


def failed(made: Effects) -> Failed | None:
    """The failure of a message whose queue has attempts; None if it did not fail."""
    return made[0] if made and type(made[0]) is Failed else None


def _is_final(made: Effects) -> bool:
    failure = failed(made)
    return failure is not None and failure.final


def is_waiting(tx: Transaction, stored: Stored) -> bool:
    """Whether a claimed message is still there to be tried, and nobody has had it meanwhile."""
    there = tx.messages.find(stored.key)
    state = tx.deliveries.details(stored.key).state
    as_it_was = there is not None and (there.queue, there.last) == (stored.queue, stored.last)
    return as_it_was and state == State.UNPROCESSED


def fail(tx: Transaction, queue: Queue, stored: Stored, failure: Failed, timer: Timer | None = None) -> None:
    """Record a failed attempt; a message that had a timer gets a new one."""
    tx.deliveries.fail_at_once(queue, stored, failure.reason[:REASON_CHARS_MAX], final=failure.final)
    if timer is not None:
        tx.timers.remove(timer)
        if not failure.final:
            due = tx.deliveries.details(stored.key).due
            tx.timers.add(tx.now if due is None else due, ECHO, {"message": stored.key})


def bring_due(tx: Transaction) -> list[Stored]:
    """Release the messages whose retry is due, in the queues that the engine reads."""
    back: list[Stored] = []
    for id in sorted(id for id, due in tx.deliveries.watched_due().items() if due <= tx.now):
        freed = tx.deliveries.free_due(tx.queues.locked(id))
        for stored in freed:
            withdraw(tx, id, stored)  # if its sphere has failed meanwhile
        back += freed
    return back


def check_read(queue: Queue, policy: Policy, reader: str | None) -> None:
    """Raise if the reader cannot deliver by the policy of a queue: no setting is ignored."""
    name = queue.name
    if queue.admission & Admission.SENDING and (policy.attempts is not None or policy.backoff):
        why = f"{name} sends to a partner, and its gateway says how often: attempts=N of postroom gateway add"
        raise ArgumentInvalid(argument="attempts", why=why)
    if reader is not None and policy.ordered:
        argument = "order" if policy.order != FREE else "by"
        raise ArgumentInvalid(argument=argument, why=f"{name} is read by {reader}, which keep an order of their own")
    if reader is not None and policy.expired == DEAD_LETTERS:
        raise ArgumentInvalid(argument="expired", why=f"{name} is read by {reader}: nothing expires in it")
    if reader == IN_ORDER and policy.attempts is not None:
        raise ArgumentInvalid(argument="attempts", why=f"{name} is read by {reader}, which take each event once")
    unsaid = policy.backoff or policy.retry != PASSING or (policy.dead_letters and policy.over != DEAD_LETTERS)
    if reader is not None and policy.attempts is None and unsaid:
        why = f"{name} is read by {reader}: a message that fails is tried again only if it is said how often"
        raise ArgumentInvalid(argument="attempts", why=why)


def check_reader(tx: Transaction, queue: Queue, reader: str) -> None:
    """Raise, when a reader is added, if it cannot deliver by the policy of the queue."""
    check_read(queue, tx.policies.of(queue), reader)


def check_entry(tx: Transaction, queue: Queue) -> None:
    """Raise if a queue of dead letters would check what enters it: dead letters enter unchanged."""
    for name, policy in tx.policies.all().items():
        if queue.name == policy.dead_letters:
            why = f"{queue.name} takes the dead letters of {name} as they are, and would have to check them"
            raise ArgumentInvalid(argument="dead_letters", why=why)
