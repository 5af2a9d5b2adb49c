"""One step, in its three parts: claim the next messages, evaluate what watches them on Spark, commit what follows.

Progress lives in the store: marking messages processed and applying their effects is one commit, under the number of
the engine's lease. A step that is abandoned anywhere before it has changed nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from postroom.engine.spark.executor_store import Bay, misread
from postroom.engine.spheres import Bonds
from postroom.engine.steps.effects import Action, Arrival, Document, Effects, Enqueue, Granule, ResetSlice
from postroom.engine.steps.failures import SYSTEM_ERRORS, Failure, error_message
from postroom.engine.steps.serial import Timeline, settle
from postroom.engine.steps.stage import Result, Share, Watched
from postroom.errors import BodyError
from postroom.limits import STEP_BYTES_MAX, STEP_FREE_MESSAGES, STEP_ROUNDS_MAX
from postroom.model.message import IN_SPHERE, Draft, Stored
from postroom.store.kernel.batch import NOWHERE, Admit, Batch, Places, Put, Stale, admit_nothing
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.timers import ECHO, Timer
from postroom.store.kernel.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEASE = "engine"
#: The actor of what the engine does by itself.
ENGINE = "engine"


@dataclass
class Claim:
    """What a step works on, as it stood in one moment."""

    share: Share
    snapshot: int  # the newest journal number
    stored: list[Stored]
    arrivals: list[Arrival]
    base: dict[Granule, list[Document]]
    timers: dict[int, Timer]  # by the key of the message whose time has come
    more: bool  # whether there was more than the step takes
    bay: Bay | None = None  # if executors fetch what its messages say, and leave their answers


def claim(
    tx: Transaction,
    share: Share,
    size: int,
    fence: int,
    waiting: Mapping[str, str],
    after: Mapping[str, int],
    bodies: bool = True,
) -> Claim | None:
    """The next messages in the order of priority and arrival; None if there is nothing to take.

    ``after`` has the last positions of messages that are under way. What these will have done is not known: then only
    messages are taken that look at no others, and none when another's time has come, which would go before them.
    Without ``bodies`` it takes outlines, for executors that fetch what the messages say.
    """
    tx.leases.check(LEASE, fence)
    watched = share.watched
    locked = _locked(tx, [*watched.queues, *watched.echoes])
    by_name = {name: queue for name, queue in locked.items() if name not in waiting}
    free = [by_name[name] for name in watched.queues if name in by_name]
    if not any(queue.unprocessed for queue in free if queue.name in watched.reading):
        size = min(size, STEP_FREE_MESSAGES)
    elif after:
        return None
    due = tx.timers.next_due(ECHO) if after else None
    if due is not None and due <= tx.now:
        return None
    stored, timers = _due(tx, by_name, size) if not after else ([], {})
    sound, following = False, list[Stored]()
    while not following and not sound:  # those behind a damaged message move up
        following, sound = _next(tx, free, watched, size - len(stored), after, _whole if bodies else _outlined)
    stored = (stored if bodies else [message._replace(body="") for message in stored]) + following
    if not stored:
        return None
    arrivals = share.arrivals(tx, stored)
    return Claim(
        share,
        tx.journal.newest(),
        stored,
        arrivals,
        base_of(tx, arrivals, bodies),
        timers,
        more=len(stored) >= size,
    )


def _locked(tx: Transaction, names: Sequence[str]) -> dict[str, Queue]:
    """The queues, each locked and read; one on hold, or in someone's hands, is left alone."""
    ids = sorted(queue.id for name in names if (queue := tx.queues.named_to_read(name)) is not None)
    queues = [tx.queues.locked(id) for id in ids]
    return {queue.name: queue for queue in queues if not queue.retired and releases(tx, queue)}


def releases(tx: Transaction, queue: Queue) -> bool:
    """Whether the engine may take messages of a queue now."""
    return queue.releases and not in_use(tx, queue)


def in_use(tx: Transaction, queue: Queue) -> bool:
    """Whether someone reads a message of the queue in segments."""
    return queue.in_use(tx.now)


def _due(tx: Transaction, queues: Mapping[str, Queue], size: int) -> tuple[list[Stored], dict[int, Timer]]:
    """Messages whose time has come, with their timers. Those of a queue that waits hide none of the others."""
    waiting: list[Stored] = []
    timers: dict[int, Timer] = {}
    looked_at: set[int] = set()
    limit = size
    while True:
        due = tx.timers.due(ECHO, limit)
        for timer in due:
            if timer.id not in looked_at and len(waiting) < size:
                looked_at.add(timer.id)
                stored = _waited_for(tx, timer, queues)
                if stored is not None:
                    waiting.append(stored)
                    timers[stored.key] = timer
        if len(due) < limit or len(waiting) >= size:
            return waiting, timers
        limit *= 2


def _waited_for(tx: Transaction, timer: Timer, queues: Mapping[str, Queue]) -> Stored | None:
    stored = tx.messages.find(int(timer.payload["message"]))
    if stored is not None and tx.messages.is_reserved(stored.key):
        return None  # whoever has it may give it back
    if stored is None or stored.processed is not None:
        tx.timers.remove(timer)  # someone has received the message meanwhile
        return None
    if stored.queue not in queues:
        return None
    if stored.sound:
        return stored
    if not tx.messages.is_set_aside(stored.key):  # someone who wanted to receive it may have found it first
        tx.messages.set_aside(queues[stored.queue], stored)
    tx.timers.remove(timer)
    return None


#: A message, how many bytes it says, and whether it still says what was sent.
_Found = tuple[Stored, int, bool]


def _whole(tx: Transaction, queue: Queue, after: int, last: int) -> Iterator[_Found]:
    return ((stored, len(stored.body), stored.sound) for stored in tx.messages.between(queue, after, last))


def _outlined(tx: Transaction, queue: Queue, after: int, last: int) -> Iterator[_Found]:
    """Whoever fetches the body looks whether it is sound."""
    return ((stored, size, True) for stored, size in tx.messages.outlines(queue, after, last))


def _next(
    tx: Transaction,
    queues: Sequence[Queue],
    watched: Watched,
    size: int,
    after: Mapping[str, int],
    read: Callable[[Transaction, Queue, int, int], Iterator[_Found]],
) -> tuple[list[Stored], bool]:
    """Messages of the highest priority first, and of one priority in the order of their arrival.

    Also tells whether all that were looked at are sound.
    """
    taken: list[Stored] = []
    sound = True
    room = STEP_BYTES_MAX
    priorities, windows = watched.queues, watched.windows
    behind = {name: max(after.get(name, 0), windows[name][0] if name in windows else 0) for name in priorities}
    for priority in sorted({priorities[queue.name] for queue in queues}, reverse=True):
        peers = [queue for queue in queues if priorities[queue.name] == priority and queue.unprocessed]
        if len(taken) >= size or not peers or room <= 0:
            continue
        heads = [_positions(tx, queue, behind[queue.name], windows, size - len(taken)) for queue in peers]
        chosen = list(heapq.merge(*heads))[: size - len(taken)]
        last = chosen[-1] if chosen else 0
        pages = [
            read(tx, queue, behind[queue.name], min(last, heads[place][-1]))
            for place, queue in enumerate(peers)
            if heads[place]
        ]
        by_name = {queue.name: queue for queue in peers}
        for stored, bytes, whole in heapq.merge(*pages, key=_position) if len(pages) != 1 else pages[0]:
            room -= bytes
            if room <= 0 and taken:
                break
            if whole:
                taken.append(stored)
            else:  # it is kept out of everyone's way
                tx.messages.set_aside(by_name[stored.queue], stored)
                sound = False
    return taken, sound


def _positions(
    tx: Transaction, queue: Queue, behind: int, windows: Mapping[str, tuple[int, int]], size: int
) -> list[int]:
    positions = tx.messages.positions(queue, behind, size)
    return (
        [position for position in positions if position < windows[queue.name][1]]
        if queue.name in windows
        else positions
    )


def _position(read: _Found) -> int:
    return read[0].position


def set_aside(tx: Transaction, keys: Sequence[int], fence: int) -> None:
    """Keep claimed messages out of everyone's way that executors found damaged."""
    tx.leases.check(LEASE, fence)
    names = {stored.queue for stored in tx.messages.find_many(keys).values()}
    queues = _locked(tx, sorted(names))
    for stored in tx.messages.find_many(keys).values():
        if stored.queue not in queues or stored.processed is not None or tx.messages.is_set_aside(stored.key):
            continue
        if stored.sound:
            raise misread(stored.key)
        tx.messages.set_aside(queues[stored.queue], stored)


def base_of(tx: Transaction, arrivals: Sequence[Arrival], bodies: bool = True) -> dict[Granule, list[Document]]:
    """The sets that the arrivals look at, as they stand."""
    wanted = list(dict.fromkeys(granule for arrival in arrivals for granule in arrival.granules))
    sets: dict[Granule, list[Document]] = {}
    for kind, read in (("slice", tx.slices.slices), ("index", tx.slices.indexed)):
        alike = [granule for granule in wanted if granule.kind == kind]
        ids = tx.slices.ids("slicing" if kind == "slice" else "index") if alike else {}
        known = [granule for granule in alike if granule.name in ids]
        for granule, rows in zip(known, read([(ids[each.name], each.value) for each in known], bodies), strict=True):
            sets[granule] = [_document(row) for row in rows if not bodies or row.sound]
    for granule in wanted:
        if granule.kind == "queue":
            inside = tx.slices.queue(granule.name, bodies)
            sets[granule] = [_document(row) for row in inside if not bodies or row.sound]
    return sets


def _document(stored: Stored) -> Document:
    return Document(stored.key, stored.format, stored.type, stored.body, stored.number)


def evaluate(claimed: Claim, spark: Callable[[], SparkSession]) -> tuple[dict[int, Effects], int]:
    """The effects of the claimed messages, and how many of them, from the first on, are settled."""

    def on_spark(some: Sequence[Arrival], known: Timeline) -> Iterator[Mapping[int, Effects]]:
        return claimed.share.evaluate(spark(), some, claimed.base, known, claimed.bay)

    effects, unsettled = settle(claimed.arrivals, on_spark, STEP_ROUNDS_MAX)
    first = claimed.arrivals[0].order
    return effects, min(unsettled, default=first + len(claimed.arrivals)) - first


def commit(
    tx: Transaction,
    claimed: Claim,
    effects: Mapping[int, Effects],
    settled: int,
    fence: int,
    admit: Admit = admit_nothing,
) -> Result:
    """Mark the settled messages processed and apply their effects, as if one after another.

    ``admit`` lets new messages into queues that another capability looks after.
    """
    tx.leases.check(LEASE, fence)
    tx.definitions.lock()  # a load comes before this step or after it, never in between
    if tx.definitions.version() != claimed.share.version:
        raise Stale
    tx.journal.actor, actor = ENGINE, tx.journal.actor
    try:
        if claimed.bay is not None:
            claimed.bay.clear(tx)
        return _Commit(tx, claimed, effects, admit).write(settled)
    finally:
        tx.journal.actor = actor


class _Commit:
    def __init__(self, tx: Transaction, claimed: Claim, effects: Mapping[int, Effects], admit: Admit) -> None:
        self._tx = tx
        self._admit = admit
        self._passed = int(claimed.share.admission)
        self._claimed = claimed
        self._effects = effects
        self._agent = claimed.share.agent
        self._bonds = Bonds(tx, claimed.share.agent)
        self._slicings = tx.slices.ids("slicing")
        self._indexes = tx.slices.ids("index")

    def write(self, settled: int) -> Result:
        steps = self._bonds.untied(
            [
                (stored, self._effects[arrival.order])
                for stored, arrival in zip(self._claimed.stored[:settled], self._claimed.arrivals, strict=False)
            ]
        )
        queues = self._queues(steps)
        sources = {stored.queue for stored, _ in steps}
        if not all(releases(self._tx, queues[name]) for name in sources):
            raise Stale  # put on hold since the claim, or someone began to read
        held = {name for name, queue in queues.items() if not queue.accepts or in_use(self._tx, queue)}
        result = Result()
        if any(queue.admission & ~self._passed for queue in queues.values()):
            steps = [(stored, self._let_in(stored, made, queues)) for stored, made in steps]
        for number, (stored, made) in enumerate(steps if held else ()):
            goal = _held(made, held)
            if goal is not None:
                result.blocked = (stored.queue, goal)
                del steps[number:]
                break
        result.messages = len(steps)
        self._write(steps, queues, result)
        return result

    def _write(self, steps: Sequence[tuple[Stored, Effects]], queues: Mapping[str, Queue], result: Result) -> None:
        batch, sliced, timers = Batch(self._tx), self._claimed.share.watched.sliced, self._claimed.timers
        result.created = sum([len(made) for _, made in steps])
        resets = sum([type(action) is ResetSlice for _, made in steps for action in made])
        for stored, _ in steps if timers else ():  # before numbers are reserved: this writes to the journal too
            if stored.key in timers:
                self._tx.timers.remove(timers[stored.key])
        passed = sum([action.passed for _, made in steps for action in made if type(action) is Enqueue])
        keys = batch.reserve(len(steps) + result.created + passed, result.created - resets)
        for stored, made in steps:
            failed = IN_SPHERE in stored.properties and any(_is_failure(action) for action in made)
            batch.take(queues[stored.queue], stored, stored.queue in sliced, failed)
            for action in made:
                self._apply(batch, action, stored.key, queues)
            result.failures += bool(made) and _is_failure(made[0])
        batch.finish(self._claimed.snapshot)
        for name in self._claimed.share.watched.staying & queues.keys():
            self._tx.epochs.skip(queues[name].id, *batch.span)
        self._bonds.settle(steps, keys, queues)

    def _queues(self, steps: Sequence[tuple[Stored, Effects]]) -> dict[str, Queue]:
        """Every queue that is taken from or put into, locked in the order of numbers."""
        names = {stored.queue for stored, _ in steps}
        names |= {action.queue for _, actions in steps for action in actions if type(action) is Enqueue}
        names.update(self._bonds.queues)
        queues = [self._living(name) for name in names]
        if SYSTEM_ERRORS not in names and any(queue.admission & ~self._passed for queue in queues):
            queues.append(self._living(SYSTEM_ERRORS))
        return {queue.name: queue for queue in map(self._tx.queues.locked, sorted(queue.id for queue in queues))}

    def _living(self, name: str) -> Queue:
        queue = self._tx.queues.named_to_read(name)
        if queue is None or queue.retired:
            raise Stale
        return queue

    def _let_in(self, stored: Stored, made: Effects, queues: Mapping[str, Queue]) -> Effects:
        """Effects with what admission by other capabilities gives their messages; one that is refused is an error."""
        admitted: list[Action] = []
        for action in made:
            if type(action) is Enqueue and queues[action.queue].admission & ~self._passed:
                draft = Draft(action.body, action.format, action.type, action.properties)
                queue = queues[action.queue]
                try:
                    (put,) = self._admit(self._tx, queue._replace(admission=queue.admission & ~self._passed), [draft])
                except BodyError as refusal:
                    failure = Failure("application", refusal.code, str(refusal), action.rule)
                    return (error_message(failure, stored.queue, stored.key, _document(self._said(stored))),)
                admitted.append(self._admitted(action, put))
            else:
                admitted.append(action)
        return tuple(admitted)

    def _said(self, stored: Stored) -> Stored:
        """A claimed message with its body."""
        return (self._tx.messages.find(stored.key) or stored) if self._claimed.bay is not None else stored

    def _admitted(self, action: Enqueue, put: Put) -> Enqueue:
        slicings, indexes = ({number: name for name, number in ids.items()} for ids in (self._slicings, self._indexes))
        return action._replace(
            properties=put.draft.properties,
            slices=tuple((slicings[number], value) for number, value in put.places.slices),
            entries=tuple((indexes[number], value) for number, value in put.places.entries),
            delay=None if put.due is None else put.due - self._tx.now,
        )

    def _apply(self, batch: Batch, action: Action, cause: int, queues: Mapping[str, Queue]) -> None:
        if type(action) is not Enqueue:
            assert type(action) is ResetSlice
            actor = f"{self._agent} {action.rule}"
            batch.reset(self._slicings[action.slicing], action.value, action.slicing, actor)
            return
        rule, queue, form, type_, properties, body, slices, entries, delay, _, passed, _ = action
        places = NOWHERE
        if slices or entries:
            places = Places(
                tuple([(self._slicings[name], value) for name, value in slices]),
                tuple([(self._indexes[name], value) for name, value in entries]),
            )
        due = None if delay is None else self._tx.now + delay
        actor = f"{self._agent} {rule}"
        batch.put(queues[queue], body, form, type_, properties, cause, actor, places, due, passed)


def _is_failure(action: Action) -> bool:
    return type(action) is Enqueue and action.failed


def _held(made: Effects, held: set[str]) -> str | None:
    """A queue on hold that should take a new message: then the message that makes it waits."""
    return next((action.queue for action in made if isinstance(action, Enqueue) and action.queue in held), None)
