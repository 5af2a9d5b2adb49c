"""Lines of fixed and free programs: what stands where, and what is no COBOL."""

from __future__ import annotations

import pytest

from postroom.errors import CobolInvalid
from postroom.interfaces.cobol.source import Layout, layout_of, read_lines

FIXED = '''\
000100 IDENTIFICATION DIVISION.                                         CM101
000200* A COMMENT "WITH A QUOTE
       01  LONG PIC X(70) VALUE "ON PAGE XIII-21, PARAGRAPH ABCDEFGHIJKL
      -    "5.4 AND ""MORE""".
       MOVE LONG-WO
      -    RD TO X. *> said
      DDISPLAY X.
'''


def texts(program: str, layout: Layout, **cards: str) -> list[str]:
    return [line.text for line in read_lines(program, "P.cob", layout, cards)]


def test_a_fixed_program_keeps_its_lines_and_columns() -> None:
    lines = texts(FIXED, Layout.FIXED)
    assert lines[0] == "       IDENTIFICATION DIVISION."
    assert lines[1] == ""
    assert lines[2] == '       01  LONG PIC X(70) VALUE "ON PAGE XIII-21, PARAGRAPH ABCDEFGHIJKL5.4 AND ""MORE""".'
    assert lines[3:] == ["", "       MOVE LONG-WORD TO X.", "", ">>D    DISPLAY X."]


def test_a_literal_that_is_continued_goes_to_column_72() -> None:
    line = '       01  A PIC X(60) VALUE "ENDS EARLY'
    assert len(line) < 72
    assert f'"ENDS EARLY{" " * (72 - len(line))}HERE".' in texts(line + '\n      -    "HERE".\n', Layout.FIXED)[0]


def test_a_literal_over_three_lines_has_the_columns_of_each() -> None:
    lines = ['       01  A PIC X(200) VALUE "FIRST', '      -      "SECOND', '      -    "THIRD".']
    first, second = (line.ljust(72).partition('"')[2] for line in lines[:2])
    assert f'"{first}{second}THIRD".' in texts("\n".join(lines), Layout.FIXED)[0]


def test_a_comment_entry_may_say_anything() -> None:
    program = """\
       IDENTIFICATION DIVISION.
       PROGRAM-ID. P.
       AUTHOR. J. O'BRIEN AND "OTHERS.
           DATA AND PROCEDURE ARE WORDS HERE.
       DATA DIVISION.
"""
    assert [text.strip() for text in texts(program, Layout.FIXED) if text] == [
        "IDENTIFICATION DIVISION.",
        "PROGRAM-ID. P.",
        "DATA DIVISION.",
    ]


def test_free_lines_lose_their_comments_only() -> None:
    program = 'DISPLAY "*> no comment" *> a comment\n>>SET X\n*> all of it\n'
    assert texts(program, Layout.FREE) == ['DISPLAY "*> no comment"', ">>SET X", ""]


def test_comment_entries_are_left_out() -> None:
    program = "ID DIVISION.\nAUTHOR. O'NEIL.\nSECURITY.\n  IT'S OPEN.\nENVIRONMENT DIVISION.\nSECURITY.\n"
    assert texts(program, Layout.FREE) == ["ID DIVISION.", "", "", "", "ENVIRONMENT DIVISION.", "SECURITY."]


def test_the_place_of_the_first_division_says_how_a_program_is_written() -> None:
    assert layout_of("*> x\nIDENTIFICATION DIVISION.\n") is Layout.FREE
    assert layout_of(FIXED) is Layout.FIXED
    assert layout_of("      * ID DIVISION\n       ID DIVISION.\n") is Layout.FIXED
    assert layout_of(">>SOURCE FORMAT IS FREE\n") is Layout.FREE
    assert layout_of("nothing") is Layout.FIXED


def test_words_of_an_installation_are_replaced_but_not_in_literals() -> None:
    found = texts('MOVE XXXXX032 TO XXXXX0321 "XXXXX032".', Layout.FREE, XXXXX032='"OUT"')
    assert found == ['MOVE "OUT" TO XXXXX0321 "XXXXX032".']


@pytest.mark.parametrize(
    ("program", "place", "rule"),
    [
        ("      -    GOES ON.\n", "P.cob:1:7", "continuation"),
        ("      ?    WHAT.\n", "P.cob:1:7", "indicator"),
        ('       MOVE "OPEN TO X.\n', "P.cob:1:13", "literal"),
        ('       MOVE "OPEN\n      -    NO QUOTE.\n', "P.cob:2:8", "continuation"),
    ],
)
def test_what_is_no_line_of_cobol_is_refused_with_its_place(program: str, place: str, rule: str) -> None:
    with pytest.raises(CobolInvalid) as refused:
        texts(program, Layout.FIXED)
    assert (refused.value.facts["where"], refused.value.facts["rule"]) == (place, rule)
