"""Message keys: ``00004.00001`` to people, one integer to stores.

The two forms carry the same number, so a key needs no index of its own and still reads aloud over a telephone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from postroom.errors import KeyInvalid
from postroom.limits import KEY_TAIL

FIRST = KEY_TAIL + 1  # 00001.00001


def key_text(number: int) -> str:
    """
    >>> key_text(400001)
    '00004.00001'
    """
    head, tail = divmod(number, KEY_TAIL)
    return f"{head:05d}.{tail:05d}"


def key_number(text: str) -> int:
    """
    >>> key_number("00004.00001")
    400001
    """
    if not isinstance(text, str):
        raise KeyInvalid(key=text)
    head, dot, tail = text.partition(".")
    digits = head + tail
    padded = len(head) > 5 and head[0] == "0"  # one key has one text
    if not (dot and len(tail) == 5 and 5 <= len(head) <= 12 and digits.isascii() and digits.isdigit()) or padded:
        raise KeyInvalid(key=text)
    return int(head) * KEY_TAIL + int(tail)


class KeyTexts(Sequence[str]):
    """Key texts, made on demand."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> KeyTexts: ...

    def __getitem__(self, index: int | slice) -> str | KeyTexts:
        if isinstance(index, slice):
            return KeyTexts(self._numbers[index])
        return key_text(self._numbers[index])
