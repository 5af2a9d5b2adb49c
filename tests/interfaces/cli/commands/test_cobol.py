"""The commands of COBOL programs; what they compile is run in tests/interfaces/cobol."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ...conftest import Run

EXAMPLES = Path(__file__).parents[4] / "examples" / "cobol"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    for name in ("entry.cob", "order-line.cpy"):
        shutil.copy(EXAMPLES / name, tmp_path)
    return tmp_path / "entry.cob"


def test_a_program_is_translated_to_a_file_or_to_standard_output(run: Run, program: Path) -> None:
    assert run("cobol", "entry.cob", "-o", "out.cob").out == "wrote out.cob\n"
    text = (program.parent / "out.cob").read_text()
    assert 'CALL "postroom_send"' in text
    assert run("cobol", "translate", "entry.cob", "--fixed", "-I", ".").out == text
    assert run("cobol", "entry.cob", "-o", "out.cob", "--json").json == {"status": "00", "file": "out.cob"}


def test_what_is_not_understood_is_told_with_its_place(run: Run, program: Path) -> None:
    program.write_text(program.read_text().replace("SEND DESK WITH EGI", "SEND DISK WITH EGI"))
    told = run("cobol", "entry.cob")
    assert told.code == 1
    assert told.err.startswith("postroom: cobol-invalid: entry.cob:30:21: DISK is no CD of this program; did you mean")
    assert "file-unreadable" in run("cobol", "nowhere.cob").err


def test_without_a_compiler_nothing_is_made(run: Run, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setenv("XDG_CACHE_HOME", str(program.parent / "cache"))
    for words in (("build", "entry.cob", "-o", "entry"), ("run", "entry.cob", "-arg", "X"), ("library",)):
        assert "compiler-missing" in run("cobol", *words).err


def test_the_library_is_made_and_its_place_is_printed(run: Run) -> None:
    told = run("cobol", "library", "--json").json
    assert (Path(told["folder"]) / "postroom.h").is_file()
    assert Path(told["file"]).is_file()
    assert run("cobol", "library").out == f"-I{told['folder']} {told['file']}\n"


def test_a_session_needs_a_socket(run: Run) -> None:
    assert "NUMBER" in run("cobol", "session", "9999").err
