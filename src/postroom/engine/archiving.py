"""Archiving the older part of the journal: it is written, read back and compared before a line is removed.

The files are written by Spark under a temporary name and renamed when all are complete. Then one commit notes the
archive and removes its lines. A run that is killed before that commit has archived nothing, and the next one reuses its
folder.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from postroom import faults
from postroom.errors import ArchiveDamaged, ArchiveMissing, JournalDiffers, StoreBusy, StoreUnavailable
from postroom.limits import ARCHIVE_LINES, ARCHIVE_PAGE_BYTES, JOURNAL_PAGE_ROWS
from postroom.model.progress import OnProgress, silent
from postroom.store.files.disk import sync, sync_way
from postroom.store.kernel.archive_folder import (
    MANIFEST,
    ArchiveFolder,
    Digest,
    Manifest,
    Part,
    arrow_table,
    file_digest,
    read_manifest,
)
from postroom.store.kernel.archives import Archive
from postroom.store.kernel.base import Store
from postroom.store.kernel.columns import DEPARTED, JOURNAL
from postroom.store.kernel.owner import is_alive, process_token
from postroom.store.kernel.session import Row
from postroom.store.kernel.transaction import Transaction
from postroom.store.proof import snapshot
from postroom.store.proof.replay import Replay
from postroom.store.proof.verification import beginning, compared, tables

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession

#: Writes a table, ordered by some of its columns, into a new folder as one Parquet file.
Write = Callable[["pyarrow.Table", tuple[str, ...], Path], None]


@dataclass(frozen=True)
class Settled:
    """A prefix of the journal that agrees with the stored messages."""

    first: int
    last: int
    until: int
    lines: int
    state: bytes  # what it comes to
    gone: list[Row]  # messages that were gone by its end, and will not come back


class _Overtaken(Exception):
    """The lines in the range of an archive have changed since it was written."""


def spark_writer(spark: Callable[[], SparkSession]) -> Write:
    def write(table: pyarrow.Table, order: tuple[str, ...], place: Path) -> None:
        frame = spark().createDataFrame(table).coalesce(1).sortWithinPartitions(*order)
        options = {"compression": "zstd", "parquet.block.size": str(ARCHIVE_PAGE_BYTES)}
        frame.write.options(**options).parquet(place.as_uri())

    return write


def archive(store: Store, before: int, folder: Path, write: Write, progress: OnProgress | None = None) -> list[Archive]:
    """Archive what is older than a moment; returns the new archives, none if there was nothing to archive."""
    made: list[Archive] = []
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _clear(folder)
        before = min(before, store.read(lambda tx: tx.now))  # else the line that tells of an archive would be archived
        while (cut := store.read(partial(_cut, before=before, folder=folder))) is not None:
            settled = store.read(partial(_settled, cut=cut))
            made.append(_Archiving(store, folder, write, progress or silent).one(settled))
    except OSError as error:
        raise StoreUnavailable(why=f"{folder}: {error.strerror or error}") from error
    return made


def moved(store: Store, folder: Path) -> list[Archive]:
    """Look in ``folder`` for archives that are not at their known place, and note where they are now."""

    def work(tx: Transaction) -> list[Archive]:
        differences = []
        for record in tx.journal.archives.all():
            place = folder / Path(record.folder).name
            if str(place) == record.folder or not (place / MANIFEST).exists():
                continue
            ArchiveFolder(str(place), record.digest)  # it is the one that was noted
            tx.journal.archives.moved(record, str(place))
            tx.journal.add("archive-moved", detail={"last": record.last, "folder": str(place)})
            differences.append(record._replace(folder=str(place)))
        if not differences:
            raise ArchiveMissing(folder=str(folder), why="no archive of this room is in it that was elsewhere")
        return differences

    return store.transact("archive", work)


def _cut(tx: Transaction, before: int, folder: Path) -> int | None:
    """The last line to archive, None if there is none. The folder of a run that was killed before its commit decides
    it. Lines from the first one of an undecided sphere on stay, because its end reads them."""
    archives = tx.journal.archives
    sphere = archives.unsettled()
    cut = archives.cut(before if sphere is None else min(before, sphere[1]))
    if cut is None:
        return None
    for place in sorted(folder.glob(f"journal-{archives.first():012d}-*")):
        last = read_manifest(place).last
        if last <= cut:
            return last
    return cut


def _settled(tx: Transaction, cut: int) -> Settled:
    """The lines up to ``cut`` and their totals; raises unless the whole journal agrees with the store."""
    replay, state, departed = Replay(beginning(tx), tables(tx)), None, {}
    for line in tx.journal.lines():
        if state is None and line.seq > cut:
            state, departed = snapshot.written(replay.told), _leaving(replay)
        replay.hear(line)
    if state is None:
        state, departed = snapshot.written(replay.told), _leaving(replay)
    differences = compared(tx, replay.told)
    if differences.differences:
        raise JournalDiffers(count=len(differences.differences))
    gone = [row for row in tx.journal.archives.departed_rows(JOURNAL_PAGE_ROWS) if departed.get(row[0]) == row[1]]
    archives = tx.journal.archives
    return Settled(archives.first(), cut, archives.time_at(cut), archives.count(cut), state, gone)


def _leaving(replay: Replay) -> dict[int, int]:
    told = replay.told
    return {key: last for key, last in told.departed.items() if key not in told.handed}


class _Archiving:
    """The making of one archive, from lines to a folder that the store has noted."""

    def __init__(self, store: Store, folder: Path, write: Write, progress: OnProgress) -> None:
        self._store = store
        self._folder = folder
        self._write = write
        self._progress = progress
        self._done = 0

    def one(self, settled: Settled) -> Archive:
        place = self._folder / f"journal-{settled.first:012d}-{settled.last:012d}"
        if place.exists():
            manifest = self._adopted(place, settled)
        else:
            manifest = self._written(place, settled)
        sync_way(self._folder)  # a run that was killed may have left it so
        faults.reach("archive.renamed")
        try:
            return self._store.transact("archive", partial(_noted, place=place, manifest=manifest, settled=settled))
        except _Overtaken:
            shutil.rmtree(place)
            raise StoreBusy(seconds=0, why="journal entries arrived late; archive again") from None

    def _written(self, place: Path, settled: Settled) -> Manifest:
        making = self._folder / f".{place.name}.{process_token().replace('/', '_')}"
        making.mkdir(mode=0o700)
        try:
            manifest = self._files(making, settled)
            _check(making, manifest, self._counted(settled))
            sync(making)
            making.rename(place)
        except BaseException:
            shutil.rmtree(making, ignore_errors=True)
            raise
        return manifest

    def _files(self, making: Path, settled: Settled) -> Manifest:
        digest, parts, counted = Digest(), [], self._counted(settled)
        for rows in self._lines(settled):
            digest.add(rows)
            parts.append(self._part(making, "lines", JOURNAL, rows, ("message", "seq")))
            counted(len(rows))
        for start in range(0, len(settled.gone), ARCHIVE_LINES):
            rows = settled.gone[start : start + ARCHIVE_LINES]
            digest.add(rows)
            parts.append(self._part(making, "departed", DEPARTED, rows, ("key",)))
            counted(len(rows))
        if sum(part.rows for part in parts if part.kind == "lines") != settled.lines:
            raise StoreBusy(seconds=0, why="journal entries arrived late; archive again")
        about = (settled.first, settled.last, settled.until, settled.lines, len(settled.gone), digest.text())
        manifest = Manifest(*about, JOURNAL, tuple(parts))
        _write_synced(making / MANIFEST, manifest.as_json())
        return manifest

    def _lines(self, settled: Settled) -> Iterator[list[Row]]:
        after = 0
        while rows := self._store.read(lambda tx: tx.journal.page(after, settled.last, ARCHIVE_LINES)):  # noqa: B023
            yield rows
            after = rows[-1][0]

    def _part(self, making: Path, kind: str, columns: tuple[str, ...], rows: list[Row], order: tuple[str, ...]) -> Part:
        """Have Spark write one file, and give it its final name."""
        place, name = making / "spark", f"{kind}-{rows[0][0]:012d}.parquet"
        self._write(arrow_table(columns, rows), order, place)
        files = list(place.glob("*.parquet"))
        if len(files) != 1:
            raise ArchiveDamaged(folder=str(making), why=f"Spark wrote {len(files)} files and not one")
        file = files[0].rename(making / name)
        shutil.rmtree(place)
        file.chmod(0o600)
        sync(file)
        keys = [row[columns.index(order[0])] for row in rows]
        known = [key for key in keys if key is not None]
        ends = (rows[0][0], rows[-1][0], min(known, default=0), max(known, default=0))
        faults.reach("archive.part")
        return Part(name, kind, len(rows), *ends, file.stat().st_size, file_digest(file))

    def _adopted(self, place: Path, settled: Settled) -> Manifest:
        """Use a folder that is already there, if it is from a killed run; raises if it is of another room."""
        manifest, digest = read_manifest(place), Digest()
        for rows in self._lines(settled):
            digest.add(rows)
        digest.add(settled.gone)
        if manifest.digest != digest.text() or (manifest.first, manifest.last) != (settled.first, settled.last):
            raise ArchiveDamaged(folder=str(place), why="it has other entries; remove it, or choose another folder")
        _check(place, manifest, self._counted(settled))
        return manifest

    def _counted(self, settled: Settled) -> Callable[[int], None]:
        def count(rows: int) -> None:
            self._done += rows
            self._progress(self._done, 2 * (settled.lines + len(settled.gone)))

        return count


def _check(place: Path, manifest: Manifest, counted: Callable[[int], None]) -> None:
    """Read a whole archive back and compare."""
    shelf, digest, rows = ArchiveFolder(str(place), manifest.digest), Digest(), 0
    for kind in ("lines", "departed"):
        for some in shelf.every(kind):
            digest.add(some)
            rows += len(some)
            counted(len(some))
    if (digest.text(), rows) != (manifest.digest, manifest.lines + manifest.departed):
        raise ArchiveDamaged(folder=str(place), why="what was read back is not what was written")


def _noted(tx: Transaction, place: Path, manifest: Manifest, settled: Settled) -> Archive:
    # Before its lines go: numbers are counted on from the highest that is there.
    about: dict[str, Any] = {"first": manifest.first, "last": manifest.last, "lines": manifest.lines}
    tx.journal.add("archive", detail={**about, "digest": manifest.digest, "folder": str(place)})
    if not tx.journal.archives.record(str(place), manifest, settled.state, [row[0] for row in settled.gone]):
        raise _Overtaken
    return tx.journal.archives.all()[-1]


def _clear(folder: Path) -> None:
    """Remove the temporary files of runs that were killed."""
    for place in folder.glob(".journal-*.*"):
        token = place.name.partition(".journal-")[2].partition(".")[2].replace("_", "/")
        if is_alive(token) is False:
            shutil.rmtree(place)


def _write_synced(file: Path, text: str) -> None:
    file.touch(0o600)
    file.write_text(text)
    sync(file)
