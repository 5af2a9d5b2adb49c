"""The interface of a definition language: read files, check, load, try out, print.

Each capability has one. ``room/languages.py`` lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from postroom.model.definitions import Loaded, Position
from postroom.model.progress import OnProgress
from postroom.store.kernel.base import Store
from postroom.store.kernel.batch import Admit
from postroom.store.kernel.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The current password, or a function that is called with the name of what it protects.
CurrentPassword = str | Callable[[str], str] | None


@dataclass(frozen=True)
class Terms:
    """How to load definitions, beside what the files say."""

    files: tuple[str, ...]
    principal: str
    broker: str
    #: Whether the load has definitions of one language only. Then they cannot depend on others of the same load.
    alone: bool
    drop: bool = False
    progress: OnProgress | None = None
    current_password: CurrentPassword = None
    change_passwords: bool = False


@dataclass(frozen=True)
class Trial:
    """A dry run over the messages of a room."""

    store: Store
    since: datetime | None
    seconds: float
    admit: Admit
    #: Starts Spark if it does not run yet.
    spark: Callable[[], SparkSession]


class TrialResult(Protocol):
    """What one message would cause."""

    @property
    def key(self) -> str:
        """The message."""

    @property
    def queue(self) -> str:
        """Its queue."""

    def as_dict(self) -> dict[str, Any]:
        """The actions that would be done, for JSON."""


class Load:
    """One load of one language. Methods that are not overridden do nothing."""

    removed: Sequence[str] = ()  # the queues that are gone with it, once it is written

    def write(self, tx: Transaction) -> Loaded | None:
        """Store the definitions, in the transaction of the whole load."""

    def finish(self, tx: Transaction) -> Loaded | None:
        """Store what may refer to other definitions of the load; called when all are written."""

    def committed(self) -> None:
        """Called after the commit."""


class Symbol(NamedTuple):
    """A name that a file defines, for editors."""

    what: str  # queue, rule, arc, type …
    name: str
    position: Position


class Definitions(Protocol):
    """The definitions in files of one language."""

    @property
    def count(self) -> int:
        """How many definitions there are."""

    def symbols(self) -> Iterator[Symbol]:
        """The names that they define, and their places."""

    def check(self, store: Store | None, *, alone: bool) -> None:
        """Raise for a broken rule, checked against the room if there is one; changes nothing."""

    def prepare(self, store: Store, terms: Terms) -> Load:
        """Do the slow work before the transaction, so that other writers do not wait."""

    def tried(self, trial: Trial) -> Iterator[TrialResult]:
        """What the definitions would do with stored messages; changes nothing."""


class Language(Protocol):
    """One language; files belong to it by their suffix."""

    @property
    def suffix(self) -> str:
        """The suffix of its files, with the dot."""

    @property
    def others(self) -> tuple[str, ...]:
        """Suffixes of further files that belong to it."""

    @property
    def defines(self) -> str:
        """What its files define, in a few words."""

    def read(self, files: Sequence[Path]) -> Definitions:
        """Read all files of one load; checks what needs no room."""

    def printed(self, tx: Transaction, version: int | None = None) -> dict[str, bytes]:
        """The definitions in force, or of a version, as files by name. Loading them together gives the same
        definitions."""
