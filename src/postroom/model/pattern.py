"""Wildcard patterns: ``*`` is any text, ``?`` one character."""

from __future__ import annotations

import re
from functools import lru_cache


def looks_like(pattern: str, value: str) -> bool:
    """Match a wildcard pattern: ``*`` is any text, ``?`` one character.

    Each part takes its first match, without backtracking.
    """
    first, *rest = pattern.split("*")
    if not rest:
        return len(first) == len(value) and _fits(first, value, 0)
    *middle, last = rest
    if (
        len(first) + len(last) > len(value)
        or not _fits(first, value, 0)
        or not _fits(last, value, len(value) - len(last))
    ):
        return False
    at, end = len(first), len(value) - len(last)
    for part in middle:
        match = _signs(part).search(value, at, end)
        if match is None:
            return False
        at = match.end()
    return True


def _fits(part: str, value: str, at: int) -> bool:
    return _signs(part).match(value, at) is not None


@lru_cache(maxsize=1_000)
def _signs(part: str) -> re.Pattern[str]:
    """A part without ``*``: it can match in only one way."""
    return re.compile("".join("." if sign == "?" else re.escape(sign) for sign in part), re.DOTALL)
