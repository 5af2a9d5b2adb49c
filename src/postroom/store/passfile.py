"""The password file of PostgreSQL, where its own programs look: ``passfile`` of the URL, PGPASSFILE or ~/.pgpass."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from postroom.errors import ArgumentInvalid
from postroom.store.urls import Parted


def add(database: Parted) -> Path:
    """Add the password of a database at the top, because the first matching line counts."""
    from psycopg.conninfo import conninfo_to_dict

    parameters = {name: str(value) for name, value in conninfo_to_dict(database.url).items() if value is not None}
    file = Path(parameters.get("passfile") or os.environ.get("PGPASSFILE") or Path.home() / ".pgpass")
    fields = [parameters.get(name) or "*" for name in ("host", "port", "dbname", "user")]
    line = ":".join(_escaped(field) for field in (*fields, database.secrets["password"]))
    try:
        _prepend(file, line)
    except OSError as error:
        raise ArgumentInvalid(argument="password file", why=f"{file}: {error.strerror or error}") from None
    return file


def _escaped(field: str) -> str:
    """A field of a line, escaped; a line feed in a password is not possible."""
    if "\n" in field or "\r" in field:
        raise ArgumentInvalid(argument="password file", why="it has a line for each password, and this one has two")
    return field if field == "*" else field.replace("\\", "\\\\").replace(":", "\\:")


def _prepend(file: Path, line: str) -> None:
    """Prepend a line atomically. Raises if others can read the file, because PostgreSQL would ignore it."""
    before = b""
    if file.exists():
        if stat.S_IMODE(file.stat().st_mode) & 0o077:
            why = f"others can read {file}, so PostgreSQL ignores it; say chmod 600 {file}"
            raise ArgumentInvalid(argument="password file", why=why)
        before = file.read_bytes()
    entry = line.encode(errors="surrogateescape") + b"\n"
    if entry.strip() in before.splitlines():
        return
    target = Path(os.path.realpath(file))  # a link stays one
    made = target.with_name(f".{target.name}.{os.getpid()}")
    opened = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(opened, "wb") as out:
            out.write(entry + before)
            out.flush()
            os.fsync(out.fileno())
        os.replace(made, target)
    except OSError:
        made.unlink(missing_ok=True)
        raise
