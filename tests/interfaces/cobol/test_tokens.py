"""Tokens, edits by them, and directives that say where a line comes from."""

from __future__ import annotations

from itertools import chain

import pytest

from postroom.errors import CobolInvalid
from postroom.interfaces.cobol.source import Layout, Line, read_lines
from postroom.interfaces.cobol.tokens import Edits, printed, scan


def lines(text: str) -> list[Line]:
    return read_lines(text, "P.cob", Layout.FREE)


def test_tokens_have_their_kinds_and_places() -> None:
    found = scan(lines('MOVE "A ""B"""\n  TO X-1(2). PIC 9.99.'))
    assert [(token.kind, token.text) for token in found[:4]] == [
        ("word", "MOVE"),
        ("literal", '"A ""B"""'),
        ("word", "TO"),
        ("word", "X-1"),
    ]
    assert [token.text for token in found[4:]] == ["(", "2", ")", ".", "PIC", "9", ".", "99", "."]
    assert [token.kind for token in found if token.text == "."] == ["period", "other", "period"]
    assert str(found[2].position) == "P.cob:2:3"


def test_an_edit_replaces_tokens_of_several_lines_and_leaves_the_rest() -> None:
    program = lines("A B C\nD E F\nG H I")
    tokens, edits = scan(program), Edits()
    edits.replace(tokens[1:8], "x\ny")
    edits.insert_after(tokens[8], "!")
    assert printed(
        chain.from_iterable(edits.applied(program))
    ) == '#line 1 "P.cob"\nA x\n#line 1 "P.cob"\ny\n\n  I!\n'.replace("  I", " I")


def test_directives_say_where_lines_come_from() -> None:
    text = printed([Line("a.cob", 1, "A"), Line("b.cpy", 1, "B"), Line("b.cpy", 2, "C"), Line("a.cob", 2, "D")])
    assert text == '#line 1 "a.cob"\nA\n#line 1 "b.cpy"\nB\nC\n#line 2 "a.cob"\nD\n'


def test_a_literal_that_does_not_end_has_a_place() -> None:
    with pytest.raises(CobolInvalid, match=r"P\.cob:1:6"):
        scan(lines("MOVE 'OPEN"))
