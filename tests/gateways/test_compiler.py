"""The compilers: what they refuse is told, and so is a compiler that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from postroom.errors import CompileFailed, CompilerMissing
from postroom.gateways.compiler import build_library, build_program


def test_what_does_not_compile_is_told_with_its_place(tmp_path: Path) -> None:
    source = tmp_path / "broken.c"
    source.write_text("int main(void) { return nothing; }\n")
    with pytest.raises(CompileFailed, match=r"broken\.c:1:"):
        build_library(source, tmp_path / "broken.o")
    assert not (tmp_path / "broken.o").exists()


def test_a_compiler_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CompilerMissing, match="cobc") as refused:
        build_program(tmp_path / "a.cob", tmp_path / "l.o", tmp_path / "a", tmp_path / "a.cob")
    assert "gnucobol" in refused.value.advice
    with pytest.raises(CompilerMissing, match="cc"):
        build_library(tmp_path / "a.c", tmp_path / "a.o")
