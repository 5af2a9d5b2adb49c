"""Sorts more records than memory holds: runs of them are sorted, written out and merged."""

from __future__ import annotations

import heapq
import json
import tempfile
from collections.abc import Iterator
from typing import IO, Any

from postroom.limits import SORT_FILES_MAX, SORT_ROWS

#: The first values are what it is sorted by; a record is JSON on its way through a file.
Record = tuple[Any, ...]


class Sorter:
    """Takes records in any order and returns them sorted. A context manager, because it has temporary files."""

    def __init__(self) -> None:
        self._rows: list[Record] = []
        self._runs: list[IO[str]] = []

    def __enter__(self) -> Sorter:
        return self

    def __exit__(self, *_: object) -> None:
        for run in self._runs:
            run.close()

    def add(self, record: Record) -> None:
        self._rows.append(record)
        if len(self._rows) >= SORT_ROWS:
            self._spill(iter(sorted(self._rows)))
            self._rows.clear()
            if len(self._runs) >= SORT_FILES_MAX:
                self._merge_runs()

    def sorted(self) -> Iterator[Record]:
        """All records in order; may be called once."""
        self._rows.sort()
        return heapq.merge(*map(_read, self._runs), self._rows)

    def _spill(self, rows: Iterator[Record]) -> None:
        run = tempfile.TemporaryFile("w+", encoding="utf-8", errors="surrogatepass", newline="\n")  # noqa: SIM115
        self._runs.append(run)
        for row in rows:
            run.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")))
            run.write("\n")
        run.seek(0)

    def _merge_runs(self) -> None:
        """Merge many files into one, to limit the number of open files."""
        before, self._runs = self._runs, []
        try:
            self._spill(heapq.merge(*map(_read, before)))
        finally:
            for run in before:
                run.close()


def _read(run: IO[str]) -> Iterator[Record]:
    for line in run:
        yield tuple(json.loads(line))
