"""Files that users name: how a name is shown, and what is said of one that cannot be read."""

from __future__ import annotations

from pathlib import Path


def printable(name: str | Path) -> str:
    """A file's name as text, also where the file system has bytes that are none."""
    try:
        return str(name).encode(errors="surrogateescape").decode(errors="replace")
    except UnicodeEncodeError:  # a half of a surrogate pair that is no byte of a file's name
        return str(name).encode(errors="replace").decode()


def why_unread(file: str | Path, error: OSError) -> str:
    """Why a file cannot be read; of a relative path that leads nowhere also where it was sought, but not its name."""
    why = error.strerror or str(error)
    if isinstance(error, FileNotFoundError) and not Path(file).is_absolute():
        return f"{why} (looked for from the working directory)"
    return why
