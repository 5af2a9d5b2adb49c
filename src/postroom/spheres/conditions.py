"""Conditions of a sphere: recipients must acknowledge in time that they have received or processed a message."""

from __future__ import annotations

from collections.abc import Sequence

from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.spheres import Requirement, Send


def failed(tx: Transaction, id: str) -> str | None:
    """Why a sphere cannot succeed any more; None if it still can."""
    for requirement in tx.spheres.requirements(id):
        sends = tx.spheres.sends(id)
        late = [name for name in requirement.recipients if _judge(tx, requirement, name, sends) is False]
        if len(requirement.recipients) - len(late) < requirement.enough:
            what = "processed" if requirement.processing else "acknowledged"
            return f"{', '.join(late)} had not {what} within {requirement.within / 1_000_000:g} s"
    return None


def fulfilled(tx: Transaction, id: str) -> bool:
    """Whether every condition is met, and every participant is done."""
    if not all(part.done for part in tx.spheres.parts(id)):
        return False
    requirements = tx.spheres.requirements(id)
    if not requirements:
        return True
    sends = tx.spheres.sends(id)
    return all(
        sum(_judge(tx, requirement, name, sends) is True for name in requirement.recipients) >= requirement.enough
        for requirement in requirements
    )


def _judge(tx: Transaction, requirement: Requirement, recipient: str, sends: Sequence[Send]) -> bool | None:
    """True if a recipient has acknowledged in time, False if it is too late, None while there is time."""
    mine = [send for send in sends if send.recipient == recipient and send.moment == "now" and not send.maker]
    judged = [_in_time(tx, requirement, send) for send in mine]
    if not mine:  # nothing was sent to it: it cannot have received anything
        return False if tx.now > requirement.since + requirement.within else None
    return False if False in judged else None if None in judged else True


def _in_time(tx: Transaction, requirement: Requirement, send: Send) -> bool | None:
    end = max(requirement.since, send.sent) + requirement.within
    acknowledged = send.processed if requirement.processing else send.received
    if acknowledged is not None:
        return acknowledged <= end
    return False if tx.now > end else None
