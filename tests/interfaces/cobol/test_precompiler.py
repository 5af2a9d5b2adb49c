"""Whole programs: sections in their places, the first call of a program that a queue starts, words of installations."""

from __future__ import annotations

from pathlib import Path

import pytest

from postroom.errors import CobolInvalid, FileUnreadable
from postroom.interfaces.cobol.precompiler import Options, precompile, read_cards
from postroom.interfaces.cobol.source import Layout

EXAMPLES = Path(__file__).parents[3] / "examples" / "cobol"
MADE = ("01", "02", "03", "BY", "CALL", "MOVE", "RETURNING", "IF", "ELSE", "END-IF")
CD = "COMMUNICATION SECTION.\nCD I FOR INITIAL INPUT.\n"


def made(tmp_path: Path, program: str, **options: object) -> list[str]:
    file = tmp_path / "p.cob"
    file.write_text(program)
    return precompile(file, Options(**options)).splitlines()  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["entry.cob", "teller.cob", "segments.cob"])
def test_every_line_of_a_program_says_where_it_comes_from(name: str) -> None:
    source = (EXAMPLES / name).read_text().splitlines()
    file, number = "", 0
    for line in precompile(EXAMPLES / name).splitlines():
        if line.startswith("#line"):
            _, place, file = line.split(" ", 2)
            number = int(place)
            continue
        if file.strip('"') == str(EXAMPLES / name) and line.strip() and "POSTROOM" not in line:
            words = set(line.replace("(", " ").split())
            theirs = set(source[number - 1][7 if name != "segments.cob" else 0 :].replace("(", " ").split())
            assert words & theirs or line.split()[0] in MADE
        number += 1


def test_the_storage_of_cds_comes_before_the_linkage_section(tmp_path: Path) -> None:
    lines = made(
        tmp_path, f"ID DIVISION.\nDATA DIVISION.\nLINKAGE SECTION.\n01 L PIC X.\n{CD}PROCEDURE DIVISION.\nSTOP RUN.\n"
    )
    order = [
        lines.index(text)
        for text in ("WORKING-STORAGE SECTION.", "01 POSTROOM-CD-1.", "LINKAGE SECTION.", "01 L PIC X.")
    ]
    assert order == sorted(order)
    assert lines[lines.index("PROCEDURE DIVISION.") - 1] == f'#line 7 "{tmp_path / "p.cob"}"'


@pytest.mark.parametrize("declaratives", ["", "DECLARATIVES.\nS SECTION.\nEND DECLARATIVES.\n"])
def test_the_cd_of_initial_input_is_filled_first(tmp_path: Path, declaratives: str) -> None:
    text = "\n".join(
        made(tmp_path, f"ID DIVISION.\nDATA DIVISION.\n{CD}PROCEDURE DIVISION.\n{declaratives}MAIN. STOP RUN.\n")
    )
    assert (
        text.index("END DECLARATIVES" if declaratives else "PROCEDURE")
        < text.index("postroom_initial")
        < text.index("MAIN.")
    )


def test_a_program_without_communication_is_left_as_it_is(tmp_path: Path) -> None:
    program = "ID DIVISION.\nPROGRAM-ID. X.\nPROCEDURE DIVISION.\nDISPLAY 'A'.\n"
    assert made(tmp_path, program)[1:] == program.splitlines()


def test_cards_replace_words(tmp_path: Path) -> None:
    cards = tmp_path / "cards"
    cards.write_text('* ours\n\nXX1 "OUT QUEUE"\nXX2   STANDARD\n')
    assert read_cards(cards) == {"XX1": '"OUT QUEUE"', "XX2": "STANDARD"}
    assert 'MOVE "OUT QUEUE" TO A.' in made(tmp_path, "MOVE XX1 TO A.\n", layout=Layout.FREE, cards=read_cards(cards))
    cards.write_text("XX1\n")
    with pytest.raises(CobolInvalid, match="cards:1:1"):
        read_cards(cards)


def test_files_that_are_not_there_are_refused(tmp_path: Path) -> None:
    for read in (precompile, read_cards):
        with pytest.raises(FileUnreadable):
            read(tmp_path / "nowhere.cob")


@pytest.mark.parametrize("cut", range(5, 1500, 61))
def test_a_program_that_is_cut_off_is_refused_with_a_place_or_has_no_open_end(tmp_path: Path, cut: int) -> None:
    text = (EXAMPLES / "teller.cob").read_text()
    place = text.index("COMMUNICATION SECTION")
    file = tmp_path / "p.cob"
    file.write_text(text[: place + cut])
    (tmp_path / "order-line.cpy").write_text((EXAMPLES / "order-line.cpy").read_text())
    where = ""
    try:
        text = precompile(file)
    except CobolInvalid as refused:
        where = refused.facts["where"]
    assert where.startswith(f"{file}:") if where else "COMMUNICATION" not in text


DEBUGGED = """\
       IDENTIFICATION DIVISION.
       ENVIRONMENT DIVISION.
       CONFIGURATION SECTION.
       SOURCE-COMPUTER. X WITH DEBUGGING MODE.
       DATA DIVISION.
       COMMUNICATION SECTION.
       CD I FOR INPUT.
       PROCEDURE DIVISION.
           RECEIVE I MESSAGE INTO TXT
      D        NO DATA DISPLAY "NONE"
           .
"""


def test_debugging_lines_count_in_debugging_mode_and_are_comments_elsewhere(tmp_path: Path) -> None:
    """Also one that is a phrase of a statement that always counts: that one waits or does not, as the line says."""
    assert any("NONE" in line for line in made(tmp_path, DEBUGGED))
    plain = DEBUGGED.replace(" WITH DEBUGGING MODE", "")
    assert not any("NONE" in line for line in made(tmp_path, plain))
    assert [line for line in made(tmp_path, plain) if "IF " in line] == []
    wrong = DEBUGGED.replace("D        NO DATA", "D        SEND X WITH EMI NO DATA")
    with pytest.raises(CobolInvalid, match=r"p\.cob:10:21: X is no CD"):
        made(tmp_path, wrong)
    second = DEBUGGED + "       END PROGRAM A.\n" + plain.replace("NONE", "NEVER")
    assert not any("NEVER" in line for line in made(tmp_path, second)), "the mode is that of one program"


def test_two_programs_of_a_file_share_a_copybook_with_their_section(tmp_path: Path) -> None:
    (tmp_path / "COMM.cpy").write_text("       COMMUNICATION SECTION.\n       CD O FOR OUTPUT.\n")
    program = """\
       IDENTIFICATION DIVISION.
       PROGRAM-ID. {0}.
       AUTHOR. DON'T PANIC.
       DATA DIVISION.
       LINKAGE SECTION.
       01  LK PIC X(5).
       COPY COMM.
       PROCEDURE DIVISION USING LK.
           SEND O FROM LK WITH EMI.
       END PROGRAM {0}.
"""
    words = " ".join(
        line for line in made(tmp_path, program.format("ONE") + program.format("TWO")) if not line.startswith("#")
    )
    for half in words.split("PROGRAM-ID. ")[1:]:
        places = [half.index(word) for word in ("WORKING-STORAGE SECTION", "POSTROOM-CD-1", "LINKAGE SECTION", "CALL")]
        assert places == sorted(places)
    assert "PANIC" not in words
