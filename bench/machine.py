"""The machine and the versions: figures without them cannot be compared with anyone else's."""

from __future__ import annotations

import os
import platform
import sqlite3
from importlib.metadata import version

import apsw

from contenders import PEERS


def machine() -> dict[str, str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": str(os.cpu_count()),
        "memory": f"{memory / 2**30:.1f} GiB",
        "platform": platform.platform(),
    }


def versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "postroom": f"{version('postroom')} on SQLite {apsw.sqlite_lib_version()} (apsw {version('apsw')})",
        "plain sqlite3": f"SQLite {sqlite3.sqlite_version}",
        **{peer: f"{version(peer)} on SQLite {sqlite3.sqlite_version}" for peer in PEERS},
    }
