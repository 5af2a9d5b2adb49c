"""Versioned definitions of stations: forms, procedures and counters are loaded and read alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from postroom.model.definitions import Definition, Loaded, compared
from postroom.store.kernel.transaction import Transaction

T = TypeVar("T")


class ByVersion(Generic[T]):
    """A cache of what is made of a room's definitions, by version."""

    def __init__(self, make: Callable[[Transaction], T]) -> None:
        self._make = make
        self._known: dict[int, T] = {}

    def now(self, tx: Transaction) -> T:
        version = tx.definitions.version()
        if version not in self._known:
            made = self._make(tx)
            if tx.definitions.changing:
                return made
            self._known = {version: made}
        return self._known[version]


def load(
    tx: Transaction,
    kind: str,
    wanted: Sequence[Definition],
    files: Sequence[str],
    word: str = "",
    begin: Callable[[Definition], object] = lambda _: None,
) -> Loaded:
    """Store definitions that are new or differ, with ``begin`` before each of them; others stay.

    The result lists them with ``word`` before the name.
    """
    present = {definition.name: definition.body for definition in tx.definitions.of_kind(kind)}
    changed = [definition for definition in wanted if present.get(definition.name) != definition.body]
    version = tx.definitions.version()
    if changed:
        for definition in changed:
            begin(definition)
        version = tx.definitions.change(kind, [], changed, {"files": list(files)})
        tx.wake()
    after = {word + definition.name: definition.body for definition in wanted}
    before = {word + name: body for name, body in present.items() if word + name in after}
    return compared(version, before, after)
