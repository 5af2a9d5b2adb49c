"""A folder for Spark's temporary files. It is removed with its process, however that ends."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

_PREFIX = "postroom-spark-"
_ALIVE = "alive"  # a file in the folder, locked as long as its process lives
_FRESH_SECONDS = 60.0  # a younger folder may be one that is being made


def scratch_folder() -> Path:
    """A new folder; removes those of killed processes."""
    _sweep()
    made = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = os.open(made / _ALIVE, os.O_CREAT | os.O_RDWR, 0o600)  # open until the process ends
    fcntl.flock(lock, fcntl.LOCK_EX)
    process = os.getpid()

    def remove() -> None:
        if os.getpid() == process:  # a forked child must not take it away
            shutil.rmtree(made, ignore_errors=True)

    atexit.register(remove)
    return made


def _sweep() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if _is_left_behind(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_left_behind(folder: Path) -> bool:
    try:
        status = folder.lstat()
        if status.st_uid != os.geteuid() or time.time() - status.st_mtime < _FRESH_SECONDS:
            return False
        lock = os.open(folder / _ALIVE, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True
