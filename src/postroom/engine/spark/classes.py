"""The file in which Java keeps Spark's classes: a session and its first job then take half of the processor time.

``prepare`` makes it; without it everything works, and starts more slowly.
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
    """What Java is told, so that it uses the file; nothing if there is none, or another user can change it."""
    told = os.environ.get(OPTIONS, "")
    file = place()
    if "Archive" in told or not is_private(file.parent, file):
        return told
    return f"-Xlog:disable -Xlog:all=error:stderr {option('SharedArchiveFile', file)} {told}".strip()


def option(name: str, file: Path) -> str:
    """A word for Java that names a file, in whose name there may be spaces."""
    return f'"-XX:{name}={file}"'
