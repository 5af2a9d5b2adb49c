"""Files and folders that a caller names."""

from __future__ import annotations

import os
from pathlib import Path

from postroom.errors import ArgumentInvalid
from postroom.model.body import is_text

#: How a caller names one.
File = str | os.PathLike[str]


def path_of(file: File, argument: str = "file") -> Path:
    """Its path; refused if its name is no text, which no store, no document and no error could repeat."""
    path = Path(file)
    if not is_text(str(path)):
        raise ArgumentInvalid(argument=argument, why="its name must be text, without NUL and halves of surrogate pairs")
    return path
