"""Suggestions for misspelt names."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

_SHORT = 4  # of so few letters only one may be wrong


def close(name: str, known: Iterable[str], most: int = 1) -> list[str]:
    """Similar names, the closest first; case is ignored."""
    folded = str(name).casefold()  # a program may give anything
    near = []
    for place, candidate in enumerate(dict.fromkeys(known)):
        slips = _slips(folded, candidate.casefold(), _allowed(folded, candidate))
        if slips is not None:
            near.append((slips, place, candidate))
    return [candidate for _, _, candidate in sorted(near)[:most]]


def written(name: str) -> str:
    """A name for a shell: quoted if it has blanks."""
    return shlex.quote(name) if " " in name else name


def _allowed(one: str, other: str) -> int:
    """The allowed edit distance of two names, less than their length."""
    longer = max(len(one), len(other))
    return min(1, longer - 1) if longer <= _SHORT else max(2, longer // 6)


def _slips(one: str, other: str, most: int) -> int | None:
    """The edit distance, with swaps of neighbours as one; None above ``most``."""
    if abs(len(one) - len(other)) > most:
        return None
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        older, before, row = before, row, [at]
        for place, theirs in enumerate(other, 1):
            slips = min(before[place] + 1, row[-1] + 1, before[place - 1] + (letter != theirs))
            if at > 1 and place > 1 and letter == other[place - 2] and one[at - 2] == theirs:
                slips = min(slips, older[place - 2] + 1)
            row.append(slips)
        if min(row) > most:
            return None
    return row[-1] if row[-1] <= most else None
