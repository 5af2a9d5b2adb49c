"""An archive on disk: a folder of Parquet files and a manifest with their contents and digests.

Files have the journal lines of a range, sorted by message, so the history of one message takes few pages. Data is
checked against the manifest, and the manifest against the store.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from postroom.errors import ArchiveDamaged, ArchiveMissing
from postroom.store.kernel.columns import DEPARTED, JOURNAL
from postroom.store.kernel.session import Row

if TYPE_CHECKING:
    import pyarrow

MANIFEST = "manifest.json"
_FORMAT = 1
_TEXTS = ("verb", "actor", "detail", "type")  # all other columns are numbers, or bytes if their name says so


class Part(NamedTuple):
    """One file of an archive."""

    name: str
    kind: str  # lines or departed
    rows: int
    first: int  # of the numbers of its lines, or of its keys
    last: int
    low: int  # of its messages; 0 if it has none
    high: int
    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The content of an archive."""

    first: int
    last: int
    until: int  # the time of its newest line
    lines: int
    departed: int
    digest: str  # of all rows, in their order
    columns: tuple[str, ...]
    parts: tuple[Part, ...]

    def as_json(self) -> str:
        shape = {**vars(self), "format": _FORMAT, "parts": [part._asdict() for part in self.parts]}
        return json.dumps(shape, indent=1) + "\n"


def arrow_table(columns: Sequence[str], rows: Sequence[Row]) -> pyarrow.Table:
    """Rows of a store as an Arrow table."""
    import pyarrow

    types = [_type(name) for name in columns]
    values = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    arrays = [pyarrow.array(some, type) for some, type in zip(values, types, strict=True)]
    return pyarrow.table(arrays, names=list(columns))


def _type(column: str) -> Any:
    import pyarrow

    if column in _TEXTS:
        return pyarrow.string()
    return pyarrow.binary() if column in ("digest", "hash") else pyarrow.int64()


class Digest:
    """A digest of rows."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, rows: Sequence[Row]) -> None:
        """Add rows; the batch size does not matter."""
        text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"), default=bytes.hex)
        self._hash.update(text.encode()[1:-1])
        self._hash.update(b"," if rows else b"")

    def text(self) -> str:
        return self._hash.hexdigest()


def read_manifest(folder: Path) -> Manifest:
    """Read a folder's manifest; raises if it has no archive."""
    try:
        shape = json.loads((folder / MANIFEST).read_text())
        parts = tuple(Part(**part) for part in shape.pop("parts"))
        if shape.pop("format") != _FORMAT:
            raise ArchiveDamaged(folder=str(folder), why="its format is of a newer version")
        return Manifest(**{**shape, "columns": tuple(shape["columns"])}, parts=parts)
    except OSError as error:
        raise ArchiveMissing(folder=str(folder), why=error.strerror or str(error)) from error
    except (ValueError, TypeError, KeyError) as error:
        raise ArchiveDamaged(folder=str(folder), why=f"its manifest cannot be read: {error}") from error


def file_digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class ArchiveFolder:
    """An archive that the store has recorded with a digest."""

    def __init__(self, folder: str, digest: str) -> None:
        self.folder = Path(folder)
        self.manifest = _manifest(folder, digest)

    def lines_of(self, message: int) -> list[Row]:
        """The lines of one message, oldest first."""
        return self.lines(self._select("lines", lambda part: part.low <= message <= part.high, "message", message))

    def lines(self, rows: Iterable[Row]) -> list[Row]:
        """Rows of this archive with the current columns: older ones have fewer."""
        columns = self.manifest.columns
        if columns == JOURNAL:
            return list(rows)
        places = [columns.index(name) if name in columns else None for name in JOURNAL]
        return [tuple(None if place is None else row[place] for place in places) for row in rows]

    def departed(self, message: int) -> Row | None:
        """The last line, cause and type of a message that was deleted before the archive; None if unknown."""
        rows = self._select("departed", lambda part: part.low <= message <= part.high, "key", message)
        return rows[0][1:] if rows else None

    def departed_among(self, messages: set[int]) -> dict[int, Row]:
        """Like ``departed``, for many messages."""
        low, high = min(messages), max(messages)
        rows = self._select("departed", lambda part: part.low <= high and part.high >= low, "key", sorted(messages))
        return {row[0]: row[1:] for row in rows}

    def effects(self, cause: int) -> list[int]:
        """Messages deleted before the archive that were caused by one."""
        return sorted(row[0] for row in self._select("departed", lambda _: True, "cause", cause))

    def has_arrivals(self, queue: int, after: int) -> bool:
        """Whether a message arrived in a queue from elsewhere after a journal number."""
        rows = self.lines(self._select("lines", lambda part: part.last > after, "target", queue))
        source, message = JOURNAL.index("source"), JOURNAL.index("message")
        return any(row[0] > after and row[message] is not None and row[source] != queue for row in rows)

    def every(self, kind: str) -> Iterator[list[Row]]:
        """All rows in order, file by file; each file is checked first."""
        for part in self.manifest.parts:
            if part.kind == kind:
                file = self.folder / part.name
                if self._guarded(partial(file_digest, file)) != part.sha256:
                    raise ArchiveDamaged(folder=str(self.folder), why=f"{part.name} was changed")
                yield rows_of(self._guarded(partial(_read, file)), self._columns(kind))

    def _columns(self, kind: str) -> tuple[str, ...]:
        return self.manifest.columns if kind == "lines" else DEPARTED

    def _select(self, kind: str, fits: Callable[[Part], bool], column: str, value: int | list[int]) -> list[Row]:
        rows: list[Row] = []
        wanted = [(column, "in" if isinstance(value, list) else "=", value)]
        for part in self.manifest.parts:
            if part.kind == kind and fits(part):
                table = self._guarded(partial(_read, self.folder / part.name, wanted))
                rows += rows_of(table, self._columns(kind))
        return rows

    def _guarded(self, read: Callable[[], Any]) -> Any:
        import pyarrow

        try:
            return read()
        except OSError as error:
            if isinstance(error, FileNotFoundError):
                raise ArchiveMissing(folder=str(self.folder), why=str(error)) from error
            raise ArchiveDamaged(folder=str(self.folder), why=str(error)) from error
        except pyarrow.ArrowException as error:
            raise ArchiveDamaged(folder=str(self.folder), why=str(error)) from error


@lru_cache(maxsize=64)
def _noted(folder: str, digest: str, _changed: int) -> Manifest:
    manifest = read_manifest(Path(folder))
    if manifest.digest != digest:
        raise ArchiveDamaged(folder=folder, why="it is not the archive that the room has noted")
    return manifest


def _manifest(folder: str, digest: str) -> Manifest:
    try:
        changed = (Path(folder) / MANIFEST).stat().st_mtime_ns
    except OSError as error:
        raise ArchiveMissing(folder=folder, why=error.strerror or str(error)) from error
    return _noted(folder, digest, changed)


def _read(file: Path, filters: Any = None) -> pyarrow.Table:
    import pyarrow.parquet

    return pyarrow.parquet.read_table(file, filters=filters, partitioning=None, use_threads=False)


def rows_of(table: pyarrow.Table, columns: Sequence[str]) -> list[Row]:
    """Rows in store format, ordered by the first column."""
    values = [table.column(name).to_pylist() for name in columns]
    return sorted(zip(*values, strict=True), key=lambda row: row[0])
