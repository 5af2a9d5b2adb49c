"""The segments of a message: those its sender made, else its lines; split further for a short area.

A message sent in segments has them concatenated in its body, with their lengths in a property. Without it, the segments
are the lines; of a form, the fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from itertools import groupby
from typing import NamedTuple

from postroom.errors import AreaShort, ArgumentInvalid, BodyMismatch, TypeUnknown
from postroom.model.body import Format
from postroom.model.message import Stored, Value
from postroom.store.kernel.transaction import Transaction

#: Properties of messages that were sent in segments, or by a source.
SEGMENTS, GROUP, SOURCE, ADVANCING = "segments", "end", "source", "advancing"
_EGI = "EGI"
_MANY = 100_000  # segments of one message


class End(StrEnum):
    """The end indicator of a portion: nothing, segment (ESI), message (EMI), group (EGI)."""

    PARTIAL = "0"
    SEGMENT = "1"
    MESSAGE = "2"
    GROUP = "3"

    @property
    def completes(self) -> bool:
        """Whether the message is complete."""
        return self in (End.MESSAGE, End.GROUP)


class Area(NamedTuple):
    """The size of an area: bytes in an encoding."""

    size: int
    encoding: str = "utf-8"


class Portion(NamedTuple):
    """A delivered part of a message, and its position."""

    end: End
    num_chars: int  # of the whole message
    current_char: int  # how many of them were given out by now
    path: tuple[str, ...] = ()  # the symbolic path of its queue


def composed(
    segments: Sequence[str],
    *,
    group: bool = False,
    source: str | None = None,
    advancing: Sequence[str] = (),
    properties: Mapping[str, Value] | None = None,
) -> tuple[str, dict[str, Value]]:
    """The body and the properties of a message in segments.

    >>> composed(["AB", "", "CD"], group=True)
    ('ABCD', {'segments': '2,0,2', 'end': 'EGI'})
    """
    complete = dict(properties or {})
    for name in {SEGMENTS, GROUP, SOURCE, ADVANCING} & complete.keys():
        raise ArgumentInvalid(argument=name, why="it is the name of a property of messages in segments")
    if len(segments) > _MANY:
        raise ArgumentInvalid(argument="segments", why=f"at most {_MANY} in one message")
    if len(segments) != 1 or "\n" in segments[0]:
        complete[SEGMENTS] = _written(segments)
    if group:
        complete[GROUP] = _EGI
    if source is not None:
        complete[SOURCE] = source
    if any(advancing):
        complete[ADVANCING] = ",".join(advancing)
    return "".join(segments), complete


def _written(segments: Sequence[str]) -> str:
    """Run-length encoded lengths: ``80``, or ``80*25`` for 25 of the same."""
    runs = ((length, len(list(run))) for length, run in groupby(map(len, segments)))
    return ",".join(f"{length}*{many}" if many > 1 else str(length) for length, many in runs)


def _read(value: object, total: int) -> list[int] | None:
    """The lengths in a property; None if they do not fit this body."""
    if not isinstance(value, str) or not re.fullmatch(r"\d{1,7}(\*\d{1,6})?(,\d{1,7}(\*\d{1,6})?)*", value):
        return None
    ends: list[int] = []
    for run in value.split(","):
        length, _, many = run.partition("*")
        if len(ends) + int(many or 1) > _MANY:
            return None
        ends += [int(length)] * int(many or 1)
    return ends if sum(ends) == total else None


class Segments(NamedTuple):
    """A message with the positions of its segments."""

    text: str
    spans: tuple[tuple[int, int], ...]
    end: End = End.MESSAGE

    @classmethod
    def of(cls, tx: Transaction, stored: Stored) -> Segments:
        from postroom.model.views import as_lines, lines, record
        from postroom.store.tables.types import find_type

        body, properties = stored.body, {}
        if '"segments":' in stored.properties or '"end":' in stored.properties:
            properties = json.loads(stored.properties)
        end = End.GROUP if properties.get(GROUP) == _EGI else End.MESSAGE
        lengths = _read(properties.get(SEGMENTS), len(body))
        if lengths:
            return cls(body, tuple(_spans(lengths, 0)), end)
        if stored.type is not None and stored.format == Format.JSON:
            with suppress(BodyMismatch, TypeUnknown):  # the type has changed since; the text has not
                fields = as_lines(record(body, Format.JSON, find_type(tx, stored.type))) or [""]
                return cls("\n".join(fields), tuple(_spans(map(len, fields), 1)), end)
        return cls(body.removesuffix("\n"), tuple(_spans(map(len, lines(body)), 1)), end)

    def portion(self, segment: int, char: int, area: Area | None, *, whole: bool) -> Step:
        """The next portion after so many segments and characters: the rest of the segment, or of the message."""
        index = min(segment, len(self.spans) - 1)
        first, last = self.spans[index]
        start = max(char, first) if index == segment else first
        limit = len(self.text) if whole else max(last, start)
        stop = limit if area is None else start + _fitting(self.text, start, limit, area)
        if stop < limit:
            while self.spans[index][1] < stop and index + 1 < len(self.spans):
                index += 1
            return Step(self.text[start:stop], End.PARTIAL, start, stop, (index, stop))
        if whole or index + 1 == len(self.spans):
            return Step(self.text[start:stop], self.end, start, stop, (len(self.spans), len(self.text)))
        return Step(self.text[start:stop], End.SEGMENT, start, stop, (index + 1, self.spans[index + 1][0]))


class Step(NamedTuple):
    """A portion, and where the next one begins."""

    text: str
    end: End
    start: int
    stop: int
    then: tuple[int, int]


def _spans(lengths: Iterator[int] | Sequence[int], between: int) -> Iterator[tuple[int, int]]:
    start = 0
    for length in lengths:
        yield start, start + length
        start += length + between


def _fitting(text: str, start: int, limit: int, area: Area) -> int:
    """How many characters fit into an area; at least one, if there are any."""
    wanted = text[start : min(limit, start + area.size)]
    if wanted.isascii():
        return len(wanted)
    try:
        data = wanted.encode(area.encoding)
    except UnicodeEncodeError as error:
        raise AreaShort(why=f"the message has {wanted[error.start]!r}, which {area.encoding} does not have") from None
    fits = len(wanted) if len(data) <= area.size else len(data[: area.size].decode(area.encoding, "ignore"))
    if not fits and wanted:
        raise AreaShort(why=f"an area of {area.size} bytes is too short for {wanted[0]!r}")
    return fits
