"""How many characters a record has, by the pictures of its items."""

from __future__ import annotations

import re
from collections.abc import Sequence

from postroom.interfaces.cobol.tokens import Token

_REPEATED = re.compile(r"(.)\((\d+)\)")
_UNCOUNTED = re.compile("[SVP]")  # a sign, a decimal point and a scale take no place
#: Words of clauses by which an item is not as long as its picture.
_OTHERWISE = re.compile(r"(COMP|COMPUTATIONAL|BINARY|PACKED|INDEX|POINTER|FLOAT|SIGN|SYNC|DEPENDING|COPY).*")
_NO_ITEMS = (66, 77, 88)


def record_size(tokens: Sequence[Token]) -> int | None:
    """The length of the first record of some data descriptions; None if pictures do not determine it."""
    groups = [(0, 1)]  # of each open group, its level and how often it occurs
    size = 0
    for entry in _entries(tokens):
        words = [token.word or token.text for token in entry]
        level = int(words[0])
        if level == 1 and len(groups) > 1:
            break
        if level in _NO_ITEMS:
            continue
        if any(map(_OTHERWISE.fullmatch, words[2:])) or (level > 1 and "REDEFINES" in words):
            return None
        while groups[-1][0] >= level:
            groups.pop()
        occurs = int(words[words.index("OCCURS") + 1]) if "OCCURS" in words[:-1] else 1
        groups.append((level, groups[-1][1] * occurs))
        size += _width(entry) * groups[-1][1]
    return size


def _entries(tokens: Sequence[Token]) -> list[list[Token]]:
    entries: list[list[Token]] = [[]]
    for token in tokens:
        if token.kind == "period":
            entries.append([])
        else:
            entries[-1].append(token)
    return [entry for entry in entries if entry]


def _width(entry: Sequence[Token]) -> int:
    """The length of an item; 0 for a group."""
    at = next((place for place, token in enumerate(entry) if token.word in ("PIC", "PICTURE")), None)
    if at is None:
        return 0
    at += 1 + (entry[at + 1].word == "IS")
    text, end = "", entry[at].start
    for token in entry[at:]:
        if token.start != end or token.at != entry[at].at:
            break
        text, end = text + token.text.upper(), token.end
    return len(_UNCOUNTED.sub("", _REPEATED.sub(lambda match: match[1] * int(match[2]), text)))
