"""External streams: the checkpoint and the newest batch of each. A batch is pinned, then committed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from postroom.store.kernel.journal import JournaledTable
from postroom.store.kernel.session import Row

_ALL = "SELECT name, sources, checkpoint, batch, version, done FROM streams ORDER BY name"
_PUT = """
INSERT INTO streams (name, sources, checkpoint, batch, version, done) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET sources = excluded.sources, checkpoint = excluded.checkpoint,
    batch = excluded.batch, version = excluded.version, done = excluded.done
"""
_REMOVE = "DELETE FROM streams WHERE name = ?"


class Stream(NamedTuple):
    """A stream with its newest batch; -1 before the first."""

    name: str
    sources: tuple[str, ...]
    checkpoint: str  # what its folder says, too: an offset and a state are of no use without each other
    batch: int = -1
    version: int = 0  # of the graph that the batch meets
    done: bool = True


class Streams(JournaledTable):
    def all(self) -> list[Stream]:
        return [_stream(row) for row in self._session.rows(_ALL)]

    def find(self, name: str) -> Stream | None:
        return next((stream for stream in self.all() if stream.name == name), None)

    def put(self, stream: Stream) -> None:
        name, sources, checkpoint, batch, version, done = stream
        self._session.run(_PUT, (name, json.dumps(sources), checkpoint, batch, version, int(done)))

    def finish(self, stream: Stream, figures: Mapping[str, Any]) -> None:
        """Commit a batch, with its figures."""
        self.put(stream._replace(done=True))
        about = {"stream": stream.name, "batch": stream.batch, "version": stream.version}
        self._journal.add("stream", detail={**about, **figures})

    def remove(self, name: str) -> None:
        self._session.run(_REMOVE, (name,))
        self._journal.add("stream", detail={"stream": name, "removed": True})


def _stream(row: Row) -> Stream:
    name, sources, checkpoint, batch, version, done = row
    return Stream(name, tuple(json.loads(sources)), checkpoint, int(batch), int(version), bool(done))
