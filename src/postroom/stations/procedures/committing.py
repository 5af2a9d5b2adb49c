"""The commit of a step of procedures: messages are edited, moved and created in one transaction of their node.

The same transaction stores each station's position, the waiting candidates, and errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from postroom.engine.spheres import Fates, Made
from postroom.engine.steps.stage import Result
from postroom.model.body import json_text
from postroom.model.key import key_number, key_text
from postroom.model.message import Stored
from postroom.model.moment import in_microseconds
from postroom.stations.forms.catalog import Edition
from postroom.stations.forms.filling import created
from postroom.stations.mail.mail import ship_one
from postroom.stations.places import desk
from postroom.stations.places.names import database, mailbox
from postroom.stations.places.network import CONTROL
from postroom.stations.places.postmarks import Postmarks, fetched, postmarks, properties, sent
from postroom.stations.procedures import actions
from postroom.stations.procedures.claiming import CHAIN, DAMAGED, Look, WorkingSet, who_asks
from postroom.stations.procedures.definitions import Operation
from postroom.stations.procedures.errors import DOSSIER, ERROR
from postroom.stations.procedures.goals import LEAVE, Goal
from postroom.stations.procedures.plan import Desk, Selected, selected
from postroom.stations.procedures.search import rows
from postroom.stations.procedures.ties import FatesAfar, Ties, spheres_of
from postroom.store.kernel.batch import Stale
from postroom.store.kernel.handling import Move, New
from postroom.store.kernel.queues import MAILBOX, STATE, STATION, Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.kernel.transfers import Parcel
from postroom.store.tables.spheres import ABORTING, ACTIVE, COMMITTING
from postroom.store.tables.tracking import MAILBOXES, STATIONS

_AS_IT_WAS: tuple[str | None, tuple[str, ...]] = (None, ())  # of a message that nothing is written on
TIMER = "ship"  # the kind of a message that is to be shipped later


def commit(
    tx: Transaction, looks: Sequence[Look], node: str, error_form: Edition | None, ties: Ties | None = None
) -> tuple[Result, list[Parcel]]:
    """Apply the result of examining stations. Also returns messages that have left for another store.

    ``ties`` are the relations to spheres whose tokens are in another store.
    """
    result = Result()
    step = _Step(tx, node, ties)
    for look in looks:
        step.add(look, look.fired)
        result.messages += look.until
        result.claimed += len(look.arrivals)
    result.created = step.write()
    for look in looks:
        for working in look.sets:
            if working.outcome is not None and working.outcome.failed and working.arrival == look.until:
                result.failures += 1
                _fail(tx, look, working, error_form)
        passed = _remember(tx, look, step.left.get(look.kept.id, ()))
        result.messages += passed
        result.claimed += passed
    return result, step.parcels


# --- messages ---


class _Step:
    """The changes of a step, collected and written at once."""

    def __init__(self, tx: Transaction, node: str, ties: Ties | None) -> None:
        self._tx = tx
        self._node = node
        self._ties = ties
        self._queues: dict[str, Queue] = {}
        self._sets: list[tuple[Look, WorkingSet]] = []
        self.changes: list[Move | New] = []
        self.parcels: list[Parcel] = []
        self.left: dict[int, list[tuple[Move | New, Stored]]] = {}  # by desk, what stays there
        self._known: dict[tuple[int, str, int], _By] = {}
        self._ways: list[_Way] = []  # beside the changes: by whom, where to
        self._bound: dict[int, str] = {}  # by message: the sphere that undoes what is made of it
        self._made: dict[int, str] = {}  # and by new message
        self._votes: dict[str, str] = {}  # why which sphere is to fail

    def add(self, look: Look, fired: Sequence[WorkingSet]) -> None:
        self._sets += [(look, working) for working in fired]

    def write(self) -> int:
        """Write everything; returns the number of new messages."""
        if not self._sets:
            return 0
        fates = self._fates()  # spheres are locked before queues
        desk.enter(self._tx, STATIONS, MAILBOXES)
        self._lock()
        for look, working in self._sets:
            self._gather(look, working)
        made = desk.apply(self._tx, self.changes)
        self._after(made)
        new = [change for change in self._stays() if isinstance(change, New) and change.key in self._made]
        fates.bind([Made(self._made[one.key], one.key, one.queue, one.actor) for one in new], desk.remove)
        for sphere, why in self._votes.items():
            fates.vote(sphere, why, self._queues)
        return sum(type(change) is New for change in self.changes)

    def _fates(self) -> Fates | FatesAfar:
        """The spheres of all messages of the step, and the votes against them."""
        if self._ties is not None:
            self._bound = dict(self._ties.bound)
            return FatesAfar(self._tx, self._ties)
        self._bound, self._votes = spheres_of(self._tx, [working for _, working in self._sets])
        return Fates(self._tx, self._bound.values())

    def _stays(self) -> list[Move | New]:
        """The changes of this store; messages for another store are recorded there."""
        if self._ties is None:
            return self.changes
        return [change for change, way in zip(self.changes, self._ways, strict=True) if way.goal.ships is None]

    def _lock(self) -> None:
        """Lock every queue that is taken from or put into, in number order."""
        names: dict[str, str] = dict.fromkeys((ACTIVE, COMMITTING, ABORTING) if self._votes else (), STATE)
        boxes = mailbox("")
        seen: set[int] = set()
        for look, working in self._sets:
            names[database(look.desk.station)] = STATION
            if look.with_mail:
                names |= {member.queue: MAILBOX for member in working.stored.values() if member.queue.startswith(boxes)}
            goals = working.goals  # those of many sets are one
            if id(goals) not in seen and self._node == CONTROL:
                seen.add(id(goals))
                names |= {mailbox(goal.ships): MAILBOX for goal in goals.values() if goal.ships is not None}
        read, tx = self._tx.queues.named_to_read, self._tx
        ids = sorted((read(name) or desk.queue_of(tx, name, kind)).id for name, kind in names.items())
        self._queues = {queue.name: queue for queue in map(tx.queues.locked, ids)}

    def _gather(self, look: Look, working: WorkingSet) -> None:
        outcome, plan, stored = working.outcome, working.plan, working.stored
        assert outcome is not None
        by = self._by(look, plan.name, working.depth + plan.weight)
        ways = by.ways.get(outcome.where)
        if ways is None:
            goals = [working.goals.get((picked.name, 0), LEAVE) for picked in plan.sketches]
            ways = by.ways[outcome.where] = [self._way(by, goal) for goal in goals]
        keys = [key_text(stored[sketch].key) for sketch in range(len(ways))]
        new = '","'.join(map(key_text, working.keys))
        for sketch, way in enumerate(ways):
            detail = by.detail
            if len(keys) > 1:
                others = '","'.join(keys[:sketch] + keys[sketch + 1 :])
                detail = f'{detail},"with":["{others}"]'
            body, fields = outcome.written.get(plan.sketches[sketch].name, _AS_IT_WAS)
            if fields:
                detail = f'{detail},"fields":{_json(fields)}'
            if new:  # each of the set tells what was made of it, not only the one that completed it
                detail = f'{detail},"made":["{new}"]'
            self._move(way, stored[sketch], body, detail)
        if working.keys:
            cause = look.arrivals[working.arrival].stored.key
            sphere = next((self._bound[member.key] for member in stored.values() if member.key in self._bound), None)
            if sphere is not None:
                self._made |= dict.fromkeys(working.keys, sphere)
            for key, made in zip(working.keys, outcome.made, strict=True):
                self._new(self._way(by, working.goals.get((made.sketch, made.copy), LEAVE)), key, made, cause, sphere)

    def _by(self, look: Look, procedure: str, depth: int) -> _By:
        """The actor of a set; cached, because few procedures handle most sets."""
        known = self._known.get((look.kept.id, procedure, depth))
        if known is None:
            known = self._known[look.kept.id, procedure, depth] = _By(look, procedure, depth, self._tx.now)
        return known

    def _way(self, by: _By, goal: Goal) -> _Way:
        to = goal.ships
        if to is not None and self._node == CONTROL:
            about = f',"from":{_json(by.station)},"to":{_json(to)}'
            return _Way(by, goal, self._queues[mailbox(to)], about, ships=True)
        # From another node it is handed over after it was written on.
        about = f',"dossier":{_json(goal.where)}' if goal.operation is Operation.DOSSIER else ""
        return _Way(by, goal, self._queues[by.queue], about, ships=False)

    def _move(self, way: _Way, stored: Stored, body: str | None, about: str) -> None:
        source, target, before = self._queues[stored.queue], way.target, stored.body
        if way.ships:
            verb = "ship"
        elif source is not target:
            verb = "get"
            about = f'{about},"from":{_json(stored.queue)},"to":{_json(way.by.station)}'
        else:
            verb = "leave" if body is None or body == before else "modify"
        detail = f"{{{about}{way.detail}}}"
        written = before if body is None else body
        known = fetched(stored.properties) if verb == "get" else stored.properties
        change = (stored, source, target, verb, written, way.properties(known), way.by.actor, detail)
        self.changes.append(tuple.__new__(Move, change))  # the constructor's half cost counts here
        self._ways.append(way)

    def _new(self, way: _Way, key: int, made: actions.Made, cause: int, sphere: str | None) -> None:
        written = way.properties(properties(Postmarks(made.form, sphere=sphere)))
        detail = f"{{{way.by.detail}{way.detail}}}"
        self.changes.append(New(key, way.target, made.type, written, made.body, cause, way.by.actor, detail))
        self._ways.append(way)

    def _after(self, made: Sequence[Stored]) -> None:
        """After the messages: dossiers, delayed shipping, and transfers to other stores."""
        kept: list[tuple[Queue, str, int, int]] = []
        for change, now, way in zip(self.changes, made, self._ways, strict=True):
            by, goal, to = way.by, way.goal, way.goal.ships
            if to is None:
                if by.desk not in self.left:
                    self.left[by.desk] = []
                self.left[by.desk].append((change, now))
                if goal.operation is Operation.DOSSIER:
                    kept.append((self._queues[by.queue], goal.where, now.key, now.position))
                elif goal.delay_seconds is not None:
                    self._ship_later(by, now, goal)
            elif self._node != CONTROL:
                queue = self._queues[by.queue]
                self._tx.journal.actor, before = by.actor, self._tx.journal.actor
                self.parcels.append(ship_one(self._tx, queue, now, by.station, self._node, to, now.properties))
                self._tx.journal.actor = before
        self._tx.dossiers.put(kept)

    def _ship_later(self, by: _By, now: Stored, goal: Goal) -> None:
        assert goal.delay_seconds is not None
        about = {"station": by.station, "to": goal.where, "procedure": by.procedure}
        payload = {"message": now.key, **about}
        self._tx.timers.add(self._tx.now + in_microseconds(goal.delay_seconds), TIMER, payload)


class _By:
    """The actor: a procedure at a station."""

    __slots__ = ("actor", "depth", "desk", "detail", "now", "procedure", "queue", "station", "ways")

    def __init__(self, look: Look, procedure: str, depth: int, now: int) -> None:
        self.now = now
        self.desk = look.kept.id
        self.station = look.desk.station
        self.queue = database(self.station)
        self.procedure = procedure
        self.depth = depth
        self.actor = f"procedure {procedure}"
        self.detail = f'"procedure":"{procedure}"'  # a name has nothing that JSON would write otherwise
        self.ways: dict[tuple[str | None, ...], list[_Way]] = {}  # of sketches, by what destinations say


class _Way:
    """A route of messages, with its journal detail; cached, because most sets of a procedure use the same."""

    __slots__ = ("_known", "by", "detail", "goal", "ships", "target")

    def __init__(self, by: _By, goal: Goal, target: Queue, detail: str, *, ships: bool) -> None:
        self.by = by
        self.goal = goal
        self.target = target
        self.detail = detail
        self.ships = ships  # to a mailbox of this store
        self._known: dict[str, str] = {}

    def properties(self, before: str) -> str:
        """The properties after the move: the shipping station, or who has left the message and when it is to go."""
        after = self._known.get(before)
        if after is None:
            after = self._known[before] = self._properties_of(before)
        return after

    def _properties_of(self, before: str) -> str:
        by, delay = self.by, self.goal.delay_seconds
        if self.goal.ships is not None:
            return sent(before, by.station, by.depth)
        form, sender, _, handled, due, sphere, is_mail = postmarks(before)
        if by.procedure not in handled:
            handled = (*handled, by.procedure)
        if delay is not None:
            due = by.now + in_microseconds(delay)
        return properties(Postmarks(form, sender, by.depth, handled, due, sphere, is_mail))


@lru_cache(maxsize=10_000)
def _json(names: str | tuple[str, ...]) -> str:
    """Names as JSON for the journal; cached."""
    return json_text(names)


# --- candidates ---


def _remember(tx: Transaction, look: Look, left: Sequence[tuple[Move | New, Stored]]) -> int:
    """Store the station's position and candidates.

    Returns how many messages left there match no sketch, and so count as examined.
    """
    progress = look.progress
    passed = _passed(tx, look.desk, progress.own, [now for _, now in left]) if left else []
    if passed:
        progress = progress._replace(own=passed[-1].position, turn=progress.turn + len(passed))
    if left and tx.working_sets.any_withdrawn(look.kept.id):
        moved = [(now.key, change.stored.position, now.position) for change, now in left if isinstance(change, Move)]
        tx.working_sets.keep_withdrawn(look.kept.id, moved)
    handled = [working for working in look.sets if working.arrival < look.until]
    gone = {member.message for working in handled for member in working.members.values()}
    refused = {
        (plan.name, member.message)
        for working in look.sets[len(handled) :]
        for plan in (look.desk.plans if working.outcome and working.outcome.code == CHAIN else [working.plan])
        for member in working.members.values()
    }
    tx.working_sets.remove(look.kept.id, _stored_rows(look, handled))
    tx.working_sets.remove(look.kept.id, [candidate[:4] for candidate in look.memory.stale])
    plans = look.desk.plans
    fresh = [
        row
        for chosen, candidate in look.memory.added
        if candidate.turn <= look.kept.turn + look.until
        and candidate.message not in gone
        and (plans[chosen.plan].name, candidate.message) not in refused
        for row in rows(plans[chosen.plan], chosen.sketch, candidate)
    ]
    tx.working_sets.add(look.kept.id, fresh)
    if progress != look.kept and not tx.working_sets.advance(progress):
        raise Stale
    return len(passed)


def _passed(tx: Transaction, desk: Desk, own: int, left: Sequence[Stored]) -> Sequence[Stored]:
    """The first messages that a step has left and that match no sketch, if nothing has arrived before them."""
    wanted: dict[tuple[str | None, str], bool] = {}
    count = 0
    for now in left:
        about = (now.type, now.properties)
        if about not in wanted:
            wanted[about] = bool(desk.wants(now.type or "", postmarks(now.properties).handled))
        if wanted[about]:
            break
        count += 1
    queue = tx.queues.named_to_read(left[0].queue) if count else None
    if queue is None or tx.messages.positions(queue, own, 1) != [left[0].position]:
        return ()
    return left[:count]


def _stored_rows(
    look: Look, sets: Iterable[WorkingSet], only: str | None = None
) -> Iterator[tuple[str, str, int, int]]:
    """The stored rows of messages that were candidates before this step, of one procedure or all."""
    for working in sets:
        for sketch, member in working.members.items():
            if member.turn > look.kept.turn:
                continue
            stored = working.stored[sketch]
            sole = look.desk.only_sketch(stored.type or "")
            if sole is None and working.outcome is not None and working.outcome.code == DAMAGED and not stored.sound:
                sole = (look.desk.plans.index(working.plan), sketch)  # nothing else is known of it
            if sole is not None:
                chosen = [Selected(*sole, member.values)]
            else:
                is_mail = stored.queue.startswith(mailbox(""))
                wanted, origins = who_asks(look.desk, stored.type, stored.properties, is_mail)
                chosen = selected(wanted, stored.body, origins)
            for fit in chosen:
                plan = look.desk.plans[fit.plan]
                if only in (None, plan.name):
                    for row in rows(plan, fit.sketch, member._replace(values=fit.values)):
                        yield row[:4]


def _fail(tx: Transaction, look: Look, working: WorkingSet, form: Edition | None) -> None:
    """Leave the messages as they are, exclude them from the procedure, and put an error into the station's dossier of
    errors."""
    assert working.outcome is not None
    name, station = working.plan.name, look.desk.station
    ended = working.outcome.code == CHAIN  # then no procedure of the station may go on with them
    tx.working_sets.remove(look.kept.id, _stored_rows(look, [working], None if ended else name))
    for procedure in [plan.name for plan in look.desk.plans] if ended else [name]:
        tx.working_sets.withdraw(look.kept.id, procedure, [(one.key, one.position) for one in working.stored.values()])
    keys = [key_text(stored.key) for stored in working.stored.values()]
    error = tell(tx, station, name, working.outcome.code, working.outcome.why, keys, form, working.depth + 1)
    for stored in working.stored.values():
        queue = tx.queues.named_to_read(stored.queue)
        if queue is not None:  # mail in another store is told of by the error message alone
            about = {"procedure": name, "code": working.outcome.code, "made": [key_text(error)]}
            tx.journal.add_to(stored.key, "refused", queue.id, about)


def tell(
    tx: Transaction,
    station: str,
    procedure: str,
    code: str,
    why: str,
    keys: list[str],
    form: Edition | None,
    depth: int,
) -> int:
    """An error message in the station's dossier of errors, caused by the first of some messages."""
    form = form or Edition(ERROR, 0)
    queue = desk.database_of(tx, station)
    key = tx.keys.take(1)[0]
    given = {"Procedure": procedure, "Code": code, "Description": why[:2_000], "Messages": keys}
    body = created(form, given, key, station, tx.now)
    about = (key, ERROR.name, properties(Postmarks(form.version, None, depth)), body)
    desk.put(tx, queue, [about], key_number(keys[0]))
    tx.dossiers.add(queue, DOSSIER, key)
    return key
