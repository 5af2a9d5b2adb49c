"""Streams from folder to folder, on one Spark session for all tests of a run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import postroom
from postroom.room import Postroom


class Folders:
    """The folders of an operator, below one gateway that is called ``data``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._count = 0

    def put(self, folder: str, rows: Sequence[Any], name: str | None = None) -> Path:
        """A file of lines: texts as they are, anything else as JSON. Each is newer than the one before."""
        self._count += 1
        place = self.root / folder
        place.mkdir(parents=True, exist_ok=True)
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        return self.add(folder, name or f"{self._count:04}.json", "".join(f"{line}\n" for line in lines).encode())

    def add(self, folder: str, name: str, content: bytes, at: int | None = None) -> Path:
        place = self.root / folder
        place.mkdir(parents=True, exist_ok=True)
        hidden = place / f".{name}"
        hidden.write_bytes(content)
        when = at if at is not None else 1_700_000_000 + self._count
        os.utime(hidden, (when, when))
        return hidden.rename(place / name)

    def read(self, folder: str) -> list[Any]:
        """Every line of the files of a folder, as JSON."""
        return [json.loads(line) for line in self.lines(folder)]

    def lines(self, folder: str) -> list[str]:
        place = self.root / folder
        files = sorted(each for each in place.glob("*") if not each.name.startswith(".")) if place.exists() else []
        return [line for file in files for line in file.read_text().splitlines()]


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "data")


@pytest.fixture
def streaming(sqlite_url: str, folders: Folders, spark: object) -> Iterator[Postroom]:
    """A room in a file, with the gateway; Spark is there."""
    with postroom.open(sqlite_url) as room:
        room.gateways.add("data", "files", folder=str(folders.root))
        yield room
