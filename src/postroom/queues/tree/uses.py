"""What needs a queue that is to be removed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from postroom.errors import PostroomError, QueueNeeded
from postroom.queues.tree.addressing import one_queue
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.transaction import Transaction


def refuse_needed(tx: Transaction, removed: Iterable[Queue]) -> None:
    """Raise if something would go on waiting for messages of a removed queue, or sending to it."""
    for queue in removed:
        users = list(_users(tx, queue))
        if users:
            shown = queue.name if queue.path == queue.name else f"{queue.name} ({queue.path.replace('/', ' ')})"
            raise QueueNeeded(queue=shown, users=", ".join(users))


def _users(tx: Transaction, queue: Queue) -> Iterator[str]:
    watcher = tx.queues.watcher(queue)
    if watcher is not None:
        yield watcher
    for schedule in tx.schedules.all():
        if f"{queue.path}/".startswith(f"{schedule.queue}/") or schedule.queue == queue.name:
            try:
                one_queue(tx, tuple(schedule.queue.split("/")))
            except PostroomError:
                yield f"schedule {schedule.name}"
