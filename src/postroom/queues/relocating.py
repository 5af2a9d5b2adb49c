"""Purge, move and redrive: many messages out of a queue, to another, or back from the dead letters.

Each commit takes a page of them. If interrupted, some are moved, the rest are unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from postroom.errors import (
    ArgumentInvalid,
    FormatUnclear,
    MessageNotWaiting,
    PostroomError,
    QueueError,
    RedriveRefused,
    StoreError,
)
from postroom.limits import PAGE_ROWS
from postroom.model.key import key_number, key_text
from postroom.model.message import Draft, Message, Stored
from postroom.queues import limits, locks, redriving, status
from postroom.queues.sending import formatted
from postroom.queues.tree.addressing import Names, names_of, on_hold, one_queue, one_to_read, queues_of
from postroom.store.kernel.base import Store
from postroom.store.kernel.batch import Admit, Batch
from postroom.store.kernel.batch import Put as Entering
from postroom.store.kernel.deliveries import PLAIN, Wanted, unmarked
from postroom.store.kernel.message_rows import State
from postroom.store.kernel.queues import CLOSED, Admission, Queue
from postroom.store.kernel.slices import Member
from postroom.store.kernel.timers import ECHO
from postroom.store.kernel.transaction import Transaction

#: Is given a message; answers with another body or draft for it, or None if it is to stay as it is.
Edit = Callable[[Message], Any]
#: Lets new messages into a queue, as a send does: with what rules and limits of that queue ask for.
Put = Callable[[Transaction, Queue, Sequence[Draft], int | None], Sequence[int]]
#: Where a message goes, or why it stays; None if it is let go.
Goal = str | PostroomError | None
#: Why a message that is redriven stays where it is, and the others go.
_STAYS = (ArgumentInvalid, FormatUnclear, QueueError, RedriveRefused)


@dataclass(frozen=True, slots=True)
class Relocated:
    """The result: each moved message with its new queue; what stayed, and why."""

    moves: tuple[tuple[str, str | None], ...]
    dry: bool = False
    status: str = status.DONE
    skipped: tuple[tuple[str, str], ...] = ()

    @property
    def count(self) -> int:
        """The number of moved messages."""
        return len(self.moves)

    def as_dict(self) -> dict[str, Any]:
        moves = [{"key": key, "to": queue} for key, queue in self.moves]
        shape = {"status": self.status, "dry": self.dry, "message_count": self.count, "moves": moves}
        return shape | ({"skipped": [{"key": key, "why": why} for key, why in self.skipped]} if self.skipped else {})


class _Going(NamedTuple):
    """A message that is moved, with its content there."""

    stored: Stored
    draft: Draft
    names: Names
    edited: bool = False
    as_sent: bool = False  # all of it is new, and enters as what is sent
    told: int | None = None  # what failed, if it is what is sent again


class _Page(NamedTuple):
    """A page of messages, and what happens to each."""

    stored: Sequence[Stored]
    goals: Sequence[Goal]
    told: Collection[int] = ()
    full: bool = False  # whether there may be more


#: Says of a message what it is to become; ``told`` is what is sent again by others of its page.
Plan = Callable[[Transaction, Stored, Collection[int]], _Going]


class _Task(NamedTuple):
    """What to do with messages of a queue."""

    verb: str
    plan: Plan | None = None  # None: they are let go
    skips: bool = False  # whether what is refused stays, and the others go

    @contextmanager
    def noting(self, refused: dict[int, PostroomError], keys: Iterable[int]) -> Iterator[None]:
        """Collect an error in the block as the reason why these messages stay."""
        try:
            yield
        except _STAYS as refusal:
            if not self.skips:
                raise
            refused |= dict.fromkeys(keys, refusal)

    def accepting(self, tx: Transaction, target: Queue, source: Queue) -> Queue:
        """Raise unless a queue accepts moved messages."""
        if self.verb == "move" and target.id == source.id:
            raise ArgumentInvalid(argument="to", why="it is the queue that the messages are in")
        if target.kind in CLOSED:
            why = f"nothing is moved into {target.name}: send to it, if it takes messages"
            raise ArgumentInvalid(argument="to", why=why)
        if not target.accepts:
            raise on_hold(tx, target, "accept")
        locks.refuse_locked(tx, target)
        return target


class Relocating:
    """Purges, moves and redrives. ``admit_again`` admits messages that were sent before, ``admit`` new ones."""

    def __init__(self, store: Store, put: Put, admit: Admit, admit_again: Admit) -> None:
        self._store = store
        self._put = put
        self._admit = admit
        self._admit_again = admit_again

    def purge(self, queue: Names, *, dry: bool = False) -> Relocated:
        """Delete all unread messages of a queue; leased ones stay."""
        return self._each(queue, None, None, _Task("purge"), dry)

    def move(
        self, queue: Names, to: Names, *, keys: Sequence[str] | None = None, limit: int | None = None, dry: bool = False
    ) -> Relocated:
        """Move waiting messages from one queue to the end of another, oldest first.

        Each keeps its priority, delay and expiry. What a send to the other queue would refuse is not moved.
        """

        def plan(tx: Transaction, stored: Stored, told: Collection[int]) -> _Going:
            return _Going(stored, _as_it_looks(tx, stored, to, stored.properties), to)

        self._store.read(lambda tx: one_to_read(tx, names_of(to)))  # it is there, also if nothing is to be moved
        return self._each(queue, keys, limit, _Task("move", plan), dry)

    def redrive(
        self,
        queue: Names,
        *,
        to: Names | None = None,
        keys: Sequence[str] | None = None,
        limit: int | None = None,
        edit: Edit | None = None,
        dry: bool = False,
    ) -> Relocated:
        """Move dead letters back to the queues where they failed, or to another; their attempts begin anew.

        An edited one is a new message, caused by the old one. So is a message that failed at a rule or an arc: the new
        message replaces its error message. Those that cannot be redriven stay, and are reported.
        """

        def plan(tx: Transaction, stored: Stored, told: Collection[int]) -> _Going:
            names, initial = to or redriving.origin(stored), redriving.told_of(stored)
            body = None if edit is None else edit(Message(stored))
            if initial is not None and body is None and to is not None:
                return _Going(stored, _as_it_looks(tx, stored, to, stored.properties), names)
            redriving.refuse_second(tx, stored, initial, told)
            about = redriving.subject(stored, initial)
            if body is not None:
                return _Going(stored, _edited(stored, body), names, True, isinstance(body, Draft), about)
            if initial is not None:
                return _Going(stored, redriving.draft_of(tx, stored, initial), names, True, told=about)
            properties = unmarked(stored.properties)
            return _Going(stored, _as_it_looks(tx, stored, to, properties), names, told=about)

        if to is not None:
            self._store.read(lambda tx: one_to_read(tx, names_of(to)))
        return self._each(queue, keys, limit, _Task("redrive", plan, skips=True), dry)

    # --- pages ---

    def _each(self, queue: Names, keys: Sequence[str] | None, limit: int | None, task: _Task, dry: bool) -> Relocated:
        if limit is not None and limit < 1:
            raise ArgumentInvalid(argument="limit", why="at least 1")
        names, left = names_of(queue), None if keys is None else [key_number(key) for key in keys]
        moves: list[tuple[str, str | None]] = []
        refused: dict[int, PostroomError] = {}
        # What comes meanwhile is not touched: else a queue that leads back to itself would have no end.
        newest = self._store.read(lambda tx: tx.journal.newest())
        run = _Run(task, names, left, newest)
        while limit is None or len(moves) < limit:
            size = PAGE_ROWS if limit is None else min(PAGE_ROWS, limit - len(moves))
            if dry:
                page = self._store.read(partial(self._looked_at, run, size))
                run.told |= set(page.told)
            else:
                page = self._store.transact("relocate", partial(self._page, run, size))
            for stored, goal in zip(page.stored, page.goals, strict=True):
                if isinstance(goal, PostroomError):
                    refused[stored.key] = goal
                else:
                    moves.append((key_text(stored.key), goal))
                if dry or isinstance(goal, PostroomError):
                    run.pass_by(stored)
            if run.keys is not None or not (page.full or run.begin):
                break
            run.begin = run.begin if page.full else 0  # once more: one that has left may have let others come
        if refused and not moves:
            raise next(iter(refused.values()))
        skipped = tuple((key_text(key), str(error)) for key, error in refused.items())
        return Relocated(tuple(moves), dry, skipped=skipped)

    def _page(self, run: _Run, size: int, tx: Transaction) -> _Page:
        source = locks.free(tx, one_queue(tx, run.names))
        page = self._planned(tx, run, source, size)
        if run.task.plan is None:
            for stored in page.stored:
                tx.deliveries.discard(source, _as_it_is(tx, stored), run.task.verb)
                tx.requests.lost(stored)
        tx.wake()
        return page

    def _planned(self, tx: Transaction, run: _Run, source: Queue, size: int) -> _Page:
        """Move what can be moved; the others get the reason."""
        chosen = _chosen(tx, source, run, size)
        full = run.keys is None and len(chosen) == size
        if run.task.plan is None:
            return _Page(chosen, [None] * len(chosen), full=full)
        going, refused, told = _plans(tx, run, chosen)
        targets = _targets(tx, run.task, source, going, refused)
        for name, target in targets.items():
            some = [move for move in going if move.names == name]
            refused |= self._bring(tx, source, target, run.task, some)
        goals = {move.stored.key: targets[move.names].name for move in going if move.names in targets}
        return _Page(chosen, [refused.get(stored.key) or goals[stored.key] for stored in chosen], told, full)

    def _looked_at(self, run: _Run, size: int, tx: Transaction) -> _Page:
        """The dry run of a page: messages and targets; raises what the page would raise."""
        source = queues_of(tx, run.names)[0]
        locks.refuse_locked(tx, source)
        chosen = _chosen(tx, source, run, size)
        full = run.keys is None and len(chosen) == size
        if run.task.plan is None:
            return _Page(chosen, [None] * len(chosen), full=full)
        going, refused, told = _plans(tx, run, chosen)
        goals: dict[int, str] = {}
        refused |= self._not_admitted(tx, run.task, going)
        for move in going:
            if move.stored.key in refused:
                continue
            with run.task.noting(refused, [move.stored.key]):
                target = run.task.accepting(tx, queues_of(tx, names_of(move.names))[0], source)
                limits.kept(tx, target, tx.deliveries.details(move.stored.key).own(), move.stored.key)
                count, weight = let_in = run.let_in.get(target.name, (0, 0))
                size = len(move.draft.body.encode())
                limits.check_room(tx, target, 1, size, let_in=let_in)
                run.let_in[target.name] = (count + 1, weight + size)
                goals[move.stored.key] = target.name
        return _Page(chosen, [refused.get(stored.key) or goals[stored.key] for stored in chosen], told, full)

    def _not_admitted(self, tx: Transaction, task: _Task, going: Sequence[_Going]) -> dict[int, PostroomError]:
        """The messages that their queues would not admit, with errors."""
        refused: dict[int, PostroomError] = {}
        for names in {move.names for move in going}:
            with suppress(QueueError):
                target = queues_of(tx, names_of(names))[0]
                some = [move for move in going if move.names == names]
                refused |= self._admitted(tx, target, some, skips=task.skips)[1]
        return refused

    # --- bringing ---

    def _bring(
        self, tx: Transaction, source: Queue, target: Queue, task: _Task, going: Sequence[_Going]
    ) -> dict[int, PostroomError]:
        """Move messages to another queue.

        Where rules or arcs read, they are admitted as if they were sent. One with another body is a new message, caused
        by the old one. Returns the refused ones with errors.
        """
        admitted, refused = self._admitted(tx, target, going, skips=task.skips)
        for move in going:
            if move.stored.key not in refused:
                with task.noting(refused, [move.stored.key]):  # it is refused before anything of it was written
                    self._bring_one(tx, source, target, task.verb, move, admitted.get(move.stored.key))
        return refused

    def _bring_one(
        self, tx: Transaction, source: Queue, target: Queue, verb: str, going: _Going, put: Entering | None
    ) -> None:
        stored, draft = _as_it_is(tx, going.stored), going.draft if put is None else put.draft
        details = tx.deliveries.details(stored.key)
        keeps = limits.kept(tx, target, details.own(), stored.key)
        if going.edited or draft[:3] != (stored.body, stored.format, stored.type):
            new = self._enter(tx, target, put, draft, keeps, stored.key)
            about = {} if going.told in (None, stored.key) else {redriving.FAILED: key_text(going.told or 0)}
            tx.deliveries.discard(source, stored, verb, {"edited": key_text(new), **about})
            return
        limits.make_room(tx, target, [draft])
        line = tx.deliveries.move(source, stored, details, target, verb, draft.properties, keeps=keeps)
        if put is not None:
            slices, entries = ([Member(set, value, line, stored.key) for set, value in some] for some in put.places)
            tx.slices.add(slices, entries)
        if put is not None and put.due is not None:
            tx.timers.add(put.due, ECHO, {"message": stored.key})

    def _admitted(
        self, tx: Transaction, target: Queue, going: Sequence[_Going], *, skips: bool
    ) -> tuple[dict[int, Entering], dict[int, PostroomError]]:
        """The messages by key as admission changes them, and the errors for those refused."""
        admitted: dict[int, Entering] = {}
        refused: dict[int, PostroomError] = {}
        if not target.admission & ~Admission.SENDING:
            return admitted, refused
        for as_sent, admit in ((True, self._admit), (False, self._admit_again)):
            some = [move for move in going if move.as_sent is as_sent]
            parts = [some] if some else []
            while parts:
                part = parts.pop()
                try:
                    puts = admit(tx, target, [move.draft for move in part])
                except StoreError:
                    raise
                except PostroomError as refusal:
                    if not skips:
                        raise
                    if len(part) == 1:
                        refused[part[0].stored.key] = refusal
                    else:  # all at once are admitted faster; if one is not, it is looked for
                        parts += [part[: len(part) // 2], part[len(part) // 2 :]]
                    continue
                admitted |= {move.stored.key: put for move, put in zip(part, puts, strict=True)}
        return admitted, refused

    def _enter(
        self, tx: Transaction, target: Queue, put: Entering | None, draft: Draft, keeps: Wanted, cause: int
    ) -> int:
        """Put a new message instead of another, which becomes its cause."""
        if put is not None:
            limits.make_room(tx, put.queue, [put.draft])
            return Batch(tx).write([put._replace(cause=cause)], 0)[0]
        if keeps == PLAIN:
            return self._put(tx, target, [draft], cause)[0]
        limits.make_room(tx, target, [draft])
        return limits.put_wanted(tx, target, draft, keeps, cause)


class _Run:
    """One call: the task, the messages, and the results of its pages so far."""

    def __init__(self, task: _Task, names: Names, keys: Sequence[int] | None, newest: int) -> None:
        self.task = task
        self.names = names
        self.keys = keys
        self.newest = newest
        self.begin = 0  # all before this position were looked at, and stay
        self.passed: set[int] = set()
        self.told: set[int] = set()  # what pages that only look would send again
        self.let_in: dict[str, tuple[int, int]] = {}  # and how many messages and bytes they would bring to a queue

    def pass_by(self, stored: Stored) -> None:
        """Note that a message stays."""
        self.begin = max(self.begin, stored.position)
        self.passed.add(stored.key)


def _plans(
    tx: Transaction, run: _Run, chosen: Sequence[Stored]
) -> tuple[list[_Going], dict[int, PostroomError], set[int]]:
    """What to do with each message, and errors for those that cannot be moved."""
    assert run.task.plan is not None
    going: list[_Going] = []
    refused: dict[int, PostroomError] = {}
    told = set(run.told)
    for stored in chosen:
        with run.task.noting(refused, [stored.key]):
            move = run.task.plan(tx, stored, told)
            going.append(move)
            told |= set() if move.told is None else {move.told}
    return going, refused, told


def _targets(
    tx: Transaction, task: _Task, source: Queue, going: Sequence[_Going], refused: dict[int, PostroomError]
) -> dict[Names, Queue]:
    """The target queues, locked; messages for unreachable ones go into ``refused``."""
    targets: dict[Names, Queue] = {}
    for names in sorted({move.names for move in going}):
        with task.noting(refused, [move.stored.key for move in going if move.names == names]):
            targets[names] = task.accepting(tx, one_queue(tx, names_of(names)), source)
    return targets


def _chosen(tx: Transaction, queue: Queue, run: _Run, size: int) -> list[Stored]:
    """The next messages, or those with given keys, all of which must wait in the queue."""
    if run.keys is None:
        return list(islice(_waiting(tx, queue, run), size))
    messages = tx.messages.find_many(run.keys)
    for key in run.keys:
        stored = messages.get(key)
        if stored is None or stored.queue != queue.name or tx.deliveries.details(key).state not in redriving.WAITING:
            tx.causes.require(key)  # one that never was is unknown
            raise MessageNotWaiting(key=key_text(key), those=f"those that wait in {queue.name}")
    return [messages[key] for key in dict.fromkeys(run.keys)]


def _waiting(tx: Transaction, queue: Queue, run: _Run) -> Iterator[Stored]:
    for state in redriving.WAITING:
        after = run.begin if state is State.UNPROCESSED else 0
        while page := tx.messages.page(queue, state, after, PAGE_ROWS):
            yield from (stored for stored in page if stored.position <= run.newest and stored.key not in run.passed)
            after = page[-1].position


def _as_it_is(tx: Transaction, stored: Stored) -> Stored:
    """Read a message again: an earlier one of its key, moved just now, may have unblocked it."""
    return tx.messages.find(stored.key) or stored


def _as_it_looks(tx: Transaction, stored: Stored, to: Names | None, properties: str) -> Draft:
    """The content of a message for another queue, with its format guessed as for a send there."""
    draft = Draft(stored.body, stored.format, stored.type, properties)
    if to is None:
        return draft
    (formatted_draft,) = formatted(tx, queues_of(tx, names_of(to))[0], [draft])
    return formatted_draft


def _edited(stored: Stored, body: Any) -> Draft:
    """The edited message: a draft as it is, or another body with everything else unchanged."""
    if isinstance(body, Draft):
        return body
    return Draft.of(body, stored.format, stored.type, json.loads(unmarked(stored.properties)))
