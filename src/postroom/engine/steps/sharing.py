"""Which queues a step may share with those who send and receive, while it commits.

It may share a queue if it does there no more than they do: it puts plain messages, or takes waiting ones, and each has
what it needs in its own row. Where it does more, it has the queue alone (decision 0090).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from postroom.engine.steps import attempts
from postroom.engine.steps.effects import Effects, Enqueue
from postroom.engine.steps.stage import Watched
from postroom.model.message import IN_SPHERE, Stored
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.transaction import Transaction


class Use(NamedTuple):
    """What a step does in a queue."""

    puts: bool = False
    takes: bool = False


def uses(steps: Sequence[tuple[Stored, Effects]], watched: Watched, timed: Mapping[int, object]) -> Mapping[str, Use]:
    """The queues in which the messages of a step do no more than who sends and receives; ``timed`` messages do."""
    if any(IN_SPHERE in stored.properties or attempts.failed(made) is not None for stored, made in steps):
        return {}
    targets: dict[str, bool] = {}  # whether all that is put there is plain
    for _, made in steps:
        for action in made:
            if type(action) is Enqueue:
                targets[action.queue] = targets.get(action.queue, True) and _is_plain(action)
    sources = {stored.queue for stored, _ in steps}
    more = {name for name, plain in targets.items() if not plain} | watched.sliced | watched.staying | watched.past
    more |= {stored.queue for stored, _ in steps if stored.key in timed}
    return {name: Use(name in targets, name in sources) for name in (sources | targets.keys()) - more}


def locked(tx: Transaction, queues: Sequence[Queue], known: Mapping[str, Use]) -> dict[str, Queue]:
    """The queues of a step, in number order: shared where that is possible, else alone."""
    found: dict[str, Queue] = {}
    shared = {
        queue.id: use
        for queue in queues
        if (use := known.get(queue.name)) is not None and tx.queues.can_share(queue.id, **use._asdict())
    }
    for queue in sorted(queues, key=lambda one: one.id):
        use = shared.get(queue.id)
        read = tx.queues.locked(queue.id) if use is None else tx.queues.shared(queue.id, **use._asdict())
        found[read.name] = read
    return found


def _is_plain(action: Enqueue) -> bool:
    """Whether a new message stands in its queue alone, without a timer, and waits there."""
    return not (action.slices or action.entries or action.passed or action.compensates) and action.delay is None


def puts(made: Mapping[int, Effects]) -> int:
    """How many messages effects put."""
    return sum([type(action) is Enqueue for actions in made.values() for action in actions])
