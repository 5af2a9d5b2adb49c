"""Checks journal lines, from a store or an archive.

A line has a digest of its columns, which include the number of the previous line of the same message: so lines cannot
be changed, removed or moved unnoticed. Older lines without digests come first, and are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from postroom.store.kernel.journal import Line
from postroom.store.proof.replay import Broken


@dataclass
class Audit:
    """The result of checking lines in order."""

    gapless: int | None  # the store numbers its lines without a gap behind this number; None: it does not
    covered: int = 0
    uncovered: int = 0
    broken: list[Broken] = field(default_factory=list)
    _last: int | None = None

    def of(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Pass lines through and check each."""
        for line in lines:
            self.look(line)
            yield line

    def look(self, line: Line) -> None:
        if line.digest is None and self.covered:
            self._break(line, "it has no digest, and a line before it has one")
        elif not line.sound:
            self._break(line, "it no longer says what was written")
        last = self._last
        if self.gapless is not None and last is not None and last >= self.gapless and line.seq != last + 1:
            self._break(line, f"the line before it has the number {last}")
        self._last = line.seq
        if line.digest is None:
            self.uncovered += 1
        else:
            self.covered += 1

    def _break(self, line: Line, why: str) -> None:
        self.broken.append(Broken(line.seq, why))


def check_lines(lines: Iterable[Line], *, gapless: int | None = None) -> Audit:
    """Check lines in order; ``broken`` of the result lists changed ones."""
    audit = Audit(gapless)
    for line in lines:
        audit.look(line)
    return audit
