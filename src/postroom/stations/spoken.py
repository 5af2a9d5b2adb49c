"""Dates and times as people write them on forms, as the model has them: ``Aug. 21, 1981`` and ``10 am``."""

from __future__ import annotations

import re

from postroom.model.types import Kind

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(?P<month>[A-Za-z]{3})[a-z]*\.?"
_DATES = (
    re.compile(_MONTH + r"\s+(?P<day>\d{1,2}),?\s+(?P<year>\d{4})"),
    re.compile(r"(?P<day>\d{1,2})\.?\s+" + _MONTH + r"\s+(?P<year>\d{4})"),
)
_TIME = re.compile(r"(?P<hour>1[0-2]|0?[1-9])(?::(?P<minute>[0-5]\d))?\s*(?P<half>[ap])\.?m\.?", re.IGNORECASE)


def exact(kind: Kind, said: str) -> str:
    """The one text that a date or time has; what is none is left as it was said.

    >>> exact(Kind.DATE, "Aug. 21, 1981"), exact(Kind.TIME, "10:30 pm")
    ('1981-08-21', '22:30')
    """
    if kind is Kind.DATE:
        for form in _DATES:
            match = form.fullmatch(said.strip())
            if match is not None and match["month"].lower() in _MONTHS:
                month = _MONTHS.index(match["month"].lower()) + 1
                return f"{match['year']}-{month:02d}-{int(match['day']):02d}"
    if kind is Kind.TIME:
        match = _TIME.fullmatch(said.strip())
        if match is not None:
            hour = int(match["hour"]) % 12 + (12 if match["half"].lower() == "p" else 0)
            return f"{hour:02d}:{match['minute'] or '00'}"
    return said
