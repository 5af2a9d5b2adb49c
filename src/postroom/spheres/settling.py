"""Settling: prepared transactions of databases are ended by the state of their sphere's token."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from postroom.errors import PostroomError
from postroom.spheres.participants import in_doubt, place_of
from postroom.store.kernel.base import Store
from postroom.store.kernel.owner import is_alive
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.spheres import ABORTED, ABORTING, COMMITTED


def settle(store: Store, participant: Any, *, living: bool = True) -> dict[str, str]:
    """End the prepared transactions of a participant by the state of each sphere's token; returns the outcomes.

    Undecided spheres are left alone, because their owner may live. So are transactions that are not ours, and those
    that the live owner of a committed sphere ends itself, unless ``living``.
    """
    settled: dict[str, str] = {}
    refused: dict[str, Exception] = {}
    doubtful = in_doubt(participant)
    for branch, commit, rollback in doubtful:
        sphere, state, owner = store.read(partial(_decided, branch=branch))
        if sphere is None or state not in (COMMITTED, ABORTING, ABORTED) or (not living and is_alive(owner)):
            continue
        end, said = (commit, "committed") if state == COMMITTED else (rollback, "rolled back")
        try:
            end()
            settled[sphere] = said
            forget(store, [branch])
        except PostroomError:
            raise
        except Exception as error:  # whatever a database may raise; most likely another was faster
            refused[branch] = error
    if refused:
        for branch, _, _ in in_doubt(participant):
            if branch in refused:
                raise refused[branch]
    _forget_what_never_was(store, place_of(participant), {branch for branch, _, _ in doubtful}, living=living)
    return settled


def _forget_what_never_was(store: Store, place: str, doubtful: set[str], *, living: bool) -> None:
    """Forget branches of ended spheres that this database did not prepare, or has ended: they are not in doubt."""

    def work(tx: Transaction) -> list[str]:
        known = [share for share in tx.spheres.in_doubt() if share.place == place and share.branch not in doubtful]
        return [share.branch for share in known if living or not is_alive(share.owner)]

    forget(store, store.read(work))


def _decided(tx: Transaction, branch: str) -> tuple[str | None, str | None, str]:
    sphere = tx.spheres.sphere_of(branch)
    kept = None if sphere is None else tx.spheres.find(sphere)
    return (None, None, "") if kept is None else (kept.id, kept.state, kept.owner)


def forget(store: Store, branches: Sequence[str]) -> None:
    """Forget branches that have ended."""
    if branches:
        store.transact("settle", lambda tx: tx.spheres.forget_branches(branches))
