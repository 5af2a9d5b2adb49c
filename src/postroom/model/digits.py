"""Numbers of JSON that are written with the digits that they were read with: 3.10 stays 3.10."""

from __future__ import annotations

import json
import os
import re
from typing import Any

_MARK = os.urandom(16).hex()  # stands for a number until the rest is written; nobody else knows it
_MARKED = re.compile(f'"{_MARK}([0-9]+)"')


class Digits(float):
    """A number with a point or an exponent, and how it was written; a float to everybody else."""

    __slots__ = ("written",)
    written: str

    def __new__(cls, written: str) -> Digits:
        number = super().__new__(cls, written)
        number.written = str(written)
        return number


def digits_json(value: Any, separators: tuple[str, str] | None = None) -> str:
    """The JSON text of a value; its ``Digits`` as they were written."""
    numbers: list[str] = []
    text = json.dumps(_marked(value, numbers), ensure_ascii=False, separators=separators)
    return _MARKED.sub(lambda match: numbers[int(match[1])], text) if numbers else text


def _marked(value: Any, numbers: list[str]) -> Any:
    if isinstance(value, Digits):
        numbers.append(value.written)
        return f"{_MARK}{len(numbers) - 1}"
    if isinstance(value, dict):
        return {name: _marked(item, numbers) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_marked(item, numbers) for item in value]
    return value
