"""Errors of queues. The status keys are those of ANSI COBOL; 9x are ours."""

from __future__ import annotations

from typing import ClassVar

from postroom.errors.root import PostroomError


class QueueError(PostroomError):
    """A queue verb was refused."""


class PasswordMissing(QueueError):
    code = "password-missing"
    template = "{queue} has no password at this level, so it cannot be disabled or enabled here: {advice}"
    status = "40"


class PasswordNeeded(QueueError):
    code = "password-needed"
    template = "{what}, and the current password was not given; give it, or override as the operator: {word}"
    status = "40"


class PasswordWrong(QueueError):
    code = "password-wrong"
    template = "wrong password for {queue}{source}"
    status = "40"


class QueueHeld(QueueError):
    code = "queue-held"
    template = "{queue} is on hold ({hold}) and does not {verb} messages; enable it with: postroom enable {level}"
    status = "92"


class QueueLocked(QueueError):
    code = "queue-locked"
    template = "{queue} is locked by {holder}, who is receiving message {key} by segments (lease ends {until})"
    status = "91"


class QueueNotSingle(QueueError):
    code = "queue-not-single"
    template = "{queue} is a level, not a queue; name one of the queues below it: {below}"
    status = "20"


class QueueOwned(QueueError):
    code = "queue-owned"
    template = "{queue} belongs to {owner}"
    status = "20"


class QueueUnknown(QueueError):
    code = "queue-unknown"
    template = "there is no queue {queue}{nearest}"
    listing: ClassVar[str] = "; list the queues with: postroom count"  # for a name that is like no other
    status = "20"
