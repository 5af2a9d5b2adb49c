"""Spheres that never ended, and compensations that wait for their queue."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from postroom.diagnosis.finding import Case, Told, note, warning
from postroom.engine.presence import presence
from postroom.limits import CHECK_SECONDS, EXAMINED_MAX, OVERDUE_SECONDS, RUNNING_CHECKS
from postroom.model.moment import to_datetime, to_iso
from postroom.store.kernel.owner import described, is_alive, is_stopped
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.spheres import ABORTING, ACTIVE, COMMITTING, NODE, Beat, Kept, Send

COMPENSATE = "postroom compensate --once"
_KEPT = "a call that keeps the interpreter, such as a long one of C, lets no thread of it beat"
_LONGER = "let it end; or choose an interval that is longer than such calls take: postroom compensate --check SECONDS"


def owners(case: Case) -> Iterator[Told]:
    """Undecided spheres whose owner has ended; they have to be aborted."""
    orphans, works = case.store.read(lambda tx: (_orphans(tx), presence(tx).works))
    for kept, why in orphans:
        what = f"it is {kept.state}, and its owner ({described(kept.owner)}) {why}"
        if why.endswith(_KEPT):
            yield note(f"{what}; an engine waits {RUNNING_CHECKS} check intervals for it", f"sphere {kept.id}", _LONGER)
        elif works:
            yield note(f"{what}; the engine that runs will undo it", f"sphere {kept.id}", COMPENSATE)
        else:
            yield warning(f"{what}; no engine runs that would undo it", f"sphere {kept.id}", COMPENSATE)


def _orphans(tx: Transaction) -> list[tuple[Kept, str]]:
    beats, orphans = tx.spheres.beats(), []
    for state in (ACTIVE, COMMITTING):
        for kept in tx.spheres.in_state(state, 0, EXAMINED_MAX):
            if is_alive(kept.owner) is False:
                orphans.append((kept, "has ended"))
            elif _is_silent(tx, kept, beats.get(kept.owner)):
                orphans.append((kept, _how(kept.owner)))
    return orphans


def _how(owner: str) -> str:
    """Why an owner may be silent although it is not known to have ended."""
    if is_stopped(owner):
        return "is stopped, and has not been heard of"
    if is_alive(owner):
        return f"runs on this machine, and has not been heard of: {_KEPT}"
    return "has not been heard of, on a machine where nobody can look"


def _is_silent(tx: Transaction, kept: Kept, beat: Beat | None) -> bool:
    """Whether an owner has missed several heartbeats. Both times are from this store's clock."""
    last = kept.started if beat is None else beat.at
    checked = tx.spheres.announced() or int(CHECK_SECONDS * 1_000_000)
    return last < tx.now - max(3 * kept.heartbeat, 2 * checked)


def ends(case: Case) -> Iterator[Told]:
    """Spheres that began to end and are overdue."""
    for kept, since in case.store.read(_unended):
        what = f"it is {kept.state} since {since}"
        yield warning(what, f"sphere {kept.id}", f"postroom sphere show {quote(kept.id)}; then: {COMPENSATE}")


def _unended(tx: Transaction) -> list[tuple[Kept, str]]:
    late, unended = tx.now - int(OVERDUE_SECONDS * 1_000_000), []
    for state in (COMMITTING, ABORTING):
        for kept in tx.spheres.in_state(state, 0, EXAMINED_MAX):
            token = tx.messages.find(kept.token)
            since = (None if token is None else tx.journal.time_of(token.position)) or tx.now
            if (kept.ends if state == COMMITTING and kept.ends is not None else since) < late:
                unended.append((kept, to_iso(to_datetime(since))))
    return unended


def parked(case: Case) -> Iterator[Told]:
    """Compensations that their queue refuses to take."""
    for id, send in case.store.read(_parked):
        if send.moment == NODE:
            what, helps = f"what was made at node {send.recipient} is not undone: {send.why}", "postroom node list"
        else:
            what = f"a compensation is parked: {send.why}"
            helps = f"let {send.target or send.recipient} take messages again"
        yield warning(what, f"sphere {id}", f"{helps}; then: {COMPENSATE}")


def _parked(tx: Transaction) -> list[tuple[str, Send]]:
    return [
        (kept.id, send)
        for kept in tx.spheres.in_state(ABORTING, 0, EXAMINED_MAX)
        for send in tx.spheres.open_sends(kept.id)
        if send.why is not None
    ]


def doubts(case: Case) -> Iterator[Told]:
    """Databases that are prepared for a sphere and may not have learned its outcome: they keep their locks."""
    for doubt in case.store.read(lambda tx: tx.spheres.in_doubt()[:EXAMINED_MAX]):
        if is_alive(doubt.owner) is not True:  # else it is about to tell them
            what = f"{doubt.place} may be in doubt ({doubt.branch}); the sphere is {doubt.state}"
            yield warning(what, f"sphere {doubt.sphere}", "postroom sphere settle URL, with that of the database")
