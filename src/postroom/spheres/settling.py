"""What is in doubt after a crash: a database has prepared its share, and waits for the outcome of a sphere."""

from __future__ import annotations

from functools import partial
from typing import Any

from postroom.spheres.participants import in_doubt
from postroom.store.base import Store
from postroom.store.spheres import ABORTED, ABORTING, COMMITTED, MACHINE
from postroom.store.transaction import Transaction


def settle(store: Store, participant: Any) -> dict[str, str]:
    """End what a participant has in doubt, by the state of each sphere's token; answers with what became of which.

    A sphere whose end is not decided is left alone: its owner may live. What is not ours is left alone, too.
    """
    settled: dict[str, str] = {}
    for branch, commit, rollback in in_doubt(participant):
        sphere, state = store.read(partial(_decided, branch=branch))
        if sphere is None:
            continue
        if state == COMMITTED:
            commit()
            settled[sphere] = "committed"
        elif state in (ABORTING, ABORTED):
            rollback()
            settled[sphere] = "rolled back"
    return settled


def _decided(tx: Transaction, branch: str) -> tuple[str | None, str | None]:
    sphere = tx.spheres.sphere_of(branch)
    return sphere, None if sphere is None else tx.tokens.state(MACHINE, sphere)
