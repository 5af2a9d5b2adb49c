"""The result of running streams. It does not import Spark, so importing it is fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from postroom.store.tables.streams import Stream


@dataclass(frozen=True)
class StreamTotals:
    """Totals of a stream since its start."""

    stream: str
    batches: int = 0
    delivered: int = 0  # events that went outside
    stored: int = 0  # events that the room keeps
    refused: int = 0  # dead letters
    batch: int = -1  # the newest one
    version: int = 0  # of the graph that it met
    seconds: float = 0.0  # that it took

    def plus(self, stream: Stream, figures: Mapping[str, int], seconds: float) -> StreamTotals:
        """The totals with one more batch."""
        added = {name: getattr(self, name) + figures.get(name, 0) for name in ("delivered", "stored", "refused")}
        return StreamTotals(
            self.stream, self.batches + 1, **added, batch=stream.batch, version=stream.version, seconds=seconds
        )

    def as_dict(self) -> dict[str, object]:
        """As the command prints it with ``--json``."""
        return {
            "stream": self.stream,
            "batch_count": self.batches,
            "delivered_count": self.delivered,
            "stored_count": self.stored,
            "refused_count": self.refused,
            "batch": self.batch,
            "version": self.version,
        }


StreamProgress = Callable[[StreamTotals], None]
