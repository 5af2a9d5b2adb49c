"""Times: whole microseconds since 1970 in stores, aware UTC datetimes to programs, ISO 8601 to people."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache

#: A clock answers with microseconds; stores take one so that tests can make time jump.
Clock = Callable[[], int]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST, _LAST = ((datetime(year, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND for year in (1, 9999))


def system_clock() -> int:
    return time.time_ns() // 1000


def to_datetime(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def to_microseconds(moment: datetime) -> int:
    """A time in microseconds; without a zone it is taken as UTC."""
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


def in_microseconds(seconds: float) -> int:
    """A duration in microseconds."""
    return int(seconds * 1_000_000)


def to_iso(moment: datetime) -> str:
    """
    >>> to_iso(to_datetime(0))
    '1970-01-01T00:00:00.000000Z'
    """
    return f"{moment.isoformat(timespec='microseconds')[:26]}Z"  # a quarter of the time of strftime


def iso_of(microseconds: int) -> str:
    """The same of a moment of a store; in a quarter of the time, if it is in the second of one before.

    >>> iso_of(1_000_000)
    '1970-01-01T00:00:01.000000Z'
    """
    seconds, rest = divmod(microseconds, 1_000_000)
    return f"{_to_the_second(seconds)}{rest:06d}Z"


@lru_cache(64)
def _to_the_second(seconds: int) -> str:
    return to_iso(to_datetime(seconds * 1_000_000))[:20]


def is_moment(microseconds: int) -> bool:
    """Whether a number is a valid time."""
    return _FIRST <= microseconds <= _LAST


_SPANS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}


def span(text: str) -> int | None:
    """How long ``30d`` is, in microseconds: seconds, minutes, hours, days or weeks. None if it is no such text.

    >>> span("2h") == 2 * 3_600 * 1_000_000, span("soon")
    (True, None)
    """
    number, unit = text[:-1], text[-1:]
    if unit not in _SPANS or not number.isascii() or not number.isdigit():
        return None
    return int(number) * _SPANS[unit] * 1_000_000


def to_span(microseconds: int) -> str:
    """
    >>> to_span(7 * 86_400 * 1_000_000), to_span(90 * 60 * 1_000_000)
    ('1w', '90m')
    """
    seconds = microseconds // 1_000_000
    unit = next(unit for unit, size in reversed(_SPANS.items()) if seconds % size == 0)
    return f"{seconds // _SPANS[unit]}{unit}"
