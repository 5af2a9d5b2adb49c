"""The page about the house is true: every file that it names is there, and every room has its row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "postroom"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
#: A section of prose, or a row of the table: a bare name such as ``verbs.py`` means a file of a folder named there.
PARTS = [part for section in PAGE.split("\n## ") for part in re.split(r"\n(?=\| `)", section)]
FOLDERS = sorted(
    folder.relative_to(SOURCE) for folder in SOURCE.rglob("*") if folder.is_dir() and folder.name != "__pycache__"
)


def named(part: str) -> list[str]:
    """Files and folders, in the text and in pictures."""
    return re.findall(r"(?<![\w/.])([\w/]+\.py|[\w/]+/)(?![\w/])", part)


def folders_of(part: str) -> set[Path]:
    """Where a bare name may stand: beside the files that the part names by their path, or in the folder of its row."""
    paths = [SOURCE / name for name in named(part) if "/" in name]
    found = {SOURCE, *(path if path.is_dir() else path.parent for path in paths)}
    for _ in range(2):  # a folder within a folder of the row
        found |= {folder / path.name for folder in found for path in paths if (folder / path.name).is_dir()}
    return found


def is_there(name: str, folders: set[Path]) -> bool:
    if (SOURCE / name).exists() or (name.startswith("tests/") and (ROOT / name).exists()):
        return True
    return "/" not in name.rstrip("/") and any((folder / name).exists() for folder in folders)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.split("\n")[0][:30])
def test_every_file_that_is_named_is_there(part: str) -> None:
    folders = folders_of(part)
    missing = [name for name in named(part) if not is_there(name, folders)]
    assert missing == [], "it was moved or renamed: say where it is now"


def test_names_are_found_in_the_files_that_are_said_to_have_them() -> None:
    found = re.findall(r"`(\w+)` in `([\w/]+\.py)`", PAGE)
    assert found, "the express lane is one"
    for name, file in found:
        assert re.search(rf"\b{name}\b", (SOURCE / file).read_text()), f"{file} has no {name}"


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_every_room_has_a_row(folder: Path) -> None:
    rows = {row.split("`")[1]: row for row in PARTS if row.startswith("| `")}
    if len(folder.parts) == 1:
        assert f"{folder}/" in rows, f"say what is in {folder}/"
    else:
        assert f"`{folder.name}/`" in rows[f"{folder.parts[0]}/"], f"the row of {folder.parts[0]}/ says nothing of it"


def test_a_file_that_is_gone_would_be_missed() -> None:
    part = "1. `queues/verbs.py` and `locks.py`, `gone.py`, `rules/gone.py`, and in a picture store/gone.py"
    assert [name for name in named(part) if not is_there(name, folders_of(part))] == [
        "gone.py",
        "rules/gone.py",
        "store/gone.py",
    ]
