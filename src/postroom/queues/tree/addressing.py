"""Resolves references to queues: a physical name, or a symbolic path of one to four names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from shlex import join

from postroom.errors import ArgumentInvalid, QueueHeld, QueueNotSingle, QueueOwned, QueueUnknown
from postroom.limits import HIERARCHY_LEVELS_MAX
from postroom.model.spelling import close, written
from postroom.store.kernel.queues import ALIVE, CLOSED, OWNED, STATE, SYSTEM_ERRORS, UNDO, Hold, Queue
from postroom.store.kernel.transaction import Transaction

Names = tuple[str, ...]

PRINCIPAL = "queue"  # the kind of principal that a level with a password is


@lru_cache(maxsize=4096)
def names_of(given: Names) -> Names:
    """``("A", "B")`` and ``("A/B",)`` are the same path; trailing blanks and blank names at the end are ignored,
    because COBOL programs fill unused levels with blanks."""
    written = "/".join(given).split("/") if given else []
    while len(written) > 1 and written[-1] and not written[-1].strip(" "):
        written.pop()
    names = tuple(name.rstrip(" ") for name in written)
    if not all(names) or not 1 <= len(names) <= HIERARCHY_LEVELS_MAX:
        raise ArgumentInvalid(
            argument="queue", why=f"give a queue's name, or a path of 1 to {HIERARCHY_LEVELS_MAX} names"
        )
    for name in names:
        if not name.isprintable():
            raise ArgumentInvalid(argument="queue", why=f"{name!r} is not a printable name")
    return names


def said(queue: str | Sequence[str]) -> Names:
    """A reference given as one name or several."""
    return (queue,) if isinstance(queue, str) else tuple(queue)


def shown(names: Names) -> str:
    return " ".join(names)


def queues_of(tx: Transaction, names: Names) -> list[Queue]:
    """The queues of a reference, left to right; a higher level stands for all below it."""
    if len(names) == 1:
        queue = tx.queues.named_to_read(names[0])
        if queue is not None and not queue.retired:
            return [queue]
    queues = tx.queues.below("/".join(names))
    if not queues:
        raise unknown(tx, names)
    return queues


def queues_even_retired(tx: Transaction, names: Names) -> list[Queue]:
    """Like ``queues_of``, with retired queues, whose history can still be read by physical name."""
    if len(names) == 1:
        queue = tx.queues.named_to_read(names[0])
        if queue is not None:
            return [queue]
    return queues_of(tx, names)


def one_queue(tx: Transaction, names: Names) -> Queue:
    """The single queue for a send, its row locked for this transaction."""
    if len(names) == 1:
        queue = tx.queues.named(names[0])
        if queue is not None and not queue.retired:
            return unowned(queue)
    queues = queues_of(tx, names)
    if queues[0].path != "/".join(names):
        raise QueueNotSingle(queue=shown(names), below=", ".join(f"{q.name} ({shown(q.names)})" for q in queues[:8]))
    return live(tx, queues[0], names)


def one_to_read(tx: Transaction, names: Names) -> Queue:
    """The single queue for reading, without a lock."""
    queues = queues_of(tx, names)
    if len(queues) > 1 or "/".join(names) not in (queues[0].path, queues[0].name):
        raise QueueNotSingle(queue=shown(names), below=", ".join(f"{q.name} ({shown(q.names)})" for q in queues[:8]))
    return unowned(queues[0])


def live(tx: Transaction, target: Queue, names: Names) -> Queue:
    """Lock a queue that was found; raises if it was retired meanwhile."""
    return unowned(_present(tx, target, names))


def holdable(tx: Transaction, target: Queue, names: Names) -> Queue:
    """Lock a queue to hold it.

    Queues of spheres are allowed: a hold keeps spheres from starting, or from being undone.
    """
    queue = _present(tx, target, names)
    return queue if may_be_held(queue) else unowned(queue)


def may_be_held(queue: Queue) -> bool:
    """Whether a queue is its own, or one of spheres."""
    return queue.kind not in OWNED or queue.kind in (STATE, UNDO)


def _present(tx: Transaction, target: Queue, names: Names) -> Queue:
    queue = tx.queues.locked(target.id)
    if queue.retired:
        raise unknown(tx, names)
    return queue


_STATION = "a station, and only its own commands reach it: create, list, ship, get, query"
_SPHERES = "the spheres of this room, which put and take its messages; look at it with: postroom peek"
_OWNERS = {STATE: "a machine of states, which moves its messages", UNDO: _SPHERES, ALIVE: _SPHERES}


def unowned(queue: Queue) -> Queue:
    """Raise for queues that belong to a station or to spheres: only these change them."""
    if queue.kind in OWNED:
        raise QueueOwned(queue=queue.name, owner=_OWNERS.get(queue.kind, _STATION))
    return queue


def keyed_level(tx: Transaction, path: str) -> str | None:
    """The nearest level, from a path upwards, that has a password."""
    names = path.split("/")
    for depth in range(len(names), 0, -1):
        if tx.principals.secret(PRINCIPAL, "/".join(names[:depth])) is not None:
            return "/".join(names[:depth])
    return None


def path_of(tx: Transaction, names: Names) -> str:
    """The symbolic path of a reference, where its password is stored."""
    if len(names) == 1:
        queue = tx.queues.named_to_read(names[0])
        if queue is not None and not queue.retired:
            return queue.path
    return "/".join(names)


def unknown(tx: Transaction, names: Names) -> QueueUnknown:
    """The error for an unknown reference, with suggestions."""
    known = tx.queues.names()
    if not known:
        return QueueUnknown(queue=typed_names(names), nearest=no_queues(tx))
    likely = _likely(names, known)
    hint = f"; did you mean {' or '.join(likely)}?" if likely else QueueUnknown.listing
    if shown(names) in likely and len(names) == 1:
        hint = "; write a path as separate words, or with / between them"
    return QueueUnknown(queue=typed_names(names), nearest=hint)


def typed_names(names: Names) -> str:
    """A path as typed: names with blanks are quoted."""
    return " ".join(map(written, names))


def no_queues(tx: Transaction) -> str:
    """Advice for a room without queues; it names the room, which may be the wrong one."""
    return (
        f": the room {tx.session.place} has no queues yet. "
        "Load a description (postroom load FILE.qdl) or make one (postroom queue create NAME)"
    )


def receivable(tx: Transaction) -> list[str]:
    """Top levels and queues that can be received from, as typed; those with messages first."""
    queues = [queue for queue in tx.queues.all() if queue.kind not in CLOSED and queue.name != SYSTEM_ERRORS]
    waiting = sorted(queues, key=lambda queue: not queue.unprocessed)
    return list(dict.fromkeys(written(queue.names[0]) for queue in waiting))


def _likely(names: Names, known: list[tuple[str, str]]) -> list[str]:
    """Up to three suggestions: references with the same last name, and similar ones."""
    paths = [tuple(path.split("/")) for _, path in known]
    inner = {typed_names(path) for path in paths if path[-1] == names[-1]}
    levels = {path[:depth] for path in paths for depth in range(1, len(path) + 1)}
    every = [*sorted(levels), *((name,) for name, _ in known)]
    typed = {shown(reference): typed_names(reference) for reference in every}
    near = [typed[text] for text in close(shown(names), typed, most=3)]
    return [*sorted(inner - set(near)), *near][:3]


def on_hold(tx: Transaction, queue: Queue, verb: str, names: Names | None = None) -> QueueHeld:
    """The error for a queue on hold, which may be one of several of a reference; it says which level to enable."""
    level = None if names is None else typed_level(tx, path_of(tx, names))
    level = level or typed_level(tx, queue.path) or join([queue.name])
    what = queue.name if names is None else shown(names)
    return QueueHeld(queue=what, hold=Hold(queue.hold).label, verb=verb, level=level)


def typed_level(tx: Transaction, path: str) -> str | None:
    """The nearest level with a password, as it is typed in a shell."""
    level = keyed_level(tx, path)
    return None if level is None else join(level.split("/"))
