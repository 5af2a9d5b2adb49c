"""The mark of a commit that was not confirmed: until someone has settled it, nobody says that it did not happen.

After an error of the disk, what was to be committed may lie in the log of SQLite, unseen by all who have the room open,
and be found by the next one who opens it after a crash. One commit over it settles that; as long as none succeeds, the
mark is there.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


class Doubt:
    def __init__(self, file: Path) -> None:
        self._name = f"{file}-doubt"

    def note(self, label: str) -> None:
        """Best effort: a disk that takes no mark takes no commit of others, either."""
        with contextlib.suppress(OSError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            handle = os.open(self._name, flags, 0o600)
            try:
                os.write(handle, label.encode())
            finally:
                os.close(handle)

    def told(self) -> str | None:
        """What was to be committed; None if all is settled."""
        try:
            handle = os.open(self._name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        except OSError:
            return "something"
        try:
            return os.read(handle, 100).decode(errors="replace") or "something"
        finally:
            os.close(handle)

    def clear(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._name)
