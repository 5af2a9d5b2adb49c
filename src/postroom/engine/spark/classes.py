"""Java's class data archive for Spark's classes: with it, a session and its first job take half the processor time.

``prepare`` makes it; it is optional.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pyspark

from postroom.engine.spark.java import is_private, java_identity, usual_cache

#: The environment's words for Spark's Java.
OPTIONS = "SPARK_SUBMIT_OPTS"


def place() -> Path:
    """Where the file of this Java and this Spark is, or would be."""
    known = f"{java_identity()} {pyspark.__file__} {pyspark.__version__}".encode()
    return usual_cache() / f"spark-{hashlib.sha256(known).hexdigest()[:16]}.jsa"


def options() -> str:
    """Java options to use the file; empty if there is none, or if another user can change it."""
    told = os.environ.get(OPTIONS, "")
    file = place()
    if "Archive" in told or not is_private(file.parent, file):
        return told
    return f"-Xlog:disable -Xlog:all=error:stderr {option('SharedArchiveFile', file)} {told}".strip()


def option(name: str, file: Path) -> str:
    """A Java option that names a file; the name may have spaces."""
    return f'"-XX:{name}={file}"'
