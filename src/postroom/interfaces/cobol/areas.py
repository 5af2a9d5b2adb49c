"""The areas of communication descriptions (CD) as a program has them in memory: bytes at fixed offsets.

An input CD has 87 characters, an I-O CD 33, an output CD 10 and 13 for each destination.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from itertools import accumulate
from time import localtime, strftime
from typing import NamedTuple

NAME_SIZE = 12
INPUT_SIZE = 87
IO_SIZE = 33
OUTPUT_HEAD, DESTINATION_SIZE = 10, 13


class Field(NamedTuple):
    """One item of a CD: offset and length."""

    start: int
    size: int

    def read(self, area: bytes | bytearray) -> bytes:
        return bytes(area[self.start : self.start + self.size])

    def write(self, area: bytearray, text: str) -> None:
        area[self.start : self.start + self.size] = text.encode("ascii", "replace").ljust(self.size)[: self.size]


def _placed(**sizes: int) -> dict[str, Field]:
    """Items of these sizes in sequence."""
    starts = accumulate(sizes.values(), initial=0)
    return {name: Field(start, size) for start, (name, size) in zip(starts, sizes.items(), strict=False)}


INPUT = _placed(queues=4 * NAME_SIZE, date=6, time=8, source=NAME_SIZE, length=4, end=1, status=2, count=6)
IO = _placed(date=6, time=8, source=NAME_SIZE, length=4, end=1, status=2)
OUTPUT = _placed(count=4, length=4, status=2)


class AreaInvalid(ValueError):
    """A program passed an area that no CD has."""


@lru_cache(maxsize=64)
def _local(second: int) -> str:
    """Local date and time in the format of a CD; cached, because many messages share a second."""
    return strftime("%y%m%d%H%M%S", localtime(second))


class Description:
    """The area of a CD, read at the start of a verb and written at its end."""

    def __init__(self, data: bytes, fields: dict[str, Field], least: int) -> None:
        if len(data) < least:
            raise AreaInvalid(f"a CD of {len(data)} characters; it has at least {least}")
        self.area = bytearray(data)
        self._fields = fields

    def text(self, name: str) -> str:
        """The content of an item without trailing blanks."""
        return self._fields[name].read(self.area).decode("latin-1").rstrip(" \0")

    def number(self, name: str) -> int | None:
        """The content of a numeric item; None if it is no number."""
        digits = self._fields[name].read(self.area)
        return int(digits) if digits.isdigit() else None

    def write(self, name: str, value: str | int) -> None:
        field = self._fields[name]
        if isinstance(value, int):
            value = str(min(value, 10**field.size - 1)).zfill(field.size)
        field.write(self.area, value)

    def received(self, created: datetime, source: str, length: int, end: str) -> None:
        """Fill in the items that describe a received message: time, source, length of the portion, end indicator."""
        here = _local(int(created.timestamp()))
        hundredths = created.microsecond // 10_000
        text = f"{here}{hundredths:02d}{source[:NAME_SIZE]:{NAME_SIZE}}{min(length, 9999):04d}{end}"
        Field(self._fields["date"].start, len(text)).write(self.area, text)  # these stand one after another


class InputDescription(Description):
    def __init__(self, data: bytes) -> None:
        super().__init__(data, INPUT, INPUT_SIZE)

    @property
    def queues(self) -> tuple[str, ...] | None:
        """The queue names from the top level; None if the first is blank, or one between others."""
        field = self._fields["queues"].read(self.area).decode("latin-1")
        names = [field[at : at + NAME_SIZE].rstrip(" \0") for at in range(0, 48, NAME_SIZE)]
        while names and not names[-1]:
            names.pop()
        return tuple(names) if names and all(names) else None

    def set_queues(self, names: Sequence[str]) -> None:
        self.write("queues", "".join(name[:NAME_SIZE].ljust(NAME_SIZE) for name in names))

    def begin(self) -> None:
        """Blank the names, for a program that no message has started."""
        self.set_queues(())


class IoDescription(Description):
    def __init__(self, data: bytes) -> None:
        super().__init__(data, IO, IO_SIZE)

    def begin(self) -> None:
        """Blank the name of the terminal."""
        self.write("source", "")


class OutputDescription(Description):
    def __init__(self, data: bytes) -> None:
        super().__init__(data, OUTPUT, OUTPUT_HEAD + DESTINATION_SIZE)

    @property
    def destinations(self) -> list[str] | None:
        """The destinations, as many as the count says; None if it is zero, no number, or larger than the table."""
        count = self.number("count")
        if not count or count > (len(self.area) - OUTPUT_HEAD) // DESTINATION_SIZE:
            return None
        starts = (OUTPUT_HEAD + 1 + place * DESTINATION_SIZE for place in range(count))
        return [bytes(self.area[at : at + NAME_SIZE]).decode("latin-1").rstrip(" \0") for at in starts]

    def set_errors(self, keys: Sequence[str]) -> None:
        """The error key of each destination, in their order."""
        for place, key in enumerate(keys):
            at = OUTPUT_HEAD + place * DESTINATION_SIZE
            self.area[at : at + 1] = key.encode("ascii")
