"""Where a RECEIVE ends: generated nestings of statements, run by a real compiler, beside what they mean."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from os import environ
from pathlib import Path

import pytest

import postroom
from postroom.interfaces.cobol import building
from postroom.interfaces.cobol.precompiler import Options, precompile

HEAD = """IDENTIFICATION DIVISION.
PROGRAM-ID. NESTED.
DATA DIVISION.
WORKING-STORAGE SECTION.
01 YES PIC 9 VALUE 1.
01 A PIC X(10).
01 B PIC X(2).
01 N PIC 9(3).
COMMUNICATION SECTION.
CD NONE FOR INPUT SYMBOLIC QUEUE IS QUEUE-NONE STATUS KEY IS S1.
CD SOME FOR INPUT SYMBOLIC QUEUE IS QUEUE-SOME STATUS KEY IS S2.
PROCEDURE DIVISION.
P1.
    MOVE "EMPTY" TO QUEUE-NONE. MOVE "FULL" TO QUEUE-SOME.
"""
#: A statement of two phrases: how it begins, its phrases, its end. The first phrase is taken, or the second.
KINDS = {
    True: {
        "if": ("IF YES = 1", ("", "ELSE"), "END-IF"),
        "receive": ("RECEIVE NONE MESSAGE INTO A", ("NO DATA", "WITH DATA"), "END-RECEIVE"),
        "string": (
            'STRING "abc" DELIMITED BY SIZE INTO B',
            ("ON OVERFLOW", "NOT ON OVERFLOW"),
            "END-STRING",
        ),
        "add": ("ADD 999 999 TO N", ("ON SIZE ERROR", "NOT ON SIZE ERROR"), "END-ADD"),
        "evaluate": ("EVALUATE YES", ("WHEN 1", "WHEN OTHER"), "END-EVALUATE"),
    },
    False: {
        "if": ("IF YES = 2", ("", "ELSE"), "END-IF"),
        "receive": ("RECEIVE SOME MESSAGE INTO A", ("NO DATA", "WITH DATA"), "END-RECEIVE"),
        "string": ('STRING "a" DELIMITED BY SIZE INTO B', ("ON OVERFLOW", "NOT ON OVERFLOW"), "END-STRING"),
        "add": ("ADD 1 2 GIVING N", ("ON SIZE ERROR", "NOT ON SIZE ERROR"), "END-ADD"),
        "evaluate": ("EVALUATE YES", ("WHEN 2", "WHEN OTHER"), "END-EVALUATE"),
    },
}


class Nesting:
    """Statements at random. What they print is known from how they were made, not from their text."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._numbers = count(1)
        self.printed: list[str] = []

    def statements(self, depth: int, follows: str, runs: bool) -> Iterator[str]:
        """Some statements, the last of which is followed by a word; ``runs`` if they are reached."""
        several = self._chance.randint(1, 3)
        for place in range(several):
            last = place == several - 1
            if depth and self._chance.random() < 0.7:
                yield from self._nested(depth - 1, follows if last else None, runs)
            else:
                yield from self._single(follows if last else None, runs)

    def _single(self, follows: str | None, runs: bool) -> Iterator[str]:
        kind = self._chance.random()
        if kind < 0.2:
            ended = follows in ("WITH DATA", "END-RECEIVE") or self._chance.random() < 0.5
            yield "RECEIVE SOME MESSAGE INTO A" + (" END-RECEIVE" if ended else "")
        elif kind < 0.3:
            ended = follows in ("ON OVERFLOW", "NOT ON OVERFLOW", "END-STRING")
            yield 'STRING "a" DELIMITED BY SIZE INTO B' + (" END-STRING" if ended else "")
        else:
            name = f"{next(self._numbers)}"
            if runs:
                self.printed.append(name)
            yield f'DISPLAY "{name}"'

    def _nested(self, depth: int, follows: str | None, runs: bool) -> Iterator[str]:
        first = self._chance.random() < 0.5
        kind = self._chance.choice(sorted(KINDS[first]))
        begin, (one, other), end = KINDS[first][kind]
        both = self._chance.random() < 0.6
        own = (
            {end} if both and kind != "evaluate" else {end, other.split(maxsplit=1)[0] if kind == "evaluate" else other}
        )
        implicit = follows is not None and follows not in own and self._chance.random() < 0.6
        after = follows if implicit and follows is not None else end
        yield f"{begin} {one}"
        yield from self.statements(
            depth, other.split()[0] if both and kind == "evaluate" else other if both else after, runs and first
        )
        if both:
            yield other
            yield from self.statements(depth, after, runs and not first)
        if not implicit:
            yield end


#: The compiler takes minutes for one program of them all.
MANY = [range(first, first + 60) for first in range(60, 1_500, 60)]


@pytest.mark.parametrize(
    "seeds", [range(60), *(pytest.param(seeds, marks=pytest.mark.slow) for seeds in MANY)], ids=lambda seeds: seeds[0]
)
def test_a_receive_ends_where_the_text_ends_it(cobc: str, tmp_path: Path, seeds: range) -> None:
    expected: list[str] = []
    text = HEAD
    for seed in seeds:
        nesting = Nesting(seed)
        lines = list(nesting.statements(4, ".", True))
        expected += [f"SEED {seed}", *nesting.printed, "AFTER"]
        text += (
            f'    DISPLAY "SEED {seed}".\n'
            + "".join(f"    {line}\n" for line in lines)
            + '    .\n    DISPLAY "AFTER".\n'
        )
    file, url = tmp_path / "nested.cob", str(tmp_path / "room.db")
    file.write_text(text + "    STOP RUN.\n")
    with postroom.open(url) as room:
        room.queues.create("EMPTY")
        room.queues.create("FULL")
        room.queues.send_many("FULL", ["x"] * text.count("RECEIVE SOME"))
    program = building.built(file, Options())
    environment = {**environ, "POSTROOM_PYTHON": sys.executable, "POSTROOM_URL": url}
    ran = subprocess.run([str(program)], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.split("\n")[:-1] == expected


def test_a_phrase_is_of_the_innermost_statement_that_lacks_it(tmp_path: Path) -> None:
    """The second NOT ON OVERFLOW is of the outer STRING: it ends the RECEIVE, and ELSE has no END-IF to write."""
    file = tmp_path / "phrases.cob"
    file.write_text(
        HEAD
        + """    IF YES = 1
        STRING "a" DELIMITED BY SIZE INTO B ON OVERFLOW
            RECEIVE SOME MESSAGE INTO A NO DATA
                DISPLAY "1"
            WITH DATA
                STRING "b" DELIMITED BY SIZE INTO B ON OVERFLOW DISPLAY "2" NOT ON OVERFLOW DISPLAY "3"
        NOT ON OVERFLOW
            DISPLAY "4"
        END-STRING
    ELSE
        DISPLAY "5"
    END-IF.
    STOP RUN.
"""
    )
    text = precompile(file)
    assert text.count("END-IF") == 1
    assert "    ELSE\n" in text
