"""Counters at work: messages of queues become forms in mailboxes, and mail goes into queues.

Mailboxes and public queues are at the control node, so each step is one commit, wherever the station is. A message
that does not fit leads to an error message. No Spark: sending a message to a worker costs more than reading it.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic, perf_counter
from typing import Any

from postroom.engine.blocked import Blocked
from postroom.engine.holding import LEASE
from postroom.engine.spheres import Fates, Made, bound_to, plainly, sphere_of
from postroom.engine.steps import attempts
from postroom.engine.steps.attempts import Tries
from postroom.engine.steps.effects import Document, Failed
from postroom.engine.steps.failures import Failure, error_body
from postroom.engine.steps.stage import Result, Stage, Turn
from postroom.engine.steps.step import releases
from postroom.errors import BodyError, BodyMismatch, NodeDown
from postroom.limits import COUNTER_MESSAGES, NODE_PAUSE_SECONDS, STEP_BYTES_MAX
from postroom.model.body import Format, check_text, json_text
from postroom.model.key import key_text
from postroom.model.message import NO_PROPERTIES, SPHERE, Draft, Stored, properties_text
from postroom.model.views import record
from postroom.stations.counters.definitions import Counter, Counters, Kept, Way
from postroom.stations.forms.catalog import Edition, Forms
from postroom.stations.forms.filling import asks_functions
from postroom.stations.forms.filling_process import created_apart
from postroom.stations.forms.form import Form, Rule
from postroom.stations.mail import mail
from postroom.stations.places import desk
from postroom.stations.places.network import CONTROL, Network
from postroom.stations.places.postmarks import Postmarks, properties
from postroom.store.kernel.batch import Batch, Change, Put, Stale, Take
from postroom.store.kernel.handling import New
from postroom.store.kernel.message_rows import State
from postroom.store.kernel.queues import MAILBOX, SYSTEM_ERRORS, Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.tracking import MAILBOXES

_PAGE = 100  # messages read at once
_PAUSE_SECONDS = 0.05  # between two looks whether functions have answered
_FILL_SECONDS = 0.5  # that forms are filled in before some are handed over


class CounterStage(Stage):
    """A stage of the engine, without Spark."""

    def __init__(self, network: Network, counters: Counters) -> None:
        self._network = network
        self._counters = counters
        self._paused: dict[str, float] = {}  # nodes that did not answer, and when to ask again
        self._coming: dict[tuple[Kept, int], Future[_Filled]] = {}  # forms whose functions are asked, by counter

    def steps(self, turn: Turn) -> Generator[Result] | None:
        version, known = turn.store.read(self._counters.now)
        if not known:
            return None
        if any(kept.counter.way is Way.GIVES for kept in known):
            self._come_by()
        some = turn.store.read(
            lambda tx: [kept for kept in known if kept.source not in turn.waiting and not obstacle(tx, kept)]
        )
        return self._run(turn, version, some) if some else None

    def _come_by(self) -> None:
        """Finish transfers to mailboxes that a crash interrupted."""
        for node in self._network.nodes():
            if node == CONTROL or self._paused.get(node, 0) > monotonic():
                continue
            try:
                mail.recover(self._network, node)
            except NodeDown:
                self._paused[node] = monotonic() + NODE_PAUSE_SECONDS

    def lag(self, tx: Transaction) -> int:
        """The number of messages that wait for counters."""
        return sum(waiting(tx, kept) for kept in self._counters.now(tx)[1])

    def shown(self, tx: Transaction) -> list[CounterShown]:
        """Every counter, in the order of definition."""
        return [shown(tx, kept) for kept in self._counters.now(tx)[1]]

    def _run(self, turn: Turn, version: int, some: Sequence[Kept]) -> Generator[Result]:
        """Run one step of each counter, so that others get their turn."""
        current = [(kept, version) for kept in some]
        self._coming = {step: coming for step, coming in self._coming.items() if step in current}
        for kept in some:
            began = perf_counter()
            filled = self._filled(turn, version, kept)
            if filled is not None and not filled.done():
                continue
            with turn.store.acting(f"counter {kept.counter.name}"):
                result = self._step(turn, version, kept, None if filled is None else filled.result())
            self._coming.pop((kept, version), None)
            if result.messages or result.blocked:
                yield replace(result, claimed=result.messages, seconds={"commit": perf_counter() - began})
        if any(not coming.done() for coming in self._coming.values()):
            wait(self._coming.values(), _PAUSE_SECONDS, FIRST_COMPLETED)
            raise Stale  # there is more to do, soon

    def _filled(self, turn: Turn, version: int, kept: Kept) -> Future[_Filled] | None:
        """Fill in the next forms in the background, if they call functions of users."""
        type = kept.counter.type
        if type is None:
            return None
        edition = turn.store.read(lambda tx: self._network.forms.named(tx, type))
        if not asks_functions(edition.form):
            return None
        known = self._coming.get((kept, version))
        if known is None:
            size = min(turn.size(), COUNTER_MESSAGES, _PAGE)
            taken = turn.store.read(partial(_peeked, kept.source, size))
            keys = turn.store.transact("claim", lambda tx: list(tx.keys.take(len(taken)))) if taken else []
            known = self._coming[kept, version] = Future()
            work = partial(_fill, kept.counter, edition, taken, keys, turn.store.session.clock(), known)
            threading.Thread(target=work, daemon=True, name=f"counter {kept.counter.name}").start()
            wait([known], _PAUSE_SECONDS)
        return known

    def _step(self, turn: Turn, version: int, kept: Kept, ready: _Filled | None) -> Result:
        """Run a step; repeat it if it meets messages of spheres that must be locked first."""
        spheres: set[str] = set()

        def work(tx: Transaction) -> Result:
            tx.leases.check(LEASE, turn.fence)
            tx.definitions.lock()  # a load comes before this step or after it, never in between
            tx.nodes.lock()  # and so does a station that goes
            if tx.definitions.version() != version:
                raise Stale
            return _CounterStep(tx, turn, kept, self._network.forms, spheres, ready).done()

        while True:
            try:
                return turn.store.transact("counter", work)
            except _Met as met:
                spheres |= met.spheres


#: By the key of a message: the key and body of the form that it becomes, or why it becomes none.
_Filled = dict[int, tuple[int, str] | Failure]


def _peeked(source: str, size: int, tx: Transaction) -> list[Stored]:
    queue = tx.queues.named_to_read(source)
    page = [] if queue is None else tx.messages.page(queue, State.UNPROCESSED, 0, size)
    return [stored for stored in page if stored.sound]


def _fill(
    counter: Counter, edition: Edition, taken: Sequence[Stored], keys: Sequence[int], now: int, coming: Future[_Filled]
) -> None:
    """Fill in forms until one takes long: the finished ones are delivered first."""
    filled: _Filled = {}
    began = perf_counter()
    try:
        for stored, key in zip(taken, keys, strict=True):
            filled[stored.key] = _form_of(counter, edition, stored, key, now)
            if perf_counter() - began > _FILL_SECONDS:
                break
        coming.set_result(filled)
    except BaseException as error:
        coming.set_exception(error)


def _form_of(counter: Counter, edition: Edition, stored: Stored, key: int, now: int) -> tuple[int, str] | Failure:
    try:
        body = created_apart(edition, fields_of(stored, edition.form), key, counter.station, now)
        check_text(body)
    except BodyError as refusal:
        return failure_of(counter, refusal)
    return key, body


class _Met(Exception):
    """Raised for messages of spheres that must be locked first."""

    def __init__(self, spheres: set[str]) -> None:
        super().__init__()
        self.spheres = spheres


def waiting(tx: Transaction, kept: Kept) -> int:
    """The number of messages that a counter has yet to take."""
    source = tx.queues.named_to_read(kept.source)
    return 0 if source is None or source.retired else source.unprocessed


def obstacle(tx: Transaction, kept: Kept) -> str:
    """Why a counter does nothing now; empty if it works."""
    counter = kept.counter
    source, goal = tx.queues.named_to_read(kept.source), tx.queues.named_to_read(kept.goal)
    lacking = tx.bindings.lacking("counter").get(counter.name)
    if lacking is not None:
        return lacking
    if tx.nodes.home(counter.station) is None:
        return f"there is no station {counter.station} any more"
    queue = source if counter.way is Way.TAKES else goal
    if queue is None or queue.retired:
        return f"there is no queue {counter.queue} any more"
    if source is None or not source.unprocessed:
        return "idle"
    if releases(tx, source):
        return ""
    return f"{counter.queue} is on hold" if not source.releases else f"someone reads a message of {counter.queue}"


@dataclass(frozen=True, slots=True)
class CounterShown:
    """A counter and its state."""

    counter: Counter
    waiting: int
    state: str  # open, idle, or why it does nothing
    since: int

    @property
    def name(self) -> str:
        """Its name, which is unique in a room."""
        return self.counter.name

    @property
    def where(self) -> str:
        """The file and line where it is defined."""
        return str(self.counter.position)

    def __str__(self) -> str:
        return str(self.counter)

    def as_dict(self) -> dict[str, object]:
        return {
            "name": self.name,
            "station": self.counter.station,
            "way": str(self.counter.way),
            "type": self.counter.type,
            "queue": self.counter.queue,
            "waiting_count": self.waiting,
            "state": self.state,
            "where": self.where,
            "version": self.since,
        }


def shown(tx: Transaction, kept: Kept) -> CounterShown:
    state, goal = obstacle(tx, kept), tx.queues.named_to_read(kept.goal)
    if not state:
        state = f"waits for {kept.goal}, which is on hold" if goal and _is_closed(tx, goal) else "open"
    return CounterShown(kept.counter, waiting(tx, kept), state, kept.since)


def fields_of(stored: Stored, form: Form) -> dict[str, Any]:
    """A message's content as the fields of a form; system fields are set again."""
    if stored.type not in (None, form.name):
        raise BodyMismatch(type=form.name, why=f"the message is of type {stored.type}")
    values = record(stored.body, Format(stored.format), form.type)
    automatic = {field.name for field in form.fields if field.rule is Rule.AUTOMATIC}
    return {name: value for name, value in values.items() if value not in (None, "") and name not in automatic}


def failure_of(counter: Counter, refusal: BodyError) -> Failure:
    """The failure of a message that leads to an error."""
    return Failure("message", refusal.code, str(refusal), counter.name)


class _CounterStep:
    """One step of one counter, within its transaction."""

    def __init__(
        self, tx: Transaction, turn: Turn, kept: Kept, forms: Forms, spheres: set[str], ready: _Filled | None
    ) -> None:
        self._tx = tx
        self._fates = Fates(tx, spheres)
        self._turn = turn
        self._kept = kept
        self._forms = forms
        self._ready = ready  # forms that were filled in before
        self._actor = f"counter {kept.counter.name}"
        self._changes: list[Change] = []
        self._new: list[New] = []
        self._bound: dict[int | None, str] = {}  # the sphere of each message that is taken
        self._result = Result()

    def done(self) -> Result:
        """Deliver the next messages, in order."""
        tx, kept, result = self._tx, self._kept, self._result
        queues = self._queues()
        if obstacle(tx, kept):
            return result
        source, goal, errors = queues[kept.source], queues[kept.goal], queues[SYSTEM_ERRORS]
        if _is_closed(tx, goal):
            for stored in tx.messages.page(source, State.UNPROCESSED, 0, 1):
                result.blocked = Blocked(source.name, stored.key, goal.name)
            return result
        taken = self._next(source)
        self._bound = {stored.key: id for stored in taken if (id := bound_to(tx, stored)) is not None}
        if unlocked := {id for id in self._bound.values() if id not in self._fates}:
            raise _Met(unlocked)
        handed = self._taking(taken, goal) if kept.counter.way is Way.TAKES else self._giving(taken, goal)
        if any(isinstance(outcome, Failure) for outcome in handed) and _is_closed(tx, errors):
            first = next(place for place, outcome in enumerate(handed) if isinstance(outcome, Failure))
            result.blocked = Blocked(source.name, taken[first].key, errors.name)
            taken, handed = taken[:first], handed[:first]
        for stored, outcome in zip(taken, handed, strict=True):
            if isinstance(outcome, Failure):
                result.failures += self._fail(source, stored, outcome, errors)
                continue
            self._changes.append(Take(source, stored, sliced=True))
            if isinstance(outcome, Put):
                self._changes.append(outcome)
            else:
                self._new.append(outcome)
        result.messages = len(taken)
        result.created = len(self._new) + sum(isinstance(change, Put) for change in self._changes)
        self._write(source, goal, taken)
        return result

    def _queues(self) -> dict[str, Queue]:
        """All queues that are taken from or put into, locked in number order."""
        desk.enter(self._tx, MAILBOXES)
        return self._tx.queues.locked_all([self._kept.source, self._kept.goal, SYSTEM_ERRORS])

    def _next(self, source: Queue) -> list[Stored]:
        """The oldest messages. Damaged ones are set aside."""
        size, room = min(self._turn.size(), COUNTER_MESSAGES), STEP_BYTES_MAX
        messages: list[Stored] = []
        after = 0
        while len(messages) < size and room > 0:
            page = self._tx.messages.page(source, State.UNPROCESSED, after, min(_PAGE, size - len(messages)))
            for stored in page:
                after = stored.position
                room -= len(stored.body)
                if stored.sound and self._ready is not None and stored.key not in self._ready:
                    self._result.more = True
                    return messages
                if stored.sound:
                    messages.append(stored)
                else:
                    self._tx.messages.set_aside(source, stored)
            if not page:
                return messages
        self._result.more = True
        return messages

    # --- from a queue into a mailbox ---

    def _taking(self, taken: Sequence[Stored], box: Queue) -> list[New | Failure]:
        assert self._kept.counter.type is not None
        edition = self._forms.named(self._tx, self._kept.counter.type)
        return [self._form(stored, edition, box) for stored in taken]

    def _form(self, stored: Stored, edition: Edition, box: Queue) -> New | Failure:
        counter = self._kept.counter
        made = None if self._ready is None else self._ready[stored.key]
        if made is None:
            made = _form_of(counter, edition, stored, self._tx.keys.take(1)[0], self._tx.now)
        if isinstance(made, Failure):
            return made
        key, body = made
        postmarks = properties(Postmarks(edition.version, sphere=sphere_of(stored)))
        detail = json_text({"counter": counter.name, "from": stored.queue, "cause": key_text(stored.key)})
        return New(key, box, edition.form.name, postmarks, body, stored.key, self._actor, detail)

    # --- from a mailbox into a queue ---

    def _giving(self, taken: Sequence[Stored], goal: Queue) -> list[Put | Failure]:
        drafts = [Draft(stored.body, stored.format, stored.type, _in_its_sphere(stored)) for stored in taken]
        made: list[Put | Failure] = []
        with suppress(BodyError):  # then each is asked for alone
            made = list(self._let_in(goal, drafts))
        if not made:
            made = [self._let_one_in(goal, draft) for draft in drafts]
        return [
            outcome._replace(cause=stored.key, actor=self._actor) if isinstance(outcome, Put) else outcome
            for stored, outcome in zip(taken, made, strict=True)
        ]

    def _let_in(self, goal: Queue, drafts: Sequence[Draft]) -> Sequence[Put]:
        """Messages after admission to a queue."""
        if not drafts or not goal.admission:
            return [Put(goal, draft, None, self._actor) for draft in drafts]
        return self._turn.admit(self._tx, goal, drafts)

    def _let_one_in(self, goal: Queue, draft: Draft) -> Put | Failure:
        try:
            (put,) = self._let_in(goal, [draft])
        except BodyError as refusal:
            return failure_of(self._kept.counter, refusal)
        return put

    # --- both ---

    def _fail(self, source: Queue, stored: Stored, failure: Failure, errors: Queue) -> bool:
        """Put an error message instead of a message's effect; or retry it, or make it a dead letter.

        False if it is retried. The source is locked and was read in this transaction.
        """
        tries = Tries.of(self._tx, [stored])
        policy = tries.policies.get(source.name)
        final = policy is None or policy.ends(failure.kind, tries.before.get(stored.key, 0) + 1)
        if policy is None:
            self._changes.append(Take(source, stored, sliced=True, failed=True))
        else:
            attempts.fail(self._tx, source, stored, Failed(f"{failure.code}: {failure.description}", final))
        if final:
            self._changes.append(self._error(failure, stored, errors))
        return final

    def _error(self, failure: Failure, stored: Stored, errors: Queue) -> Put:
        document = Document(stored.key, stored.format, stored.type, stored.body)
        body = error_body(failure, stored.queue, stored.key, document)
        return Put(errors, Draft(body, "xml", None, _in_its_sphere(stored)), stored.key, self._actor)

    def _write(self, source: Queue, goal: Queue, taken: Sequence[Stored]) -> None:
        tx = self._tx
        keys = iter(Batch(tx).write(self._changes, 0))
        put = [(next(keys), change) for change in self._changes if isinstance(change, Put)]
        causes = [(key, change.cause) for key, change in put if change.queue.id == goal.id]  # an error message stays
        causes += [(new.key, new.cause) for new in self._new]
        bound = self._bound
        made = [Made(bound[cause], key, goal, self._actor) for key, cause in causes if cause in bound]
        if source.kind == MAILBOX:
            desk.release(tx, source, taken)
        desk.apply(tx, self._new)
        self._fates.bind(made, desk.remove if goal.kind == MAILBOX else plainly)


def _is_closed(tx: Transaction, queue: Queue) -> bool:
    """Whether a queue accepts nothing now: then messages for it wait."""
    return not queue.accepts or queue.in_use(tx.now)


def _in_its_sphere(stored: Stored) -> str:
    """The sphere of a message, which its effects belong to."""
    sphere = sphere_of(stored)
    return NO_PROPERTIES if sphere is None else properties_text({SPHERE: sphere})
