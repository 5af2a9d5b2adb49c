"""Recurring times: ``0 7 * * 1-5`` is seven o'clock from Monday to Friday.

Five fields: minute, hour, day of the month, month, day of the week (0 or 7 is Sunday). A field is ``*``, numbers,
ranges and lists of them, each with a step: ``*/15``, ``1-5``, ``0,30``. Months and days of the week may be named:
``mon-fri``, ``January``. If both days are restricted, either fits. ``@daily`` stands for a whole line.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from postroom.errors import ArgumentInvalid
from postroom.model.moment import to_datetime, to_microseconds

_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7))
_WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_NAMED = {
    "weekday": {name: str(number) for number, day in enumerate(_WEEKDAYS) for name in (day, day[:3])},
    "month": {name: str(number) for number, month in enumerate(_MONTHS, 1) for name in (month, month[:3])},
}
#: Words for whole lines.
_LINES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_DAYS_MAX = 366 * 9  # a 29 February that comes never more is found out by then


@dataclass(frozen=True, slots=True)
class Cron:
    """The times of a schedule, in the time of a place."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool  # whether a day fits by its number or by its weekday
    zone: str = "UTC"

    @classmethod
    def of(cls, text: str, zone: str = "UTC") -> Cron:
        """The cron line of five fields, or a word for one; raises and names the invalid part."""
        words = text.split()
        if len(words) == 1 and text.strip().startswith("@"):
            words = _line(words[0]).split()
        if len(words) != len(_FIELDS):
            why = f"{text!r} has {len(words)} fields, not five: minute hour day month weekday"
            raise ArgumentInvalid(argument="cron", why=why)
        _zone(zone)
        minutes, hours, days, months, weekdays = (
            _numbers(word, *field) for word, field in zip(words, _FIELDS, strict=True)
        )
        either = not words[2].startswith("*") and not words[4].startswith("*")
        made = cls(text, minutes, hours, days, months, frozenset(day % 7 for day in weekdays), either, zone)
        if made.after(0) is None:
            raise ArgumentInvalid(argument="cron", why=f"{text!r} is a day that never comes")
        return made

    def after(self, moment: int) -> int | None:
        """The next time after a moment, both in microseconds; None if there is none in nine years."""
        zone = _zone(self.zone)
        begin = to_datetime(moment).astimezone(zone)
        day = begin.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
        first = begin.hour  # of the first day, earlier ones are over
        for _ in range(_DAYS_MAX):
            if self._fits(day):
                for hour in sorted(hour for hour in self.hours if hour >= first):
                    for minute in sorted(self.minutes):
                        instant = to_microseconds(day.replace(hour=hour, minute=minute, tzinfo=zone))
                        if instant > moment:
                            return instant
            day, first = day + timedelta(days=1), 0
        return None

    def _fits(self, day: datetime) -> bool:
        if day.month not in self.months:
            return False
        number, weekday = day.day in self.days, (day.weekday() + 1) % 7 in self.weekdays
        return number or weekday if self.either else number and weekday


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ArgumentInvalid(argument="zone", why=f"{name!r} is no time zone; such as Europe/Oslo") from None


def _line(word: str) -> str:
    """The five fields that a word such as ``@daily`` stands for."""
    line = _LINES.get(word.lower())
    if line is None:
        raise ArgumentInvalid(argument="cron", why=f"{word!r} is none of {', '.join(_LINES)}")
    return line


def _numbers(word: str, name: str, least: int, most: int) -> frozenset[int]:
    chosen: set[int] = set()
    for part in word.split(","):
        span, slash, step = part.partition("/")
        first, dash, last = span.partition("-")
        if span == "*":
            first, last, dash = str(least), str(most), "-"
        named = _NAMED.get(name, {})
        if last.lower() in ("sun", "sunday") and first.lower() not in ("sun", "sunday"):
            last = "7"  # the end of a week: fri-sun
        first, last = named.get(first.lower(), first), named.get(last.lower(), last)
        numbers = [first, last if dash else first, step if slash else "1"]
        if not all(number.isascii() and number.isdigit() and len(number) < 4 for number in numbers):
            raise ArgumentInvalid(argument="cron", why=f"{part!r} is no {name}")
        begin, end, stride = map(int, numbers)
        end = most if slash and not dash else end
        if not least <= begin <= end <= most or stride < 1:
            raise ArgumentInvalid(argument="cron", why=f"{part!r} is no {name}: {least} to {most}")
        chosen |= set(range(begin, end + 1, stride))
    return frozenset(chosen)
