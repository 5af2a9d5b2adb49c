"""Procedures and spheres, also at a node whose store does not have the spheres' tokens.

Then two stores take part. Before the step commits, the control node records that the sphere has reached the node, and
votes. The step's commit records what was made. An undo asks every recorded node, which then refuses further records. So
everything that was made is known after any crash.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from postroom.engine.spheres import Made, Withdraw, bound_to, fail
from postroom.limits import PAGE_ROWS
from postroom.model.message import IN_SPHERE
from postroom.stations.procedures.claiming import Look, WorkingSet
from postroom.stations.procedures.definitions import Operation
from postroom.stations.procedures.goals import LEAVE
from postroom.store.kernel.base import Store
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.remote_spheres import MadeAfar
from postroom.store.tables.spheres import ACTIVE, COMMITTED, COMMITTING, MACHINE, NODE, Send


def spheres_of(tx: Transaction, sets: Iterable[WorkingSet]) -> tuple[dict[int, str], dict[str, str]]:
    """By message, the sphere that undoes its effects; and by sphere, why a procedure votes against it."""
    bound: dict[int, str] = {}
    votes: dict[str, str] = {}
    for working in sets:
        for sketch, stored in working.stored.items():
            sphere = bound_to(tx, stored) if IN_SPHERE in stored.properties else None
            if sphere is not None:
                bound[stored.key] = sphere
                goal = working.goals.get((working.plan.sketches[sketch].name, 0), LEAVE)
                if goal.operation is Operation.ABORT:
                    votes[sphere] = goal.where
    return bound, votes


class Ties(NamedTuple):
    """What the control node knows of the spheres of a step at another node."""

    bound: Mapping[int, str]  # by message, the sphere that undoes what is made of it
    failed: Collection[str]  # what is made in these disappears at once


def announce(control: Store, node: str, looks: Sequence[Look]) -> Ties:
    """Record at the control node that spheres have reached a node, before anything is made there; and vote."""
    sets = [working for look in looks for working in look.fired]
    if not any(IN_SPHERE in stored.properties for working in sets for stored in working.stored.values()):
        return Ties({}, ())

    def work(tx: Transaction) -> Ties:
        bound, votes = spheres_of(tx, sets)
        states = {id: _announced(tx, id, node, votes.get(id)) for id in sorted(set(bound.values()))}
        undecided = {key: id for key, id in bound.items() if states[id] not in (None, COMMITTED)}
        return Ties(undecided, {id for id, state in states.items() if state not in (ACTIVE, COMMITTING)})

    return control.transact("sphere-send", work)


def _announced(tx: Transaction, id: str, node: str, vote: str | None) -> str | None:
    """The state of a sphere, which is locked; None if there is none."""
    token = tx.tokens.locked(MACHINE, id)
    if token is None or token.state not in (ACTIVE, COMMITTING):
        return None if token is None else token.state
    if vote is not None:
        fail(tx, token, vote)
        return tx.tokens.state(MACHINE, id)
    if node not in tx.spheres.nodes(id):
        send = Send(id, tx.spheres.next_send(id), NODE, node, None, None, None, None, None, tx.now)
        tx.spheres.remember(send)
    return token.state


def processed(control: Store, ties: Ties) -> None:
    """Report to the control node that procedures have processed messages, which a sphere may wait for."""

    def work(tx: Transaction) -> None:
        if tx.spheres.processed(ties.bound):
            tx.wake()

    if ties.bound:
        control.transact("acknowledge", work)


class FatesAfar:
    """Like ``Fates``, at a node without the tokens: its rows for spheres are locked before queues."""

    def __init__(self, tx: Transaction, ties: Ties) -> None:
        self._tx = tx
        spheres = sorted(set(ties.bound.values()))
        self._failed = {id for id in spheres if id in ties.failed or tx.afar.reach(id)}

    def bind(self, made: Sequence[Made], withdraw: Withdraw) -> None:
        """Record new messages; in a failed sphere, withdraw them."""
        alive = [message for message in made if message.sphere not in self._failed]
        self._tx.afar.note([MadeAfar(new.sphere, new.key, new.queue.name, new.maker) for new in alive])
        for message in made:
            stored = None if message in alive else self._tx.messages.find(message.key)
            if stored is not None and stored.processed is None:
                withdraw(self._tx, message.queue, stored)

    def vote(self, sphere: str, reason: str, queues: Mapping[str, Queue] | None = None) -> None:
        """Does nothing: the control node has the votes already."""


def forget(control: Store, store: Store) -> None:
    """At a node, forget spheres that are committed or unknown at the control node."""
    after = ""
    while some := store.read(partial(_reached, after)):
        after = some[-1]
        over = control.read(partial(_over, some))
        if over:
            store.transact("sweep", partial(_forget, over))


def _reached(after: str, tx: Transaction) -> list[str]:
    return tx.afar.spheres(after, PAGE_ROWS)


def _over(some: Sequence[str], tx: Transaction) -> list[str]:
    return [id for id in some if tx.tokens.state(MACHINE, id) in (None, COMMITTED)]


def _forget(over: Sequence[str], tx: Transaction) -> None:
    tx.afar.forget(over)
