"""Lines that were changed, lost or stripped of their digest are named."""

from __future__ import annotations

from collections.abc import Iterator

from postroom.store.kernel.journal import Line, line_digest
from postroom.store.proof.audit import Audit, check_lines
from postroom.store.proof.replay import Broken


def lines(count: int) -> Iterator[Line]:
    for seq in range(1, count + 1):
        digest = line_digest(seq, "put", seq, None, None, 1, "me")
        yield Line(seq, seq, "put", seq, None, None, 1, None, "me", digest)


def test_lines_as_they_were_written_pass_through() -> None:
    audit = Audit(0)
    assert list(audit.of(lines(3))) == list(lines(3))
    assert (audit.covered, audit.uncovered, audit.broken) == (3, 0, [])


def test_a_changed_line_and_a_gap_are_told() -> None:
    first, second, third, fourth = lines(4)
    changed = check_lines([first, second._replace(actor="other"), third, fourth], gapless=0)
    assert changed.broken == [Broken(2, "it no longer says what was written")]
    lost = check_lines([first, second, fourth], gapless=0)
    assert lost.broken == [Broken(4, "the line before it has the number 2")]
    assert check_lines([first, second, fourth], gapless=None).broken == []
    assert check_lines([first, second, fourth], gapless=3).broken == [], "the gap is before it"


def test_lines_without_a_digest_come_first_and_are_counted() -> None:
    first, second, third = lines(3)
    old = check_lines([first._replace(digest=None), second, third])
    assert (old.uncovered, old.covered, old.broken) == (1, 2, [])
    stripped = check_lines([first, second._replace(digest=None), third])
    assert stripped.broken == [Broken(2, "it has no digest, and a line before it has one")]
