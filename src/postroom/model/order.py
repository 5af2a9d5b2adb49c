"""Sortable texts: values of a kind sort like their texts.

Stores compare texts by bytes, so one index serves numbers, dates and moments, and a condition means the same in a store
and in Python.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from postroom.model.key import key_number
from postroom.model.moment import to_microseconds

if TYPE_CHECKING:
    from postroom.model.types import Kind, Scalar

HIGHEST = "\U0010ffff"  # no text is behind all texts, but none that begins differently is behind this
_KEY = "key"  # the kind; whoever compares properties need not load what all kinds are
_ZERO = "1"
_EXPONENT = 500_000  # larger than any number's; the sum has seven digits
_NINES = str.maketrans("0123456789", "9876543210")


def sortable(kind: Kind, value: Scalar) -> str:
    """The text of a value; ``sortable(kind, a) < sortable(kind, b)`` if and only if ``a < b``.

    A time or a moment without a zone is taken as UTC.

    >>> from postroom.model.types import Kind
    >>> sortable(Kind.INT, -2) < sortable(Kind.INT, 10) < sortable(Kind.INT, 11)
    True
    """
    if kind == _KEY:
        return f"{key_number(str(value)):017d}"
    if type(value) is int:  # most often
        return _whole(value)
    if isinstance(value, datetime):
        return _number(Decimal(to_microseconds(value)))
    if isinstance(value, time):
        since = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)
        return _number(Decimal((since - (value.utcoffset() or timedelta())) // _MICROSECOND))
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    return _number(Decimal(repr(value)) if isinstance(value, float) else Decimal(value))


_MICROSECOND = timedelta(microseconds=1)


#: A number that is written as a text, as commands set properties. Entries of properties know the same ones.
_WRITTEN = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")


def written_number(text: str) -> int | float | None:
    """The number that a text is; None if it is none.

    >>> written_number("007"), written_number("-2.50"), written_number("1e3")
    (7, -2.5, None)
    """
    if _WRITTEN.fullmatch(text) is None:
        return None
    return float(text) if "." in text else int(text)


def compared(value: str | int | float | bool) -> str | int | float:
    """A value as conditions compare it: two are equal if and only if ``=`` takes them for one.

    >>> [compared(value) for value in (1, 1.0, "1", "1.00", True, "true")]
    [1, 1, 1, 1, 'true', 'true']
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    number = written_number(value) if isinstance(value, str) else value
    if isinstance(number, float) and number.is_integer():
        return int(number)
    return value if number is None else number


def plain_number(text: str) -> str | None:
    """The same of a number that is written with digits and a point alone; None of any other.

    >>> from postroom.model.types import Kind
    >>> plain_number("12.50") == sortable(Kind.DECIMAL, Decimal("12.50"))
    True
    """
    whole, _, part = text.partition(".")
    if not (whole.isascii() and whole.isdecimal() and (not part or (part.isascii() and part.isdecimal()))):
        return None
    if text.endswith("."):
        return None
    ahead = whole.lstrip("0")
    digits = (ahead + part).lstrip("0")
    if not digits:
        return _ZERO
    magnitude = len(ahead) - 1 if ahead else len(digits) - len(part) - 1
    return f"2{magnitude + _EXPONENT:07d}{digits.rstrip('0')}"


def _whole(value: int) -> str:
    """Like ``_number``, a fast path for whole numbers."""
    if not value:
        return _ZERO
    digits = str(abs(value))
    key = f"{len(digits) - 1 + _EXPONENT:07d}{digits.rstrip('0')}"
    return f"2{key}" if value > 0 else f"0{key.translate(_NINES)}~"


def _number(value: Decimal) -> str:
    """Sign, magnitude, digits. For negative numbers the digits are complemented and a last character follows."""
    if not value:
        return _ZERO
    _, digits, _ = value.as_tuple()
    key = f"{value.adjusted() + _EXPONENT:07d}{''.join(map(str, digits)).rstrip('0')}"
    return f"2{key}" if value > 0 else f"0{key.translate(_NINES)}~"
