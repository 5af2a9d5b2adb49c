"""Run commands in this process, as the program would."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.interfaces import shapes

from postroom.interfaces.cli.main import main


@dataclass
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """``run("send", "q", stdin="text")`` in an empty working directory."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str, stdin: str = "") -> Ran:
        monkeypatch.setattr(sys, "argv", ["postroom", *words])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode("utf-8", "surrogateescape"))))
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
        captured = capsys.readouterr()
        if "--json" in words:
            for line in filter(None, captured.out.split("\n")):  # a body may have other ends of lines in it
                shapes.check(words, json.loads(line))
        return Ran(code, captured.out, captured.err)

    return run
