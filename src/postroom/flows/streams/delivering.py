"""Writes the output of a batch. File names contain the batch, so that a repeated batch replaces its files."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from postroom.flows.language.outside import JSON
from postroom.flows.language.types import Type
from postroom.flows.streams.formats import write
from postroom.flows.streams.routing import Refused
from postroom.store.files.disk import sync, sync_way

if TYPE_CHECKING:
    from postroom.flows.language.outside import Outside

_PART = ".part"


@dataclass(frozen=True)
class Staged:
    """The output for one destination: files that Spark has written, and further lines."""

    files: Sequence[Path] = ()
    more: Sequence[str] = ()

    def __iter__(self) -> Iterator[str]:
        return chain(lines_of(self.files), self.more)


def staged(folder: Path, goal: str) -> list[Path]:
    """The files of a goal that Spark has written."""
    return sorted((folder / f"goal={goal}").glob("part-*"))


def lines_of(files: Sequence[Path]) -> Iterator[str]:
    for file in files:
        with file.open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                yield line.removesuffix("\n")


def deliver_files(folder: Path, stem: str, sink: Outside, type: Type, given: Staged) -> int:
    """Write the files of a batch, complete and under their names, and remove others of that batch; returns the
    lines."""
    folder.mkdir(parents=True, exist_ok=True)
    made: list[Path] = []

    def place(make: Callable[[Path], object]) -> None:
        name = f"{stem}-{len(made):04}.{sink.format}"
        part = folder / f".{name}{_PART}"  # nobody reads what begins with a point
        make(part)
        sync(part)
        os.replace(part, folder / name)
        made.append(folder / name)

    count = 0
    if sink.format == JSON:
        for file in given.files:
            count += _count(file)
            place(partial(shutil.move, file))
        if given.more:
            count += len(given.more)
            place(lambda part: write(part, given.more, JSON, type))
    elif given.files or given.more:
        lines = list(given)
        count = len(lines)
        place(lambda part: write(part, lines, sink.format, type))
    for old in {*folder.glob(f"{stem}-*.{sink.format}"), *folder.glob(f".{stem}-*{_PART}")} - set(made):
        old.unlink()
    sync_way(folder)
    return count


def stem_of(name: str, checkpoint: str, batch: int) -> str:
    """The prefix of the file names of a batch."""
    return f"{re.sub('[^A-Za-z0-9_-]', '-', name)}-{checkpoint[:8]}-{batch:08}"


def dead_letter(refused: Refused, about: Mapping[str, object]) -> str:
    """A dead letter as a line."""
    letter = {"space": refused.space, "arc": refused.arc, "reason": refused.why, "body": refused.body, **about}
    return json.dumps(letter, ensure_ascii=False)


def _count(file: Path) -> int:
    with file.open("rb") as content:
        return sum(piece.count(b"\n") for piece in iter(lambda: content.read(1 << 20), b""))
