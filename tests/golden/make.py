"""Makes the golden rooms: one for each version of the schema, by the last commit that had it.

``python tests/golden/make.py`` needs the repository with its history, and the packages of the present version. Rooms
that are there are kept: what an old version wrote does not change.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
#: By the number of the last migration: the last commit without the next one.
COMMITS = {
    1: "8676395",
    2: "3af4fe1",
    3: "8c1cc30",
    4: "418e987",
    5: "69cf5bd",
    6: "8ecec27",
    7: "2fd966a",
    8: "ac4abc5",
    9: "2f586976",
    10: "083210d1",
    11: "38704a7e",
    12: "9ef3f0ac",
    13: "5393d9bb",
    27: "c285750",
    28: "be16a582",
    29: "0ceb916a",
}
#: These rooms were made while their versions were built; the commits were folded into one, and cannot make them again.
KEPT = (14, 15, 16, 17, 18, 22, 23, 24, 25)


def file_of(schema: int) -> Path:
    return HERE / f"schema-{schema}.db.gz"


#: Up to which schema rooms were made by the names of verbs that there were before a room had parts.
BEFORE_PARTS = 12


def life(schema: int, folder: Path) -> Path:
    """The program that makes a room, in the words of its version."""
    if schema > BEFORE_PARTS:
        return HERE / "life.py"
    show = ["git", "show", f"{COMMITS[BEFORE_PARTS]}:tests/golden/life.py"]
    old = folder / "life.py"
    old.write_text(subprocess.run(show, check=True, cwd=HERE, capture_output=True, text=True).stdout)
    return old


def make(schema: int, commit: str, folder: Path) -> None:
    code, room = folder / f"code-{schema}", folder / f"room-{schema}.db"
    subprocess.run(["git", "worktree", "add", "--detach", "--quiet", code, commit], check=True, cwd=HERE)
    try:
        words = [sys.executable, str(life(schema, folder)), str(schema), str(room)]
        subprocess.run(words, check=True, env={**os.environ, "PYTHONPATH": str(code / "src")}, cwd=folder)
        file_of(schema).write_bytes(gzip.compress(room.read_bytes(), 9, mtime=0))
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", code], check=True, cwd=HERE)


if __name__ == "__main__":
    with TemporaryDirectory() as name:
        for number, revision in COMMITS.items():
            if not file_of(number).exists():
                make(number, revision, Path(name))
                print(f"schema {number}: {file_of(number).stat().st_size} bytes")
