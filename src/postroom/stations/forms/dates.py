"""Converts dates and times as people write them: ``Aug. 21, 1981`` and ``10 am``.

dateutil knows the names of months. Its parser is not used: it guesses missing parts, reads ``Monday 3 2026`` as a day
in March, and the year 0050 as 2050. Here a date has day, month name and year, in one of two orders.
"""

from __future__ import annotations

import re

from postroom.model.types import Kind

_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?"
_MONTH = r"(?P<month>[A-Za-z]+)\.?"
_YEAR = r",?\s+(?P<year>\d{4})"
_DATES = (re.compile(rf"{_MONTH}\s+{_DAY}{_YEAR}"), re.compile(rf"{_DAY}\s+{_MONTH}{_YEAR}"))
_TIME = re.compile(r"(?P<hour>1[0-2]|0?[1-9])(?::(?P<minute>[0-5]\d))?\s*(?P<half>[ap])\.?m\.?", re.IGNORECASE)


def exact(kind: Kind, text: str) -> str:
    """A date or time in ISO format; other text is left unchanged.

    >>> exact(Kind.DATE, "Aug. 21, 1981"), exact(Kind.DATE, "3rd Sept 2026"), exact(Kind.TIME, "10:30 pm")
    ('1981-08-21', '2026-09-03', '22:30')
    >>> exact(Kind.DATE, "Marble 3, 2026")
    'Marble 3, 2026'
    """
    if kind is Kind.DATE:
        for form in _DATES:
            match = form.fullmatch(text.strip())
            month = None if match is None else _month(match["month"])
            if match is not None and month is not None:
                return f"{match['year']}-{month:02d}-{int(match['day']):02d}"
    if kind is Kind.TIME:
        match = _TIME.fullmatch(text.strip())
        if match is not None:
            hour = int(match["hour"]) % 12 + (12 if match["half"].lower() == "p" else 0)
            return f"{hour:02d}:{match['minute'] or '00'}"
    return text


def _month(name: str) -> int | None:
    from dateutil.parser import parserinfo  # only where someone writes a month

    number: int | None = parserinfo().month(name)
    return number
