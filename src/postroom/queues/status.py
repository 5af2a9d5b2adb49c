"""The two-digit status keys of ANSI COBOL and the error keys of destinations: one table for every interface.

Results use the first ones; errors carry theirs in ``errors``. 9x are ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

DONE = "00"
QUEUED = "10"  # accepted by a queue that is on hold for output: it stays there until someone enables the queue
ALREADY = "15"  # every queue was in that state before
UNKNOWN = "20"
SOURCE_UNKNOWN = "21"
COUNT_INVALID = "30"
PASSWORD = "40"  # noqa: S105
TOO_LONG = "50"
EMPTY_PARTIAL = "60"
NO_PARTIAL = "70"
COMBINED = "80"
LOCKED, HELD, LEASE_OVER, FULL = "91", "92", "93", "94"
LATE, NOT_TEXT, AREA_SHORT, FAILED = "96", "97", "98", "99"

#: Every key that a program may find, and what it says.
KEYS: Final[dict[str, str]] = {
    DONE: "done",
    QUEUED: "one or more destinations are disabled; the message waits there",
    ALREADY: "the queue, source or destination was in that state already",
    UNKNOWN: "a queue or destination is unknown; done for the destinations that are known",
    SOURCE_UNKNOWN: "the source is unknown; nothing was done",
    COUNT_INVALID: "the destination count is invalid; nothing was done",
    PASSWORD: "the password is wrong; nothing was done",
    TOO_LONG: "the text length is greater than the sending area; nothing was done",
    EMPTY_PARTIAL: "a partial segment without text or without a sending area; nothing was done",
    NO_PARTIAL: "one or more destinations have no partial message; done for the others",
    COMBINED: "at least two of 10, 15 and 20",
    LOCKED: "the queue is locked by another program that receives a message of it in portions; try again",
    HELD: "the queue is on hold and accepts nothing; nothing was done",
    LEASE_OVER: "the lease of the message has ended; nothing was done",
    FULL: "the queue is full; nothing was done",
    LATE: "the message received last was given to another program meanwhile; nothing was sent",
    NOT_TEXT: "the sending area is no text in the encoding of the program; nothing was done",
    AREA_SHORT: "the area is too short for one character of the message; nothing was received",
    FAILED: "anything else; the session's standard error says what",
}

#: Error keys of one destination in a send to several.
SERVED, REFUSED = "0", "1"
#: The same, as COBOL has them.
ERROR_KEYS: Final[dict[str, str]] = {
    SERVED: "no error",
    REFUSED: "the destination is unknown",
    "2": "the destination is disabled",
    "4": "the destination has no partial message",
    "5": "the destination was in that state already",
    "9": "anything else; the status key says what",
}
_ERROR_KEY: Final = {DONE: SERVED, UNKNOWN: REFUSED, QUEUED: "2", NO_PARTIAL: "4", ALREADY: "5"}


def error_key(key: str) -> str:
    """The error key of a destination with this status.

    >>> error_key(UNKNOWN), error_key(PASSWORD)
    ('1', '9')
    """
    return _ERROR_KEY.get(key, "9")


def combined(keys: Iterable[str]) -> str:
    """The overall status of several destinations: two of 10, 15 and 20 are 80; any other counts more than these.

    >>> combined(["00", "10", "20"]), combined(["00", "20", "40"]), combined(["00"])
    ('80', '40', '00')
    """
    others = set(keys) - {DONE}
    partly = others & {QUEUED, ALREADY, UNKNOWN}
    if others - partly:
        return max(others - partly)
    return COMBINED if len(partly) > 1 else next(iter(partly), DONE)
