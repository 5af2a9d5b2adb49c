"""Conditional messaging: recipients must have received or processed what a sphere sent to them, in time."""

from __future__ import annotations

from collections.abc import Sequence

from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.spheres import Requirement, Send


def failed(tx: Transaction, id: str) -> str | None:
    """Why a sphere cannot succeed any more; None if it still can."""
    for requirement in tx.spheres.requirements(id):
        judged = [_judge(tx, requirement, name, tx.spheres.sends(id)) for name in requirement.recipients]
        if sum(each is not False for each in judged) < requirement.enough:
            late = [name for name, each in zip(requirement.recipients, judged, strict=True) if each is False]
            what = "processed" if requirement.processing else "acknowledged"
            return f"{', '.join(late)} had not {what} within {requirement.within / 1_000_000:g} s"
    return None


def fulfilled(tx: Transaction, id: str) -> bool:
    """Whether every requirement is met, and everyone who takes part is done."""
    if not all(part.done for part in tx.spheres.parts(id)):
        return False
    requirements = tx.spheres.requirements(id)
    if not requirements:
        return True
    sends = tx.spheres.sends(id)
    return all(
        sum(_judge(tx, each, name, sends) is True for name in each.recipients) >= each.enough for each in requirements
    )


def _judge(tx: Transaction, requirement: Requirement, recipient: str, sends: Sequence[Send]) -> bool | None:
    """True if a recipient has said in time what it must, False if it is too late, None while it may."""
    mine = [send for send in sends if send.recipient == recipient and send.moment == "now" and not send.maker]
    judged = [_in_time(tx, requirement, send) for send in mine]
    if not mine:  # nothing was sent to it: it cannot have received anything
        return False if tx.now > requirement.since + requirement.within else None
    return False if False in judged else None if None in judged else True


def _in_time(tx: Transaction, requirement: Requirement, send: Send) -> bool | None:
    end = max(requirement.since, send.sent) + requirement.within
    said = send.processed if requirement.processing else send.received
    if said is not None:
        return said <= end
    return False if tx.now > end else None
