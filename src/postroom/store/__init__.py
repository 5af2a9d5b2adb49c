"""The store. The only package with SQL; everything above it uses ``Store`` and ``Transaction``."""

from __future__ import annotations

import os
import re
from pathlib import Path

from postroom.errors import UrlInvalid
from postroom.model.body import is_text
from postroom.model.moment import Clock, system_clock
from postroom.store.files.rights import remove_files
from postroom.store.kernel.base import Store
from postroom.store.migrations import MIGRATIONS
from postroom.store.urls import public_url

#: What is meant as the address of a database, and would be a file whose name tells the password.
_MISTAKEN = re.compile(r"(^|[/:])postgres(ql)?:|(^|[\s/])password\s*=", re.IGNORECASE)


def absolute(url: str) -> str:
    """The URL of a store, independent of the current folder."""
    path = url.removeprefix("sqlite://").removeprefix("/") if url.startswith("sqlite://") else url
    return path if "://" in path else os.path.abspath(path)


def open_store(
    url: str, *, actor: str, create: bool = True, clock: Clock = system_clock, reads_much: bool = False
) -> Store:
    """Open the store that a room's URL names: a path (or ``sqlite:///path``) or ``postgresql://…``."""
    file = file_of(url)
    if file is None:
        from postroom.store.postgres.store import PostgresStore

        return PostgresStore(url, actor=actor, create=create, clock=clock)
    from postroom.store.sqlite.store import SqliteStore

    return SqliteStore(file, actor=actor, create=create, clock=clock, mapped=reads_much)


def schema_of(url: str) -> tuple[int, int]:
    """The last migration of a room, and the newest known one; opening would apply those in between."""
    file = file_of(url)
    if file is None:
        from postroom.store.postgres import store as postgres

        return postgres.schema_of(url), len(MIGRATIONS)
    from postroom.store.sqlite import connection

    return connection.schema_of(file), len(MIGRATIONS)


def shown(url: str) -> str:
    """The URL of a store without its password."""
    return public_url(url) if file_of(url) is None else url


def file_of(url: str) -> Path | None:
    """The file of a room on SQLite; None for one on PostgreSQL."""
    scheme, separator, rest = url.partition("://")
    if separator and scheme in ("postgresql", "postgres"):
        if not is_text(url):
            raise UrlInvalid(url=ascii(public_url(url)), why="it is not text")
        return None
    if separator and scheme != "sqlite":
        raise UrlInvalid(url=f"{scheme}://…", why=f"{scheme!r} is not a kind of store")
    if not separator and _MISTAKEN.search(url):
        raise UrlInvalid(url="…", why="it looks like a database, which is named as postgresql://USER@HOST/NAME")
    path = rest.removeprefix("/") if separator else url
    if not path or path == ":memory:" or not is_text(path):
        raise UrlInvalid(url=ascii(url), why="a room lives in a file with a name that is text")
    return Path(path).absolute()


def exists(url: str) -> bool:
    """Whether something exists at a URL; always True for a database, which only its server knows."""
    file = file_of(url)
    return file is None or file.exists()


def discard(url: str) -> None:
    """Remove the files of a closed store."""
    file = file_of(url)
    assert file is not None
    remove_files(file)
