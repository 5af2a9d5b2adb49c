"""How long work says how far it is: one type, written once."""

from __future__ import annotations

from pathlib import Path

from postroom.model import progress

SOURCE = Path(progress.__file__).parents[1]


def test_the_type_is_written_once() -> None:
    written = [file for file in SOURCE.rglob("*.py") if "Callable[[int, int], None]" in file.read_text()]
    assert written == [Path(progress.__file__)], "import OnProgress"


def test_nothing_is_said_to_those_who_do_not_ask() -> None:
    callback: progress.OnProgress = progress.silent
    callback(1, 2)
