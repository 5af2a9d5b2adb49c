"""COPY with REPLACING, copybooks within copybooks, and those that are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from postroom.errors import CobolInvalid
from postroom.interfaces.cobol.copybooks import Library, expanded, read_source
from postroom.interfaces.cobol.source import Layout, Line, read_lines
from postroom.limits import COBOL_SOURCE_BYTES_MAX


def copied(folder: Path, text: str) -> list[Line]:
    library = Library((folder,), Layout.FREE, {})
    return [line for line in expanded(read_lines(text, "P.cob", Layout.FREE), library) if line.text.strip()]


def test_a_copybook_comes_with_its_own_lines_and_what_follows_stays(tmp_path: Path) -> None:
    (tmp_path / "inner.cpy").write_text("02 INNER PIC X.\n")
    (tmp_path / "ORDER.CPY").write_text("01 A.\nCOPY inner.\n")
    found = copied(tmp_path, "FIRST. COPY order. LAST.\nEND.\n")
    assert [(Path(line.file).name, line.number, line.text.strip()) for line in found] == [
        ("P.cob", 1, "FIRST."),
        ("ORDER.CPY", 1, "01 A."),
        ("inner.cpy", 1, "02 INNER PIC X."),
        ("P.cob", 1, "LAST."),
        ("P.cob", 2, "END."),
    ]


def test_replacing_takes_words_literals_and_pseudo_text(tmp_path: Path) -> None:
    (tmp_path / "line.cpy").write_text('01 :TAG:-LINE PIC X(SIZE)\n  VALUE "OLD".\n')
    text = 'COPY "line.cpy" SUPPRESS REPLACING ==:TAG:== BY ==NEW== SIZE BY 9 "OLD" BY "YOUNG".\n'
    assert [line.text for line in copied(tmp_path, text)] == ["01 NEW-LINE PIC X(9)", '  VALUE "YOUNG".']


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("COPY NOTHERE.", "P.cob:1:6"),
        ("COPY", "P.cob:1:1"),
        ("COPY line REPLACING A C.", "P.cob:1:23"),
        ("COPY line REPLACING ==A BY B.", "P.cob:1:1"),
        ("COPY line MORE.", "P.cob:1:11"),
        ("COPY self.", "self.cpy:1:6"),
        ("COPY ping.", "pong.cpy:1:1"),
    ],
)
def test_a_copy_that_is_not_understood_has_a_place(tmp_path: Path, text: str, place: str) -> None:
    (tmp_path / "line.cpy").write_text("01 A.\n")
    (tmp_path / "self.cpy").write_text("COPY self.\n")
    (tmp_path / "ping.cpy").write_text("COPY pong.\n")
    (tmp_path / "pong.cpy").write_text("COPY ping.\n")
    with pytest.raises(CobolInvalid) as refused:
        copied(tmp_path, text)
    assert str(refused.value.facts["where"]).endswith(place)


def test_a_file_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "big.cob").write_bytes(b" " * (COBOL_SOURCE_BYTES_MAX + 1))
    with pytest.raises(CobolInvalid):
        read_source(tmp_path / "big.cob")
