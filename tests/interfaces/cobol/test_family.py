"""Every clause of the communication module of COBOL-85, in the manner of the programs of its validation suite."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.interfaces.cobol.conftest import start

import postroom
from postroom.interfaces.cobol.precompiler import Options, precompile, read_cards

HERE = Path(__file__).parent
QUEUES = '01 INPUT-QUEUE (CM-IN) PASSWORD IS "INKEY"\n01 OUTPUT-QUEUE (CM-OUT) PASSWORD IS "OUTKEY"\n99\n'
SAID = """\
INITIAL CM-IN
TABLE 00 00
SHEET 00
BARE 00
BLANK 20 10
ZERO 30
COUNT 00 000002
SEGMENT 00 0 0004 ABCD++++
SEGMENT 00 1 0004 EFGH
MESSAGE 00 2 0008 IJKLMNOP....
INNER
DATA 00
UNKNOWN 20
OFF 00
ON 00
TERMINAL 00
KEY 40
I-O 00
OUTPUT 00 0
OUTPUT 00
BLANK KEY 40
PURGE 00
PURGE 70 4
DESK 00
DESK EMPTY 00
"""


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    made: str = request.getfixturevalue(f"{request.param}_url")
    (tmp_path / "queues.qdl").write_text(QUEUES)
    with postroom.open(made) as room:
        room.load(tmp_path / "queues.qdl")
        for name in ("FROM-DESK", "TO-DESK", "LOG"):
            room.queues.create(name)
        room.queues.create_source("DESK", password="DESKKEY", input="FROM-DESK", output="TO-DESK")
        room.queues.send_segments("CM-IN", ["ABCDEFGH", "IJKL", "MNOP"])
        room.send("CM-IN", "SECOND")
    return made


def test_every_clause_of_the_communication_module(program: Callable[..., Path], url: str, tmp_path: Path) -> None:
    """Abbreviated words, separators, tables, names OF a CD, areas of every kind, figurative constants as keys."""
    file = tmp_path / "family.cob"
    file.write_text((HERE / "family.cob").read_text())
    made = program(file, Options(cards=read_cards(HERE / "nist-cards.txt")))
    ran = start(made, url, tmp_path, "-arg", "CM-IN")
    said, _ = ran.communicate(timeout=120)
    assert [line.rstrip() for line in said.splitlines()] == SAID.splitlines()
    assert ran.returncode == 0
    with postroom.open(url) as room:
        sent = {
            queue: [(message.body, dict(message.properties)) for message in room.peek(queue)]
            for queue in ("CM-OUT", "LOG", "TO-DESK")
        }
        assert room.journal.verify().differences == ()
    segments = ("AAAABBBBCCCC", {"advancing": ",A2,B1", "segments": "4*3"})
    sheet = ("BBBB", {"advancing": "AP", "end": "EGI"})
    assert sent == {
        "CM-OUT": [segments, sheet, ("    ", {"advancing": "B0"})],
        "LOG": [segments, sheet, ("DDDD", {})],
        "TO-DESK": [("IJKL", {"advancing": "R"})],
    }


HEAD = """       IDENTIFICATION DIVISION.
       PROGRAM-ID. P.
       DATA DIVISION.
       COMMUNICATION SECTION.
"""


def translated(folder: Path, *lines: str) -> str:
    file = folder / "p.cob"
    file.write_text(HEAD + "".join(f"       {line}\n" for line in lines))
    return precompile(file)


def test_two_cds_have_items_of_the_same_name(tmp_path: Path) -> None:
    text = translated(
        tmp_path,
        "CD  A FOR INPUT STATUS KEY IS STATE.",
        "01  A-REC. 02 ALL-OF-IT PIC X(87).",
        "CD  B FOR OUTPUT STATUS KEY IS STATE.",
        "01  B-REC. 02 B-TEXT PIC X(23).",
        "PROCEDURE DIVISION.",
        "P1. MOVE STATE OF A TO STATE IN B.",
        "    DISPLAY ALL-OF-IT OF A B-TEXT IN B-REC OF B.",
        "    SEND B FROM ALL-OF-IT IN A WITH EMI.",
    )
    assert "MOVE STATE OF POSTROOM-CD-1 TO STATE OF POSTROOM-CD-2." in text
    assert "DISPLAY ALL-OF-IT OF A-REC B-TEXT IN B-REC ." in text
    assert "BY REFERENCE ALL-OF-IT IN A-REC BY VALUE LENGTH OF ALL-OF-IT IN A-REC" in text


def test_a_qualifier_that_is_not_of_the_cd_is_left_to_the_compiler(tmp_path: Path) -> None:
    text = translated(
        tmp_path, "CD  A FOR INPUT STATUS KEY IS STATE.", "PROCEDURE DIVISION.", "P1. DISPLAY OTHER OF A."
    )
    assert "DISPLAY OTHER OF A." in text
