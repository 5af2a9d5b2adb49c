"""Retention of messages: they stay as long as a slice holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from postroom.engine.blocked import blocked
from postroom.errors import DefinitionUnknown, MessageGone, MessageUnknown
from postroom.limits import SWEEP_MESSAGES
from postroom.model.definitions import nearest
from postroom.model.key import key_number
from postroom.model.message import Message, Stored
from postroom.rules.programs import Programs
from postroom.store.kernel.base import Store
from postroom.store.kernel.queues import Keep, Queue
from postroom.store.kernel.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Retained:
    """Why a message is still stored."""

    key: str
    queue: str
    processed: bool
    held_by: tuple[tuple[str, str], ...]  # slicing and slice key
    keeps: bool  # the queue keeps all of its messages
    answers: bool = False  # a request of a partner that may still ask for it
    corrupt: bool = False  # it does not match its hash, and nobody will receive it
    hold: str = ""  # the queue on hold because of which it waits: its own, or one that messages of its queue go to

    @property
    def removable(self) -> bool:
        """Whether the next sweep deletes it."""
        return self.processed and not (self.held_by or self.keeps or self.answers)

    def as_dict(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "held_by": [{"slicing": slicing, "slicekey": value} for slicing, value in self.held_by],
            "removable": self.removable,
            **({"corrupt": True} if self.corrupt else {}),
            **({"waits_for": self.hold} if self.hold else {}),
        }


def why(store: Store, key: str) -> Retained:
    """What keeps a message: slices, its queue, a request that it answers."""

    def work(tx: Transaction) -> Retained:
        number = key_number(key)
        stored = tx.messages.shown(number)
        if stored is None:
            if tx.journal.last(number) is None:
                raise MessageUnknown(key=key)
            raise MessageGone(key=key)
        queue = tx.queues.named_to_read(stored.queue)
        assert queue is not None
        held_by, keeps = tuple(tx.slices.holds(number)), queue.keep == Keep.ALL
        answers, processed = tx.requests.is_answer(number), stored.processed is not None
        hold = "" if processed else _hold(tx, queue)
        return Retained(key, stored.queue, processed, held_by, keeps, answers, not stored.sound, hold)

    return store.read(work)


def _hold(tx: Transaction, queue: Queue) -> str:
    """The queue on hold because of which the messages of a queue wait, if there is one."""
    if not queue.releases:
        return queue.name
    obstacle = blocked(tx).get(queue.name)
    return "" if obstacle is None else obstacle.goal


def slice(store: Store, programs: Programs, slicing: str, key: str) -> list[Message]:
    """The messages of a slice's current lifetime."""

    def work(tx: Transaction) -> list[Stored]:
        known = programs.program(tx).slicings
        if slicing not in known:
            raise DefinitionUnknown(name=f"slicing {slicing}", nearest=nearest(slicing, known))
        number = tx.slices.ids("slicing").get(slicing)
        held = [] if number is None else tx.slices.slice(number, key)
        return [one if one.processed is None else tx.messages.shown(one.key) or one for one in held]

    return [stored.image() for stored in store.read(work)]


def sweep(store: Store, programs: Programs) -> int:
    """Delete every processed message that nothing keeps; returns how many."""
    removed = 0
    while True:
        gone = store.transact("sweep", lambda tx: tx.retention.sweep(_unsliced(tx, programs), SWEEP_MESSAGES))
        removed += gone
        if gone < SWEEP_MESSAGES:
            return removed


def sweepable(store: Store, programs: Programs) -> int:
    """How many messages a sweep would delete."""
    return store.read(lambda tx: tx.retention.sweepable(_unsliced_queues(tx, programs)))


def _unsliced(tx: Transaction, programs: Programs) -> list[Queue]:
    """Queues that keep by slices and have no slicing: every processed message may be deleted."""
    return [tx.queues.locked(queue.id) for queue in _unsliced_queues(tx, programs)]


def _unsliced_queues(tx: Transaction, programs: Programs) -> list[Queue]:
    program = programs.program(tx)
    asked = _asked(tx, programs) if any(rule.unless is not None for rule in program.rules.values()) else set()
    queues = [queue for queue in tx.queues.all() if queue.keep == Keep.SLICED and queue.name not in asked]
    return [queue for queue in queues if not program.slicings_into(queue.name)]


def _asked(tx: Transaction, programs: Programs) -> set[str]:
    """The queues of expected messages, which waiting rules look into when their time is over."""
    plan, names = programs.plan(tx), set[str]()
    for due, absence in plan.absences.items():
        states = [tx.queues.named_to_read(name) for name in (absence.waiting, due)]
        if any(state is not None and state.unprocessed for state in states):
            for read in plan.queues[due].reads:
                names.add(plan.indexes[read.name].queue if read.kind == "index" else read.name)
    return names
