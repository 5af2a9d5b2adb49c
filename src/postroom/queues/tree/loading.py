"""Queue descriptions (.qdl) as a language of a room."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from postroom.engine.language import Load, Symbol, Terms, Trial, TrialResult
from postroom.model.paths import printable, text_of
from postroom.queues.tree import checks, description, hierarchy
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction


class QueueLanguage:
    suffix = ".qdl"
    others = ()
    defines = "queue descriptions"

    def read(self, files: Sequence[Path]) -> Description:
        entries = tuple(entry for file in files for entry in description.parse(text_of(file), printable(file)))
        if entries:
            checks.check(entries)
        return Description(entries)

    def printed(self, tx: Transaction, version: int | None = None) -> dict[str, bytes]:
        text = hierarchy.description(tx, version)
        return {f"queues{self.suffix}": text.encode()} if text else {}


@dataclass(frozen=True)
class Description:
    """The tree of queues that the files of a load describe together."""

    entries: tuple[description.Entry, ...]

    @property
    def count(self) -> int:
        return len(self.entries)

    def symbols(self) -> Iterator[Symbol]:
        return (Symbol("queue", entry.name, entry.position) for entry in self.entries)

    def check(self, store: Store | None, *, alone: bool) -> None:
        """Nothing to do: all rules are checked when it is parsed."""

    def prepare(self, store: Store, terms: Terms) -> Load:
        return hierarchy.TreeLoad(store, self.entries, terms)

    def tried(self, trial: Trial) -> Iterator[TrialResult]:
        """Yields nothing: a description does nothing with messages."""
        return iter(())
