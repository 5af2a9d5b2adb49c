"""One step, in its three parts: claim the next messages, evaluate them, commit the effects.

Progress is in the store: marking messages processed and applying their effects is one commit, under the number of the
engine's lease. A step that is abandoned before that commit has changed nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from postroom.engine.blocked import Blocked
from postroom.engine.evaluators import Evaluators
from postroom.engine.holding import LEASE, Holding
from postroom.engine.spark.executor_store import Bay, misread
from postroom.engine.spheres import Bonds
from postroom.engine.steps import attempts, sharing
from postroom.engine.steps.attempts import NO_TRIES, Tries
from postroom.engine.steps.effects import (
    Action,
    Arrival,
    Document,
    Effects,
    Enqueue,
    Granule,
    ResetSlice,
    moment,
)
from postroom.engine.steps.failures import Failure, error_message
from postroom.engine.steps.serial import Timeline, settle
from postroom.engine.steps.stage import Folding, Result, Share, Watched
from postroom.errors import BodyError
from postroom.limits import STEP_BYTES_MAX, STEP_FREE_MESSAGES, STEP_ROUNDS_MAX
from postroom.model.message import IN_SPHERE, Draft, Stored
from postroom.store.kernel.batch import Admit, Batch, Origin, Places, Put, Stale, admit_nothing
from postroom.store.kernel.message_rows import State
from postroom.store.kernel.queues import SYSTEM_ERRORS, Admission, Queue
from postroom.store.kernel.timers import ECHO, Timer
from postroom.store.kernel.transaction import Transaction

#: The actor of what the engine does by itself.
ENGINE = "engine"


@dataclass
class Claim:
    """The input of a step, as it was at one moment."""

    share: Share
    snapshot: int  # the newest journal number
    stored: list[Stored]
    arrivals: list[Arrival]
    base: dict[Granule, list[Document]]
    timers: dict[int, Timer]  # by the key of the message whose time has come
    more: bool  # whether there was more than the step takes
    rights: int = 0  # the version of the rights that its definitions act with
    bay: Bay | None = None  # if executors fetch what its messages say, and leave their answers
    evaluated: str = ""  # by which way
    tries: Tries = NO_TRIES


def claim(
    tx: Transaction,
    share: Share,
    size: int,
    fence: int,
    waiting: Mapping[str, str],
    after: Mapping[str, int],
    bodies: bool = True,
    holding: Holding | None = None,
) -> Claim | None:
    """The next messages in the order of priority and arrival; None if there is nothing to take.

    ``after`` has the last positions of messages under way. Their effects are not known yet, so only messages are taken
    whose rules read no others, and none if a timer is due, which goes first. Without ``bodies`` it reads only metadata,
    for executors that read the bodies.
    """
    _check(tx, fence, holding)
    barred = tx.bindings.lacking(share.agent)
    share = share.barring(barred) if barred else share
    watched = share.watched
    by_name = _found(tx, watched, waiting)
    free = [by_name[name] for name in watched.queues if name in by_name]
    if not any(queue.unprocessed for queue in free if queue.name in watched.reading):
        size = min(size, STEP_FREE_MESSAGES)
    elif after:
        return None
    due = tx.timers.next_due(ECHO) if after else None
    if due is not None and due <= tx.now:
        return None
    # Timers are of the stage that has echo queues: to others a message in one of them would be one that was moved away.
    timed = watched.echoes and not after
    stored, timers = _due(tx, by_name, watched.echoes, size) if timed else ([], {})
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
        tries=Tries.of(tx, stored, watched.once),
        rights=tx.access.version(),
    )


def _check(tx: Transaction, fence: int, holding: Holding | None, queues: Collection[str] = ()) -> None:
    """Raise unless this engine may commit: it leads, or has all of these queues."""
    if holding is None or holding.leads:
        tx.leases.check(LEASE, fence)
    if holding is not None:
        holding.check(tx, queues)


def _found(tx: Transaction, watched: Watched, waiting: Container[str]) -> dict[str, Queue]:
    """The queues that a step may take from.

    If rules read other messages, the queues are locked, so that all are read at one moment. Else they are read without
    a lock and senders do not wait; an earlier message that is committed meanwhile comes in the next step.
    """
    names = [name for name in (*watched.queues, *watched.echoes) if name not in waiting]
    read = [queue for name in names if (queue := tx.queues.named_to_read(name)) is not None]
    if all(queue.name in watched.free for queue in read if queue.unprocessed):
        return {queue.name: queue for queue in read if not queue.retired and releases(tx, queue)}
    locked = _locked(tx, [*watched.queues, *watched.echoes])
    return {name: queue for name, queue in locked.items() if name not in waiting}


def _locked(tx: Transaction, names: Sequence[str]) -> dict[str, Queue]:
    """The queues, locked and read, without those on hold or locked by a receiver."""
    ids = sorted(queue.id for name in names if (queue := tx.queues.named_to_read(name)) is not None)
    queues = [tx.queues.locked(id) for id in ids]
    return {queue.name: queue for queue in queues if not queue.retired and releases(tx, queue)}


def releases(tx: Transaction, queue: Queue) -> bool:
    """Whether the engine may take messages of a queue now."""
    return queue.releases and not queue.in_use(tx.now)


def _due(
    tx: Transaction, queues: Mapping[str, Queue], echoes: Collection[str], size: int
) -> tuple[list[Stored], dict[int, Timer]]:
    """Messages whose timer is due, with the timer. A queue that waits does not block the others."""
    waiting: list[Stored] = []
    timers: dict[int, Timer] = {}
    looked_at: set[int] = set()
    limit = size
    while True:
        due = tx.timers.due(ECHO, limit)
        for timer in due:
            if timer.id not in looked_at and len(waiting) < size:
                looked_at.add(timer.id)
                stored = _waited_for(tx, timer, queues, echoes)
                if stored is not None:
                    waiting.append(stored)
                    timers[stored.key] = timer
        if len(due) < limit or len(waiting) >= size:
            return waiting, timers
        limit *= 2


def _waited_for(tx: Transaction, timer: Timer, queues: Mapping[str, Queue], echoes: Collection[str]) -> Stored | None:
    stored = tx.messages.find(int(timer.payload["message"]))
    if stored is not None and tx.deliveries.details(stored.key).state in (State.DELAYED, State.LEASED):
        return None  # it waits for its next attempt, or someone has it and may give it back
    if stored is not None and tx.messages.is_reserved(stored.key):
        return None  # whoever has it may give it back
    if stored is None or stored.processed is not None or stored.queue not in echoes:
        tx.timers.remove(timer)  # someone has received the message meanwhile, or moved it
        return None
    if stored.queue not in queues:
        return None
    if stored.sound:
        return stored
    if not tx.messages.is_set_aside(stored.key):  # someone who wanted to receive it may have found it first
        tx.messages.set_aside(tx.queues.locked(queues[stored.queue].id), stored)
    tx.timers.remove(timer)
    return None


#: A message, how many bytes it says, and whether it still says what was sent.
_Found = tuple[Stored, int, bool]


def _whole(tx: Transaction, queue: Queue, after: int, last: int) -> Iterator[_Found]:
    return ((stored, len(stored.body), stored.sound) for stored in tx.messages.between(queue, after, last))


def _outlined(tx: Transaction, queue: Queue, after: int, last: int) -> Iterator[_Found]:
    """Messages without bodies; their hash is checked where the body is read."""
    return ((stored, size, True) for stored, size in tx.messages.outlines(queue, after, last))


def _next(
    tx: Transaction,
    queues: Sequence[Queue],
    watched: Watched,
    size: int,
    after: Mapping[str, int],
    read: Callable[[Transaction, Queue, int, int], Iterator[_Found]],
) -> tuple[list[Stored], bool]:
    """Messages by priority and arrival; also whether all of them are sound."""
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
                tx.messages.set_aside(tx.queues.locked(by_name[stored.queue].id), stored)
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


def set_aside(tx: Transaction, keys: Sequence[int], fence: int, holding: Holding | None = None) -> None:
    """Set aside claimed messages that executors found damaged."""
    names = {stored.queue for stored in tx.messages.find_many(keys).values()}
    _check(tx, fence, holding, names)
    queues = _locked(tx, sorted(names))
    for stored in tx.messages.find_many(keys).values():
        if stored.queue not in queues or stored.processed is not None or tx.messages.is_set_aside(stored.key):
            continue
        if stored.sound:
            raise misread(stored.key)
        tx.messages.set_aside(queues[stored.queue], stored)


def base_of(tx: Transaction, arrivals: Sequence[Arrival], bodies: bool = True) -> dict[Granule, list[Document]]:
    """The stored sets that the arrivals read."""
    wanted = list(dict.fromkeys(granule for arrival in arrivals for granule in arrival.granules))
    sets: dict[Granule, list[Document]] = {}
    for kind, read in (("slice", tx.slices.slices), ("index", tx.slices.indexed)):
        alike = [granule for granule in wanted if granule.kind == kind]
        ids = tx.slices.ids("slicing" if kind == "slice" else "index") if alike else {}
        known = [granule for granule in alike if granule.name in ids]
        for granule, rows in zip(
            known, read([(ids[granule.name], granule.value) for granule in known], bodies), strict=True
        ):
            sets[granule] = [_document(row) for row in rows if _is_seen(row, granule, bodies)]
    for granule in wanted:
        if granule.kind == "queue":
            inside = tx.slices.queue(granule.name, bodies)
            sets[granule] = [_document(row) for row in inside if _is_seen(row, granule, bodies)]
    return sets


def _is_seen(stored: Stored, granule: Granule, bodies: bool) -> bool:
    """Whether a message belongs to a set: not if it is damaged or came too late."""
    return (not bodies or stored.sound) and (not granule.until or stored.created <= granule.until)


def _document(stored: Stored) -> Document:
    return Document(stored.key, stored.format, stored.type, stored.body, stored.number)


def evaluate(claimed: Claim, evaluators: Evaluators) -> tuple[dict[int, Effects], int]:
    """The effects of the claimed messages, and how many of them, counted from the first, are settled."""
    way = evaluators.way(claimed.share.weight(claimed.arrivals))
    claimed.evaluated = way.name

    def together(some: Sequence[Arrival], known: Timeline) -> Iterator[Mapping[int, Effects]]:
        outcomes = claimed.share.evaluate(way, some, claimed.base, known, claimed.bay)
        return claimed.tries.each(outcomes, some) if claimed.tries.policies else outcomes

    effects, unsettled = settle(claimed.arrivals, together, STEP_ROUNDS_MAX)
    first = claimed.arrivals[0].order
    return effects, min(unsettled, default=first + len(claimed.arrivals)) - first


def commit(
    tx: Transaction,
    claimed: Claim,
    effects: Mapping[int, Effects],
    settled: int,
    fence: int,
    admit: Admit = admit_nothing,
    holding: Holding | None = None,
    *,
    shares: bool = False,
) -> Result:
    """Mark the settled messages processed and apply their effects, as if one after another.

    ``admit`` admits new messages to queues of other capabilities. If it ``shares``, others send to its queues and
    receive from them meanwhile, where that is possible; it raises ``Unshared`` if one of them must be had alone.
    """
    _check(tx, fence, holding, {stored.queue for stored in claimed.stored})
    tx.definitions.share()  # a load comes before this step or after it, never in between
    if tx.definitions.version() != claimed.share.version or tx.access.version() != claimed.rights:
        raise Stale
    tx.journal.actor, actor = ENGINE, tx.journal.actor
    try:
        if claimed.bay is not None:
            claimed.bay.clear(tx)
        return _Commit(tx, claimed, effects, admit, shares=shares).write(settled)
    finally:
        tx.journal.actor = actor


class _Commit:
    def __init__(
        self, tx: Transaction, claimed: Claim, effects: Mapping[int, Effects], admit: Admit, *, shares: bool
    ) -> None:
        self._tx = tx
        self._admit = admit
        self._shares = shares
        self._passed = int(claimed.share.admission | Admission.SENDING)
        self._claimed = claimed
        self._effects = effects
        self._agent = claimed.share.agent
        self._bonds = Bonds(tx, claimed.share.agent)
        self._slicings = tx.slices.ids("slicing")
        self._indexes = tx.slices.ids("index")
        self._origins: dict[tuple[str, str], Origin] = {}  # by rule and queue

    def write(self, settled: int) -> Result:
        steps = self._bonds.untied(
            [
                (stored, self._effects[arrival.order])
                for stored, arrival in zip(self._claimed.stored[:settled], self._claimed.arrivals, strict=False)
            ]
        )
        folding = self._claimed.share.folding(self._tx, {stored.queue for stored, _ in steps})
        queues = self._queues(steps, folding)
        sources = {stored.queue for stored, _ in steps}
        if not all(releases(self._tx, queues[name]) for name in sources):
            raise Stale  # put on hold since the claim, or someone began to read
        held = {name for name, queue in queues.items() if not queue.accepts or queue.in_use(self._tx.now)}
        result = Result()
        if folding is not None:
            steps = self._folded(steps, folding, held)
        if any(queue.admission & ~self._passed for queue in queues.values()):
            judged, let_in = self._claimed.tries.judged, self._let_in
            steps = [(stored, judged(stored.queue, stored.key, let_in(stored, made, queues))) for stored, made in steps]
        self._cut(steps)
        for number, (stored, made) in enumerate(steps if held else ()):
            goal = _held(made, held)
            if goal is not None:
                result.blocked = Blocked(stored.queue, stored.key, goal)
                del steps[number:]
                break
        result.messages = len(steps)
        if folding is not None:
            folding.write(sum(attempts.failed(made) is None for _, made in steps))
        self._write(steps, queues, result)
        return result

    def _write(self, steps: Sequence[tuple[Stored, Effects]], queues: Mapping[str, Queue], result: Result) -> None:
        batch, sliced, timers = Batch(self._tx), self._claimed.share.watched.sliced, self._claimed.timers
        for stored, made in steps if timers else ():  # before numbers are reserved: this writes to the journal too
            if stored.key in timers and attempts.failed(made) is None:
                self._tx.timers.remove(timers[stored.key])
        steps, failed = self._tried(steps, queues)
        result.created = sum([len(made) for _, made in steps])
        resets = passed = 0
        for _, made in steps:
            for action in made:
                if type(action) is not Enqueue:
                    resets += 1
                elif action.passed:
                    passed += 1
        keys = batch.reserve(len(steps) - len(failed) + result.created + passed, result.created - resets)
        # The first message of a step tells how it was evaluated.
        detail = (
            self._tx.journal.detail_text({"evaluated": self._claimed.evaluated}) if self._claimed.evaluated else None
        )
        for stored, made in steps:
            if stored.key not in failed:
                broken = IN_SPHERE in stored.properties and any(_is_failure(action) for action in made)
                batch.take(queues[stored.queue], stored, stored.queue in sliced, broken, detail)
                detail = None
            self._apply(batch, made, stored.key, queues)
            result.failures += bool(made) and _is_failure(made[0])
        batch.finish(self._claimed.snapshot)
        for name in self._claimed.share.watched.staying & queues.keys():
            self._tx.epochs.skip(queues[name].id, *batch.span)
        self._bonds.settle(steps, keys, queues)

    def _cut(self, steps: list[tuple[Stored, Effects]]) -> None:
        """End the step before a message that reads sets which a dead letter leaves: it belongs to the next step."""
        for number, (_, made) in enumerate(steps):
            failure = attempts.failed(made)
            if failure is not None and failure.final and any(arrival.reads for arrival in self._claimed.arrivals):
                del steps[number + 1 :]

    def _tried(
        self, steps: Sequence[tuple[Stored, Effects]], queues: Mapping[str, Queue]
    ) -> tuple[Sequence[tuple[Stored, Effects]], set[int]]:
        """Record failed attempts, before numbers are reserved; returns the remaining messages and the failed ones. A
        failed message is not processed: it waits, or is a dead letter."""
        failed: set[int] = set()
        for stored, made in steps:
            failure = attempts.failed(made)
            if failure is not None:
                if not attempts.is_waiting(self._tx, stored):
                    raise Stale
                attempts.fail(self._tx, queues[stored.queue], stored, failure, self._claimed.timers.get(stored.key))
                failed.add(stored.key)
        if not failed:
            return steps, failed
        return [(stored, made[1:] if stored.key in failed else made) for stored, made in steps], failed

    def _folded(
        self, steps: Sequence[tuple[Stored, Effects]], folding: Folding, held: set[str]
    ) -> list[tuple[Stored, Effects]]:
        """The messages with the effects of stateful definitions, up to the first one that waits for a held queue."""
        arrivals = {arrival.key: arrival for arrival in self._claimed.arrivals}
        folded: list[tuple[Stored, Effects]] = []
        for stored, made in steps:
            if attempts.failed(made) is not None:  # then nothing of it happens
                folded.append((stored, made))
                continue
            more = folding.effects(arrivals[stored.key]._replace(body=self._said(stored).body))
            split = sum(_is_failure(action) for action in more)
            folded.append((stored, (*more[:split], *made, *more[split:])))
            if held and _held(folded[-1][1], held) is not None:
                break  # it is told below; nothing of it is written
        return folded

    def _queues(self, steps: Sequence[tuple[Stored, Effects]], folding: Folding | None) -> dict[str, Queue]:
        """All queues of the step, in number order: some may be shared, and the others it has alone."""
        names = {stored.queue for stored, _ in steps}
        if folding is not None:
            names |= {*folding.targets, SYSTEM_ERRORS}
        names |= {action.queue for _, actions in steps for action in actions if type(action) is Enqueue}
        names.update(self._bonds.queues)
        names |= self._graves(steps)
        queues = [self._living(name) for name in names]
        checked = any(queue.admission & ~self._passed for queue in queues)
        if SYSTEM_ERRORS not in names and checked:
            queues.append(self._living(SYSTEM_ERRORS))
        # What is refused entry becomes something else.
        shares = self._shares and folding is None and not checked and self._tx.session.shares_queues
        uses = sharing.uses(steps, self._claimed.share.watched, self._claimed.timers) if shares else {}
        return sharing.locked(self._tx, queues, uses)

    def _graves(self, steps: Sequence[tuple[Stored, Effects]]) -> set[str]:
        """The existing queues of dead letters that will be needed."""
        policies = self._claimed.tries.policies
        sources = {stored.queue for stored, made in steps if (failure := attempts.failed(made)) and failure.final}
        names = {policies[name].dead_letters_of(name) for name in sources}
        graves = {name: self._tx.queues.named_to_read(name) for name in names}
        return {name for name, queue in graves.items() if queue is not None and not queue.retired}

    def _living(self, name: str) -> Queue:
        queue = self._tx.queues.named_to_read(name)
        if queue is None or (queue.retired and name not in self._claimed.share.watched.past):
            raise Stale
        return queue

    def _let_in(self, stored: Stored, made: Effects, queues: Mapping[str, Queue]) -> Effects:
        """The effects after admission by other capabilities; a refused message becomes an error."""
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
        """A claimed message, with its body read if it was missing."""
        return (self._tx.messages.find(stored.key) or stored) if self._claimed.bay is not None else stored

    def _admitted(self, action: Enqueue, put: Put) -> Enqueue:
        slicings, indexes = ({number: name for name, number in ids.items()} for ids in (self._slicings, self._indexes))
        return action._replace(
            properties=put.draft.properties,
            slices=tuple((slicings[number], value) for number, value in put.places.slices),
            entries=tuple((indexes[number], value) for number, value in put.places.entries),
            delay=None if put.due is None else put.due - self._tx.now,
        )

    def _apply(self, batch: Batch, made: Effects, cause: int, queues: Mapping[str, Queue]) -> None:
        origins, put_plainly = self._origins, batch.put_plainly
        for action in made:
            if type(action) is not Enqueue:
                assert type(action) is ResetSlice
                actor = f"{self._agent} {action.rule}"
                batch.reset(self._slicings[action.slicing], action.value, action.slicing, actor)
                continue
            rule, queue, form, type_, properties, body, slices, entries, delay, _, passed, _ = action
            if slices or entries or passed or delay is not None:
                self._put(batch, action, cause, queues[queue])
                continue
            origin = origins.get((rule, queue))
            if origin is None:
                origin = origins[rule, queue] = batch.origin(queues[queue], f"{self._agent} {rule}")
            put_plainly(origin, body, form, type_, properties, cause)

    def _put(self, batch: Batch, action: Enqueue, cause: int, queue: Queue) -> None:
        """Put a new message that has a second place, or a timer, or has bypassed its queue."""
        rule, _, form, type_, properties, body, slices, entries, delay, _, passed, _ = action
        places = Places(
            tuple([(self._slicings[name], value) for name, value in slices]),
            tuple([(self._indexes[name], value) for name, value in entries]),
        )
        due, actor = moment(delay, self._tx.now), f"{self._agent} {rule}"
        batch.put(queue, body, form, type_, properties, cause, actor, places, due, passed)


def _is_failure(action: Action) -> bool:
    return type(action) is Enqueue and action.failed


def _held(made: Effects, held: set[str]) -> str | None:
    """A queue on hold that blocks a new message: then the message that causes it waits."""
    return next((action.queue for action in made if isinstance(action, Enqueue) and action.queue in held), None)
