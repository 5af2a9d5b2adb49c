"""Whether the lines of a journal still say what was written, whichever store or archive they come from.

A line has a digest of its own columns, and the number of the line before it of the same message is among these: so no
line can be changed, and none of a message can be taken out or moved, without a trace. Lines from before digests have
none; they come first, and are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from postroom.store.kernel.journal import Line
from postroom.store.proof.replay import Broken


@dataclass
class Audit:
    """What came of reading lines in their order."""

    gapless: int | None  # the store numbers its lines without a gap behind this number; None: it does not
    covered: int = 0
    uncovered: int = 0
    broken: list[Broken] = field(default_factory=list)
    _last: int | None = None

    def of(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Pass lines through, and look at each."""
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
    """Read a sequence of lines in their order; ``broken`` of the answer tells which were changed."""
    audit = Audit(gapless)
    for line in lines:
        audit.look(line)
    return audit
