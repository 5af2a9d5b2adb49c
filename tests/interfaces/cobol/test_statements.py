"""Statements of the communication module, each as a call; and places of what is wrong."""

from __future__ import annotations

import pytest

from postroom.errors import CobolInvalid
from postroom.interfaces.cobol.precompiler import translated
from postroom.interfaces.cobol.source import Layout, read_lines

HEAD = """\
SPECIAL-NAMES. C01 IS TOP, C02 IS C-TWO. DATA DIVISION. WORKING-STORAGE SECTION. COMMUNICATION SECTION.
CD I FOR INPUT. CD O FOR OUTPUT. CD T FOR I-O.
PROCEDURE DIVISION.
"""
NONE = "BY REFERENCE OMITTED BY VALUE 0"
IN, OUT, IO = (f"BY REFERENCE POSTROOM-CD-{n} BY VALUE LENGTH OF POSTROOM-CD-{n}" for n in (1, 2, 3))


def call(verb: str, using: str) -> str:
    return f'CALL "postroom_{verb}" USING {using} RETURNING POSTROOM-RESULT END-CALL'


def area(name: str) -> str:
    return f"BY REFERENCE {name} BY VALUE LENGTH OF {name}"


def send(cd: str, text: str, end: str, bits: int = 0, when: str = " ", lines: str = "-2") -> str:
    last = f'BY REFERENCE {end} BY VALUE {bits} BY REFERENCE "{when}" BY VALUE POSTROOM-LINES'
    return f"MOVE {lines} TO POSTROOM-LINES " + call("send", f"{cd} {text} {last}")


def statement(text: str) -> str:
    lines = translated(read_lines(HEAD + text, "P.cob", Layout.FREE))
    found = " ".join(" ".join(line.text for line in lines).split())
    return found.partition("PROCEDURE DIVISION. ")[2].replace('REFERENCE " "', 'REFERENCE " "')


@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        ("RECEIVE I MESSAGE INTO A.", call("receive", f"{IN} {area('A')} BY VALUE 0") + "."),
        ("RECEIVE I SEGMENT A OF B (1) END-RECEIVE", call("receive", f"{IN} {area('A OF B (1)')} BY VALUE 1")),
        ("receive t message into a(1:5).", call("receive", f"{IO} {area('a(1:5)')} BY VALUE 4") + "."),
        ("SEND O FROM A.", send(OUT, area("A"), '"0"') + "."),
        ("SEND O WITH EGI.", send(OUT, NONE, '"3"') + "."),
        ("SEND O FROM A ESI MOVE X TO Y.", send(OUT, area("A"), '"1"') + " MOVE X TO Y."),
        ("SEND O FROM A WITH END-IND.", send(OUT, area("A"), "END-IND") + "."),
        ("SEND T FROM A WITH EMI AFTER PAGE.", send(IO, area("A"), '"2"', 4, "A", "-1") + "."),
        ("SEND O FROM A WITH EMI BEFORE ADVANCING TWO LINES.", send(OUT, area("A"), '"2"', 0, "B", "TWO") + "."),
        ("SEND O FROM A EMI REPLACING LINE.", send(OUT, area("A"), '"2"', 8) + "."),
        ("SEND T WITH E AFTER TOP REPLACING LINE.", send(IO, NONE, "E", 12, "A", "-1") + "."),
        ("ENABLE INPUT I WITH KEY PW.", call("enable", f"{IN} BY VALUE 0 {area('PW')}") + "."),
        (
            'DISABLE INPUT TERMINAL I KEY "K".',
            call("disable", f"{IN} BY VALUE 1 {area(chr(34) + 'K' + chr(34))}") + ".",
        ),
        ("ENABLE OUTPUT O KEY PW.", call("enable", f"{OUT} BY VALUE 2 {area('PW')}") + "."),
        ("DISABLE I-O TERMINAL T.", call("disable", f"{IO} BY VALUE 3 {area(chr(34) + ' ' + chr(34))}") + "."),
        ("ACCEPT I MESSAGE COUNT.", call("count", IN) + "."),
        ("ACCEPT I COUNT.", call("count", IN) + "."),
        ("PURGE O.", call("purge", OUT) + "."),
        ("PURGE T.", call("purge", IO) + "."),
        ("ACCEPT COUNT FROM TIME.", "ACCEPT COUNT FROM TIME."),
        ('DISPLAY "SEND X".', 'DISPLAY "SEND X".'),
    ],
)
def test_a_statement_becomes_a_call(written: str, becomes: str) -> None:
    assert statement(written) == " ".join(becomes.split())


@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        (
            "IF A RECEIVE I MESSAGE INTO B NO DATA ADD 1 TO C WITH DATA ADD 2 TO C END-RECEIVE ELSE GO TO D.",
            "IF A {no} ADD 1 TO C ELSE ADD 2 TO C END-IF ELSE GO TO D.",
        ),
        ("IF A RECEIVE I MESSAGE INTO B NO DATA ADD 1 TO C ELSE GO TO D.", "IF A {no} ADD 1 TO C END-IF ELSE GO TO D."),
        ("IF A RECEIVE I MESSAGE INTO B NO DATA ADD 1 TO C END-IF.", "IF A {no} ADD 1 TO C END-IF END-IF."),
        ("RECEIVE I MESSAGE INTO B NO DATA IF A GO TO C END-RECEIVE.", "{no} IF A GO TO C END-IF END-IF."),
        ("RECEIVE I MESSAGE INTO B NO DATA IF A GO TO C DATA GO TO D.", "{no} IF A GO TO C END-IF ELSE GO TO D."),
        ("RECEIVE I MESSAGE INTO B WITH DATA ADD 2 TO C.", "{yes} ADD 2 TO C."),
    ],
)
def test_no_data_and_with_data_become_an_if_that_ends_where_they_end(written: str, becomes: str) -> None:
    no = call("receive", f"{IN} {area('B')} BY VALUE 2") + " IF POSTROOM-RESULT = 1"
    yes = call("receive", f"{IN} {area('B')} BY VALUE 0") + " IF POSTROOM-RESULT NOT = 1"
    assert statement(written) == " ".join(becomes.format(no=no, yes=yes).split())


def test_other_statements_keep_their_lines() -> None:
    program = HEAD + "P1.\n    MOVE A\n      TO B.\n    SEND O\n      FROM A\n      WITH EMI.\n    STOP RUN.\n"
    lines = translated(read_lines(program, "P.cob", Layout.FREE))
    assert [(line.number, line.text) for line in lines if line.number in (4, 5, 6, 10)] == [
        (4, "P1."),
        (5, "    MOVE A"),
        (6, "      TO B."),
        (10, "    STOP RUN."),
    ]


@pytest.mark.parametrize(
    ("written", "column", "rule"),
    [
        ("RECEIVE X MESSAGE INTO A.", 9, "cd-unknown"),
        ("RECEIVE O MESSAGE INTO A.", 9, "cd-kind"),
        ("RECEIVE I LETTER INTO A.", 11, "syntax"),
        ("RECEIVE I MESSAGE INTO .", 24, "syntax"),
        ("RECEIVE I MESSAGE INTO A NO MAIL.", 29, "syntax"),
        ("RECEIVE I MESSAGE INTO A (1.", 26, "syntax"),
        ('RECEIVE I MESSAGE INTO "LITERAL".', 24, "syntax"),
        ("RECEIVE I MESSAGE INTO SPACES.", 24, "syntax"),
        ("RECEIVE I MESSAGE INTO A WITH NO DATA STOP RUN.", 26, "syntax"),
        ("RECEIVE I MESSAGE INTO A FROBNICATE.", 26, "syntax"),
        ("SEND O FROM A WITH SPACE.", 20, "syntax"),
        ("SEND O FROM A EMI FROBNICATE.", 19, "syntax"),
        ("DISABLE OUTPUT TERMINAL O.", 16, "cd-unknown"),
        ("SEND O.", 1, "syntax"),
        ("SEND I FROM A.", 6, "cd-kind"),
        ("SEND O FROM A WITH EMI REPLACING PAGE.", 34, "syntax"),
        ("SEND O FROM A WITH EMI AFTER C-TWO.", 30, "unsupported"),
        ("ENABLE PRINTER O.", 8, "syntax"),
        ("ENABLE INPUT I WITH LOCK X.", 21, "syntax"),
        ("PURGE I.", 7, "cd-kind"),
        ("SEND", 1, "syntax"),
        ("END-RECEIVE.", 1, "syntax"),
    ],
)
def test_a_statement_that_is_not_understood_has_a_place(written: str, column: int, rule: str) -> None:
    with pytest.raises(CobolInvalid) as refused:
        statement(written)
    assert (refused.value.facts["where"], refused.value.facts["rule"]) == (f"P.cob:4:{column}", rule)


@pytest.mark.parametrize(
    "entry",
    ["77 E PIC 9 COMP.", "01 E PIC 9(2).", "01 E PICTURE IS 9 USAGE IS COMP-3.", "05 E BINARY.", "77 E BINARY-LONG."],
)
def test_an_end_indicator_that_is_not_one_digit_is_refused(entry: str) -> None:
    head = HEAD.replace("COMMUNICATION", f"{entry} COMMUNICATION")
    with pytest.raises(CobolInvalid, match=r"the end indicator E has to be one digit"):
        translated(read_lines(head + "SEND O FROM X WITH E.", "P.cob", Layout.FREE))


@pytest.mark.parametrize("entry", ["77 E PIC 9.", "01 E PIC X(01) VALUE '2'.", "01 E. 05 F PIC 9.", "77 D PIC 9 COMP."])
def test_one_that_is_one_character_is_taken(entry: str) -> None:
    head = HEAD.replace("COMMUNICATION", f"{entry} COMMUNICATION")
    assert translated(read_lines(head + "SEND O FROM X WITH E.", "P.cob", Layout.FREE))


def test_a_mnemonic_name_needs_no_is() -> None:
    head = HEAD.replace("C01 IS TOP", "C01 TOP")
    lines = translated(read_lines(head + "SEND O WITH EMI AFTER TOP.", "P.cob", Layout.FREE))
    assert "MOVE -1 TO POSTROOM-LINES" in " ".join(line.text for line in lines)
