"""The examination of a room, check by check."""

from __future__ import annotations

from postroom.diagnosis import network, places, spheres, storage, working
from postroom.diagnosis.finding import Case, Check, Finding, Severity
from postroom.errors import PostroomError, RoomMissing
from postroom.store import schema_of, shown

CHECKS = (
    Check("store", "", storage.database),
    Check("schema", "", storage.schema),
    Check("access", "nobody but its owner may open or replace it", storage.access),
    Check("files", "the database has read them, and finds nothing wrong", storage.files),
    Check("messages", "", storage.messages),
    Check("journal", "no gap in the way of any message that was looked at", storage.chains),
    Check("counts", "every queue holds as many messages as it says", storage.counts),
    Check("growth", "nothing has grown large that is kept for ever", storage.growth),
    Check("engine", "no engine runs, and none has left its lease behind", working.engine),
    Check("waiting", "nothing waits for an engine", working.waiting),
    Check("outbox", "no effect has failed or is overdue", working.outbox),
    Check("holds", "no queue is on hold", places.holds),
    Check("limits", "no queue is full", places.limits),
    Check("errors", "no error message or dead letter waits", places.errors),
    Check("locks", "no queue is locked", places.locks),
    Check("leases", "no lease has lost its holder", places.leases),
    Check("nodes", "this room is the only node", network.nodes),
    Check("hand-overs", "no message is stuck between two nodes", network.handovers),
    Check("owners", "no sphere has lost its owner", spheres.owners),
    Check("ends", "every sphere that began to end has ended, or still may", spheres.ends),
    Check("parked", "no compensation waits for its queue", spheres.parked),
    Check("doubts", "no database waits to hear how a sphere has ended", spheres.doubts),
)


def examine(case: Case) -> list[Finding]:
    """Look at everything in an open room; a check that fails is a finding, and no reason to stop."""
    return [finding for check in CHECKS for finding in _found(check, case)]


def _found(check: Check, case: Case) -> list[Finding]:
    try:
        return check.findings(case)
    except PostroomError as error:
        return [Finding(Severity.WRONG, check.name, f"it could not be looked at: {error}", case.where)]


def unopened(url: str, *, named: bool) -> Finding | None:
    """Why a room should not be opened now, because opening an older one would migrate it. None if it may be. ``named``
    says that the URL was given explicitly; else there may be no room, and only the machine is examined."""
    where = shown(url)
    try:
        present, known = schema_of(url)
    except RoomMissing:
        level = Severity.WRONG if named else Severity.NOTE
        return Finding(
            level, "store", "there is no room here", where, "postroom queue create NAME, or: postroom load FILE"
        )
    except PostroomError as error:
        return Finding(Severity.WRONG, "store", str(error), where)
    if present > known:
        what = f"schema {present} is newer than this version of Postroom, which knows {known}"
        return Finding(Severity.WRONG, "schema", what, where, "pip install --upgrade postroom")
    if present < known:
        what = f"schema {present} of {known}: the next command upgrades the room, and there is no way back"
        return Finding(Severity.WARNING, "schema", what, where, "make a copy of the room; then: postroom count")
    return None
