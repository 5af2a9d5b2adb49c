"""Errors of queues. The status keys are those of ANSI COBOL; 9x are ours."""

from __future__ import annotations

from typing import ClassVar

from postroom.errors.root import PostroomError


class QueueError(PostroomError):
    """A queue operation was refused."""


class AreaShort(QueueError):
    code = "area-short"
    template = "the next portion of the message cannot be put into the area: {why}"
    advice = "Receive into a longer area, or run the program with an encoding that has the character."
    status = "98"


class LeaseOver(QueueError):
    code = "lease-over"
    template = "lease {lease} has ended: {why}"
    advice = "Another worker may have the message by now. Use a longer lease, or extend it."
    status = "93"


class PasswordMissing(QueueError):
    code = "password-missing"
    template = "{queue} has no password at this level, so it cannot be disabled or enabled here: {advice}"
    advice = "Name a level with a password, or set one for this level with `postroom queue password`."
    status = "40"


class PasswordNeeded(QueueError):
    code = "password-needed"
    template = "{what}, and the current password was not given; give it, or override as the operator: {word}"
    advice = "Give the current password, or as the operator use the option in the message."
    status = "40"


class PasswordWrong(QueueError):
    code = "password-wrong"
    template = "wrong password for {queue}{source}"
    advice = "Give the password of the level that you name, not of one above or below it."
    status = "40"


class QueueFull(QueueError):
    code = "queue-full"
    template = "{queue} is full: {why}"
    advice = "Wait until messages have been received (`wait=`), or raise the limit: `postroom queue policy`."
    status = "94"


class QueueHeld(QueueError):
    code = "queue-held"
    template = "{queue} is on hold ({hold}) and does not {verb} messages; enable it with: postroom enable {level}"
    advice = "Wait, or enable the level in the message, with its password."
    status = "92"


class QueueLocked(QueueError):
    code = "queue-locked"
    template = "{queue} is locked by {holder}, who is receiving message {key} by segments (lease ends {until})"
    advice = "Wait until the other receiver has the last segment, or until its lease ends."
    status = "91"


class QueueNotSingle(QueueError):
    code = "queue-not-single"
    template = "{queue} is a level, not a queue; name one of the queues below it: {below}"
    advice = "Name one of the queues below."
    status = "20"


class QueueOwned(QueueError):
    code = "queue-owned"
    template = "{queue} belongs to {owner}"
    advice = "Use its owner: a station's queue is accessed by its station, a sphere's by its sphere."
    status = "20"


class QueueUnknown(QueueError):
    code = "queue-unknown"
    template = "there is no queue {queue}{nearest}"
    advice = "Find the name with `postroom count`, and check the room (`--room`, `POSTROOM_URL`)."
    listing: ClassVar[str] = "; list the queues with: postroom count"  # for a name that is like no other
    status = "20"


class SourceHeld(QueueError):
    code = "source-held"
    template = "the source {source} is disabled and sends nothing; enable it with: postroom source enable {source}"
    advice = "Wait, or enable the source with its password."
    status = "92"


class SourceUnknown(QueueError):
    code = "source-unknown"
    template = "there is no source {source!r}; list the sources with: postroom source list"
    advice = "Find the name with `postroom source list`, or create it with `postroom source create`."
    status = "21"
