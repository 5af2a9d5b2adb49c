"""CD entries in all their forms: the storage that they become, and places of what is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.errors import CobolInvalid
from postroom.interfaces.cobol.descriptions import size_of
from postroom.interfaces.cobol.precompiler import translated
from postroom.interfaces.cobol.source import Layout, read_lines

HEAD = "DATA DIVISION.\nWORKING-STORAGE SECTION.\nCOMMUNICATION SECTION.\n"


def storage(entries: str) -> str:
    """What CD entries become, blanks apart."""
    program = HEAD + entries + "\nPROCEDURE DIVISION.\n"
    lines = translated(read_lines(program, "P.cob", Layout.FREE))
    text = " ".join(" ".join(line.text for line in lines).split())
    return text.partition("POSTROOM-WORDS PIC X(1024). ")[2].partition(" PROCEDURE DIVISION")[0]


INPUT = [
    ("[SYMBOLIC] QUEUE", "X(12)"),
    ("[SYMBOLIC] SUB-QUEUE-1", "X(12)"),
    ("[SYMBOLIC] SUB-QUEUE-2", "X(12)"),
    ("[SYMBOLIC] SUB-QUEUE-3", "X(12)"),
    ("MESSAGE DATE", "9(6)"),
    ("MESSAGE TIME", "9(8)"),
    ("[SYMBOLIC] SOURCE", "X(12)"),
    ("TEXT LENGTH", "9(4)"),
    ("END KEY", "X(1)"),
    ("STATUS KEY", "X(2)"),
    ("[MESSAGE] COUNT", "9(6)"),
]


@given(st.permutations(range(11)), st.integers(0, 11), st.lists(st.booleans(), min_size=22, max_size=22))
def test_clauses_of_an_input_cd_come_in_any_order(order: list[int], given: int, noise: list[bool]) -> None:
    chosen = order[:given]
    clauses = []
    for place in chosen:
        words = INPUT[place][0]
        kept = words.replace("[", "").replace("]", "") if noise[place] else words.rpartition("] ")[2]
        clauses.append(f"{kept} {'IS ' if noise[place + 11] else ''}NAME-{place}")
    items = [f"02 {f'NAME-{n}' if n in chosen else 'FILLER'} PIC {picture}." for n, (_, picture) in enumerate(INPUT)]
    assert storage(f"CD C FOR INPUT {' '.join(clauses)}.") == " ".join(["01 POSTROOM-CD-1.", *items])


def test_names_by_their_places_and_filler() -> None:
    assert storage("CD C INPUT A B C D FILLER F G H I J K.").startswith("01 POSTROOM-CD-1. 02 A PIC X(12). 02 B")
    assert "02 FILLER PIC 9(6). 02 F PIC 9(8)." in storage("CD C INPUT A B C D FILLER F G H I J K.")
    assert storage("CD C FOR I-O A B C D E F.").endswith("02 C PIC X(12). 02 D PIC 9(4). 02 E PIC X(1). 02 F PIC X(2).")


def test_a_table_of_destinations() -> None:
    text = storage("CD C FOR OUTPUT DESTINATION TABLE OCCURS 3 TIMES INDEXED BY I J ERROR KEY IS E DESTINATION D.")
    assert text.endswith("02 FILLER OCCURS 3 TIMES INDEXED BY I J. 03 E PIC X(1). 03 D PIC X(12).")


def test_a_record_is_the_storage_and_others_redefine_it() -> None:
    text = storage(
        "CD C FOR OUTPUT.\n01 R.\n  02 N PIC 9999 VALUE 1.\n  02 X PIC X(19).\n01 S PIC X(23).\n01 PIC X(23)."
    )
    assert text.startswith("01 R. 02 N PIC 9999 VALUE 1. 02 X PIC X(19). 01 S REDEFINES R PIC X(23).")
    assert "REDEFINES R PIC X(23)." in text.partition("01 POSTROOM-RECORD")[2]
    text = storage("CD C FOR INPUT STATUS KEY IS S.\n01 R PIC X(87).\n01 FILLER PIC X(87).")
    assert text.startswith("01 R PIC X(87). 01 POSTROOM-RECORD-1-")
    assert text.count("REDEFINES R") == 2
    assert "02 S PIC X(2)." in text


@pytest.mark.parametrize("filler", ["FILLER ", ""])
def test_a_record_that_redefines_by_itself_does_so_once(filler: str) -> None:
    text = storage(f"CD C FOR INPUT.\n01 R PIC X(87).\n01 {filler}REDEFINES R.\n  02 Q PIC X(12).")
    assert text.count("REDEFINES R") == 1


@pytest.mark.parametrize(
    ("entry", "column"),
    [
        ("CD C FOR PRINTER.", 10),
        ("CD C FOR INITIAL OUTPUT.", 18),
        ("CD 99 FOR INPUT.", 4),
        ("CD C FOR INPUT A B.", 19),
        ("CD C FOR INPUT STATUS KEY S STATUS KEY T.", 29),
        ("CD C FOR INPUT STATUS WORD S.", 28),
        ("CD C FOR OUTPUT A.", 17),
        ("CD C FOR OUTPUT DESTINATION TABLE TWICE.", 35),
        ("CD C FOR OUTPUT DESTINATION TABLE OCCURS MANY.", 42),
        ("CD C FOR INPUT. CD C FOR INPUT.", 20),
        ("CD C FOR INITIAL INPUT. CD D FOR INITIAL INPUT.", 25),
        ("MOVE A TO B.", 1),
        ("CD C FOR INPUT. 01 R. 02 Q PIC X(12). 02 FILLER PIC X(60).", 17),
        ("CD C FOR OUTPUT. 01 R. 02 A PIC X(10). 02 D OCCURS 2 TIMES. 03 E PIC X. 03 F PIC X(11).", 18),
    ],
)
def test_an_entry_that_is_not_understood_has_a_place(entry: str, column: int) -> None:
    with pytest.raises(CobolInvalid) as refused:
        storage(entry)
    assert refused.value.facts["where"] == f"P.cob:4:{column}"


def test_areas_have_the_sizes_of_the_standard() -> None:
    assert [size_of("INPUT"), size_of("I-O"), size_of("OUTPUT"), size_of("OUTPUT", 3)] == [87, 33, 23, 49]
