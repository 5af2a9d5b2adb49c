"""The mark of a commit that was not confirmed: while it is there, the commit may have happened.

After a disk error, a commit may be in SQLite's log, invisible to open connections, and be found after a crash. A
further commit over it settles that; until one succeeds, the mark stays.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


class Doubt:
    def __init__(self, file: Path) -> None:
        self._name = f"{file}-doubt"

    def note(self, label: str) -> None:
        """Write the mark, best effort: a disk that cannot store it cannot store commits of others, either."""
        with contextlib.suppress(OSError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            handle = os.open(self._name, flags, 0o600)
            try:
                os.write(handle, label.encode())
            finally:
                os.close(handle)

    def told(self) -> str | None:
        """The label of the unconfirmed commit; None if all is settled."""
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
