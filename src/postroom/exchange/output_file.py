"""A file that appears complete or not at all: written under a temporary name, then renamed."""

from __future__ import annotations

import gzip
import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from postroom.errors import ArgumentInvalid, FileUnwritable
from postroom.store.files.overwriting import is_database, obstacle


def refuse_existing(file: Path, replace: bool) -> None:
    """Raise if a file exists, before any work is done."""
    if file.exists() and not replace:
        raise ArgumentInvalid(argument="file", why=f"{file} exists; choose another name, or replace it with --replace")
    if not file.parent.is_dir():
        raise FileUnwritable(file=str(file), why=f"the directory {file.parent} does not exist")
    refuse_room(file)


def refuse_room(file: Path) -> None:
    """Raise if writing there would destroy a room, or another database."""
    why = obstacle(file) or ("it is a database" if file.is_file() and is_database(file) else "")
    if why:
        raise FileUnwritable(file=str(file), why=f"{why}; choose another name")


@contextmanager
def written_whole(file: Path) -> Iterator[IO[str]]:
    """Open a text file for ``making``; compressed if its name ends in ``.gz``."""
    with making(file) as part, _stream(part, compressed=file.suffix == ".gz") as stream:
        yield stream


@contextmanager
def making(file: Path) -> Iterator[Path]:
    """A temporary path beside the file; it is renamed to the file when the block ends without an error."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".part", dir=file.parent)
        os.close(handle)
        os.chmod(name, 0o666 & ~_umask())  # as any other file that a program writes
    except OSError as error:
        raise FileUnwritable(file=str(file), why=error.strerror or str(error)) from error
    part = Path(name)
    try:
        yield part
        with part.open("rb") as done:
            os.fsync(done.fileno())
        part.replace(file)
    except OSError as error:
        raise FileUnwritable(file=str(file), why=error.strerror or str(error)) from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _stream(part: Path, compressed: bool) -> Iterator[IO[str]]:
    if not compressed:
        with part.open("w", encoding="utf-8", newline="\n") as plain:
            yield plain
        return
    # Without a time in it, the same content is the same file.
    with (
        part.open("wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as text,
    ):
        yield text


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
