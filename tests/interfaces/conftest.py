"""Run commands in this process, as the program would."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.interfaces import shapes

from postroom.interfaces.cli import output
from postroom.interfaces.cli.main import main

_TIME, _NUMBER = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T.*Z", "[0-9]+"
#: What stands below a heading of a table, in whichever it is; an empty cell says nothing.
CELLS = {
    "attempts": _NUMBER,
    "created": _TIME,
    "due": _TIME,
    "expires": _TIME,
    "key": r" *[0-9]{5,}\.[0-9]{5}( \*)?",
    "messages": rf"(at least )?{_NUMBER}",
    "processed": _NUMBER,
    "processed at": rf"{_TIME}|blocked",
    "received": _TIME,
    "since": _TIME,
    "started": _TIME,
    "time": _TIME,
    "unprocessed": _NUMBER,
    "until": _TIME,
    "version": _NUMBER,
    "waiting": _NUMBER,
    "way": "takes|gives",
    "what": "[a-z ]+",
}


@dataclass
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]


def _compared(table: Callable[..., None], headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table whose headings mean what they mean in all others."""
    rows = [list(row) for row in rows]
    for heading, pattern in CELLS.items():
        for row in rows if heading in headings else ():
            cell = row[list(headings).index(heading)]
            assert cell in (None, "") or re.fullmatch(pattern, str(cell)), f"{heading}: {cell!r}"
    table(headings, rows)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """``run("send", "q", stdin="text")`` in an empty working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(output, "table", partial(_compared, output.table))

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
