"""Loading definition files: every language by its suffix, all files of one call or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from postroom.engine.language import Definitions, Language, Load, Symbol, Terms, Trial, TrialResult
from postroom.errors import ArgumentInvalid, LanguageUnknown
from postroom.limits import COLLECTION_BYTES_MAX
from postroom.model.definitions import Loaded
from postroom.model.paths import printable, text_of
from postroom.room.languages import languages
from postroom.room.paths import File
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction

if TYPE_CHECKING:
    from postroom.room.reach import Loading

    Reach = Callable[[Transaction], Loading | None]


@dataclass(frozen=True)
class Sources:
    """The parsed definition files, by language in loading order."""

    files: tuple[str, ...]
    parts: tuple[Definitions, ...]

    @property
    def alone(self) -> bool:
        return len(self.parts) == 1

    @property
    def count(self) -> int:
        return sum(part.count for part in self.parts)

    def symbols(self) -> list[Symbol]:
        """The names that the files define, and their places."""
        return [symbol for part in self.parts for symbol in part.symbols()]

    def check(self, store: Store | None) -> None:
        for part in self.parts:
            part.check(store, alone=self.alone)

    def load(
        self,
        store: Store,
        terms: Terms,
        reach: Reach | None = None,
        agree: Callable[[Loaded], None] | None = None,
    ) -> Loaded:
        """Load everything in one transaction.

        ``reach`` gives the check of the rights of whoever loads; ``agree`` may refuse what is about to change.
        """
        loads = [part.prepare(store, terms) for part in self.parts]

        def work(tx: Transaction) -> Loaded:
            tx.session.take_time()  # programs are compiled and indexes are filled here
            tx.definitions.lock()
            guard = None if reach is None else reach(tx)
            if guard is not None:
                guard.begin(tx)
            loaded = _written(tx, loads)
            if any(load.removed for load in loads):
                check_rules(tx)
            if guard is not None:
                guard.check(tx)
            if agree is not None:
                agree(loaded)
            return loaded

        loaded = store.transact("load", work)
        for load in loads:
            load.committed()
        return loaded

    def tried(self, trial: Trial) -> Iterator[TrialResult]:
        for part in self.parts:
            yield from part.tried(trial)


def check_rules(tx: Transaction) -> None:
    """Raise if a rule names a queue that has been removed."""
    from postroom.rules.catalog import check_queues

    check_queues(tx)


def _written(tx: Transaction, loads: Sequence[Load]) -> Loaded:
    done = [load.write(tx) for load in loads] + [load.finish(tx) for load in loads]
    return reduce(Loaded.then, (loaded for loaded in done if loaded is not None))


def read(files: Sequence[File], known: Sequence[Language] | None = None) -> Sources:
    """Read definition files and check what can be checked without a room."""
    if not files:
        raise ArgumentInvalid(argument="files", why="give at least one file")
    known = languages() if known is None else known
    paths = [Path(file) for file in files]
    suffixes = {suffix for language in known for suffix in (language.suffix, *language.others)}
    for path in paths:
        if path.suffix not in suffixes:
            listing = ", ".join(f"{language.suffix} ({language.defines})" for language in known)
            raise LanguageUnknown(file=printable(path), suffix=path.suffix, known=listing)
    of_each = [
        (language, [path for path in paths if path.suffix in (language.suffix, *language.others)]) for language in known
    ]
    parts = tuple(language.read(some) for language, some in of_each if some)
    return Sources(tuple(printable(path.name) for path in paths), parts)


def documents(files: Sequence[File]) -> dict[str, str]:
    """The texts of a collection's files, by their names."""
    if not files:
        raise ArgumentInvalid(argument="files", why="give at least one file")
    texts: dict[str, str] = {}
    for file in map(Path, files):
        name = printable(file.name)
        # Two files of one name are two documents.
        texts[printable(file) if name in texts else name] = text_of(file, COLLECTION_BYTES_MAX)
    return texts
