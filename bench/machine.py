"""The machine and the versions: figures without them cannot be compared with anyone else's."""

from __future__ import annotations

import os
import platform
import sqlite3
from importlib.metadata import PackageNotFoundError, version

import apsw

#: Packages whose speed is part of a figure: ours, and the peers'.
_PACKAGES = (
    *("pyspark", "pyarrow", "saxonche", "psycopg"),
    *("persist-queue", "litequeue", "duckdb", "clipspy", "dbos"),
)


def machine() -> dict[str, str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": str(os.cpu_count()),
        "memory": f"{memory / 2**30:.1f} GiB",
        "platform": f"{platform.machine()} {platform.system()}",
    }


def versions() -> dict[str, str]:
    return {
        "postroom": version("postroom"),
        "python": platform.python_version(),
        "SQLite of postroom (apsw)": apsw.sqlite_lib_version(),
        "SQLite of the others (sqlite3)": sqlite3.sqlite_version,
        **{name: each for name in _PACKAGES if (each := _version(name))},
    }


def _version(package: str) -> str | None:
    """A peer that is not there is not measured, and says so itself."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
