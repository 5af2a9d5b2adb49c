"""The machine and the versions: figures without them cannot be compared with anyone else's."""

from __future__ import annotations

import os
import platform
import re
import sqlite3
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import apsw

from postroom.engine.spark.java import java_home
from postroom.errors import JavaMissing

#: Packages whose speed is part of a figure: ours, and the peers'.
_PACKAGES = (
    *("pyspark", "pyarrow", "saxonche", "psycopg"),
    *("persist-queue", "litequeue", "duckdb", "clipspy", "dbos"),
    *("awa-pg", "huey", "pgqueuer", "procrastinate", "uvicorn"),
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
        "java": _java(),
        **{name: each for name in _PACKAGES if (each := _version(name))},
    }


def _java() -> str:
    """The one that Spark is run by."""
    try:
        told = subprocess.run([f"{java_home()}/bin/java", "-version"], capture_output=True, text=True, timeout=60)
    except (JavaMissing, OSError, subprocess.TimeoutExpired) as error:
        return f"unknown ({type(error).__name__})"
    found = re.search(r'"(.+?)"', told.stderr)
    return found[1] if found else "unknown"


def _version(package: str) -> str | None:
    """A peer that is not there is not measured, and says so itself."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def processor_seconds(pid: int) -> float:
    """What a process has used so far."""
    said = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(said[11]) + int(said[12])) / os.sysconf("SC_CLK_TCK")
