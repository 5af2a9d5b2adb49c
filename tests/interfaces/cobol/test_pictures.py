"""Sizes of records."""

from __future__ import annotations

import pytest

from postroom.interfaces.cobol.pictures import record_size
from postroom.interfaces.cobol.source import Line
from postroom.interfaces.cobol.tokens import scan


@pytest.mark.parametrize(
    ("record", "size"),
    [
        ("01 R PIC X(87).", 87),
        ("01 R. 02 A PIC XX. 02 B PICTURE IS S9(4)V99. 88 C VALUE 1.", 8),
        ("01 R. 02 T OCCURS 3 TIMES. 03 A PIC X. 03 B PIC 9(2) OCCURS 2. 02 Z PIC X.", 16),
        ("01 R PIC X(5). 01 S PIC X(9).", 5),
        ("01 R. 02 A PIC 9(4) COMP.", None),
        ("01 R. 02 A PIC X(4). 02 B REDEFINES A PIC 9(4).", None),
        ("01 R. 02 A PIC X OCCURS 1 TO 5 DEPENDING ON N.", None),
    ],
)
def test_a_record_has_the_characters_of_its_pictures(record: str, size: int | None) -> None:
    assert record_size(scan([Line("P.cob", 1, record)])) == size
