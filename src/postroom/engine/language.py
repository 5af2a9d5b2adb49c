"""A definition language, as a room sees it: reading files, checking them, loading them, trying them out, printing.

Each capability has one for its files. ``room/languages.py`` lists them.
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
    """How definitions are to be loaded, beside what the files say."""

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
    """What one message would lead to."""

    @property
    def key(self) -> str:
        """The message."""

    @property
    def queue(self) -> str:
        """Where it is."""

    def as_dict(self) -> dict[str, Any]:
        """What would be done, for JSON."""


class Load:
    """One load of one language. A method that is not needed does nothing."""

    def write(self, tx: Transaction) -> Loaded | None:
        """Store the definitions, in the one transaction of the whole load."""

    def finish(self, tx: Transaction) -> Loaded | None:
        """Store what may refer to any other definition of the load: they are all written."""

    def committed(self) -> None:
        """Follow up outside of the transaction."""


class Symbol(NamedTuple):
    """A name that a file defines, for editors."""

    what: str  # queue, rule, arc, type …
    name: str
    position: Position


class Definitions(Protocol):
    """What the files of one language say."""

    @property
    def count(self) -> int:
        """How many definitions there are."""

    def symbols(self) -> Iterator[Symbol]:
        """The names that they define, and where."""

    def check(self, store: Store | None, *, alone: bool) -> None:
        """Refuse what breaks a rule, against the room if there is one; changes nothing."""

    def prepare(self, store: Store, terms: Terms) -> Load:
        """Do what takes long before the transaction, so that nobody waits for it."""

    def tried(self, trial: Trial) -> Iterator[TrialResult]:
        """What the definitions would do with the messages there are; changes nothing."""


class Language(Protocol):
    """One language; files belong to it by their suffix."""

    @property
    def suffix(self) -> str:
        """The end of its files' names, with the dot."""

    @property
    def others(self) -> tuple[str, ...]:
        """Ends of names of other files that belong to it."""

    @property
    def defines(self) -> str:
        """What its files define, in a few words."""

    def read(self, files: Sequence[Path]) -> Definitions:
        """Read all files of one load, and check what can be checked without a room."""

    def printed(self, tx: Transaction, version: int | None = None) -> dict[str, bytes]:
        """The definitions in force, or those of a version, as files by name; loaded together, they define the same."""
