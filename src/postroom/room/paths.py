"""Files and folders that callers name."""

from __future__ import annotations

import os
from pathlib import Path

from postroom.errors import ArgumentInvalid
from postroom.model.body import is_text

#: How a caller names one.
File = str | os.PathLike[str]


def path_of(file: File, argument: str = "file") -> Path:
    """A path; raises if its name is not valid text, which could not be stored or printed."""
    path = Path(file)
    if not is_text(str(path)):
        raise ArgumentInvalid(argument=argument, why="its name must be text, without NUL and halves of surrogate pairs")
    return path
