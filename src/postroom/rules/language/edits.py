"""Edits of a text that keep its line numbers, with a mapping from new offsets to old ones."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace ``text[start:end]`` by ``replacement``."""

    start: int
    end: int
    replacement: str


@dataclass(frozen=True, slots=True)
class Edited:
    """The edited text, with the origin of each of its pieces."""

    text: str
    pieces: tuple[tuple[int, int, bool], ...]

    def origin(self, offset: int) -> int:
        """The old offset of a new one: exact for copied text, the start of the edit for inserted text."""
        if not 0 <= offset <= len(self.text):
            raise ValueError(f"the text has no offset {offset}")
        begin, source, copied = self.pieces[bisect_right(self.pieces, offset, key=lambda piece: piece[0]) - 1]
        return source + offset - begin if copied else source


def edited(text: str, start: int, end: int, edits: Sequence[Edit]) -> Edited:
    """``text[start:end]`` with all edits made. Edits must not overlap; those at one place keep their order.

    Removed line ends are added after the replacement, so line numbers stay the same, and errors of another compiler can
    be shown to the user.
    """
    parts: list[str] = []
    pieces: list[tuple[int, int, bool]] = []
    at, size = start, 0

    def put(part: str, source: int, copied: bool) -> None:
        nonlocal size
        if part:
            parts.append(part)
            pieces.append((size, source, copied))
            size += len(part)

    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if not at <= edit.start <= edit.end <= end:
            raise ValueError(f"the edit of {edit.start} to {edit.end} overlaps another or leaves {start} to {end}")
        if "\n" in edit.replacement or "\r" in edit.replacement:
            raise ValueError("a replacement cannot contain a line end")
        put(text[at : edit.start], at, True)
        put(edit.replacement + "\n" * text.count("\n", edit.start, edit.end), edit.start, False)
        at = edit.end
    put(text[at:end], at, True)
    pieces.append((size, end, True))
    return Edited("".join(parts), tuple(pieces))


def line_column(text: str, offset: int) -> tuple[int, int]:
    """The line and column of an offset, both counted from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
