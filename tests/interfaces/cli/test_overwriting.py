"""No command writes its file in the place of a room."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.interfaces.conftest import Run

PROGRAM = "       IDENTIFICATION DIVISION.\n       PROGRAM-ID. T.\n       PROCEDURE DIVISION.\n           STOP RUN.\n"


@pytest.mark.parametrize(
    "words",
    [
        "backup other.db --replace",
        "export q --file other.csv --replace",
        "export --xes other.xes --replace",
        "export --ocel other.json --replace",
        "graph --mermaid other.db",
        "cobol t.cob -o other.db",
        "cobol build t.cob -o other.db",
        "work shop:workers --health other.db",
        "prepare --file other.db",
    ],
)
def test_a_command_that_writes_a_file_never_destroys_a_room(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.cob").write_text(PROGRAM)
    run("queue", "create", "q")
    other = next(word for word in words.split() if word.startswith("other."))
    run("--room", other, "queue", "create", "mine")
    before = (tmp_path / other).read_bytes()
    told = run(*words.split())
    assert (told.code, told.out) == (1, "")
    assert told.err.startswith(("postroom: file-unwritable: ", "postroom: backup-refused: "))
    assert "choose another name" in told.err
    assert (tmp_path / other).read_bytes() == before
