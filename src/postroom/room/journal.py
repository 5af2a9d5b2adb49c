"""What happened to messages, where they are, and what keeps them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Literal, overload

from postroom.errors import ArgumentInvalid, StoreCorrupt
from postroom.limits import DIFFERENCES_MAX, INT_MAX, JOURNAL_ROWS_MAX, PAGE_ROWS
from postroom.model.message import Message
from postroom.model.moment import to_microseconds
from postroom.model.progress import OnProgress
from postroom.model.types import FieldValue
from postroom.model.views import record
from postroom.room.parts import RoomPart, spark_session
from postroom.room.paths import path_of
from postroom.store.kernel.archives import Archive
from postroom.store.kernel.journal import Event
from postroom.store.proof.mending import Mended, mend
from postroom.store.proof.verification import Difference, Verified, damaged, verified
from postroom.store.tables.types import find_type

if TYPE_CHECKING:
    from postroom.exchange.xes import Case, EventLog
    from postroom.rules.retention import Retained
    from postroom.stations.mail.editions import Valued
    from postroom.stations.mail.story import Story

_MICROSECOND = timedelta(microseconds=1)


class Entries(list[Event]):
    """A page of the journal, and the number after which the next one begins; None at the end."""

    def __init__(self, read: list[Event], limit: int) -> None:
        super().__init__(read[:limit])
        self.next = str(self[-1].seq) if len(read) > limit else None


class RoomJournal(RoomPart):
    """Messages by key, their history, the slices that keep them, and the journal."""

    def show(self, key: str, edition: int | None = None) -> Message:
        """One message, wherever it is; with ``edition`` an earlier edition, where 1 is as it was created."""
        from postroom.stations.mail import editions, whereabouts

        if edition is not None:
            return editions.show(self._parts.network, key, edition)
        return whereabouts.show(self._parts.network, key)

    def fields(self, message: Message) -> dict[str, FieldValue]:
        """The typed fields of a message, whatever its format."""
        name = message.type
        if name is None:
            raise ArgumentInvalid(argument="message", why=f"{message.key} has no type")
        return record(message.body, message.format, self._parts.store.read(lambda tx: find_type(tx, name)))

    @overload
    def trace(self, key: str, *, causes: Literal[False] = False) -> list[Event]: ...
    @overload
    def trace(self, key: str, *, causes: Literal[True]) -> Story: ...
    def trace(self, key: str, *, causes: bool = False) -> list[Event] | Story:
        """The history of a message, oldest first, even after it was deleted.

        With ``causes``, the same for all messages that caused it and that it caused, as a tree.
        """
        from postroom.stations.mail import whereabouts
        from postroom.stations.mail.story import story

        return story(self._parts.network, key) if causes else whereabouts.trace(self._parts.network, key)

    def trace_values(self, key: str) -> list[Valued]:
        """The history with the values that each event has written; every node must respond."""
        from postroom.stations.mail import editions

        return editions.trace(self._parts.network, key)

    def locate(self, key: str) -> str | None:
        """The queue, station or mailbox a message is in, from its last journal entry; None if it was discarded."""
        from postroom.stations.mail import whereabouts

        return whereabouts.locate(self._parts.network, key)

    def last(self, last: int = 20) -> list[Event]:
        """The newest entries of the journal, oldest of them first."""
        if not 0 < last <= JOURNAL_ROWS_MAX:
            raise ArgumentInvalid(argument="last", why=f"1 to {JOURNAL_ROWS_MAX}")
        return self._parts.store.read(lambda tx: list(tx.journal.tail(last)))

    def after(self, seq: int, *, limit: int = PAGE_ROWS) -> list[Event]:
        """The next entries after a number, a page at a time."""
        if not 0 < limit <= JOURNAL_ROWS_MAX:
            raise ArgumentInvalid(argument="limit", why=f"1 to {JOURNAL_ROWS_MAX}")
        last = min(max(seq, 0), INT_MAX)
        return Entries(self._parts.store.read(lambda tx: tx.journal.after(last, limit + 1)), limit)

    def why(self, key: str) -> Retained:
        """Which slices keep a message, and whether it can be deleted."""
        from postroom.rules import retention

        return retention.why(self._parts.store, key)

    def slice(self, slicing: str, key: str) -> list[Message]:
        """The messages of a slice's current lifetime, in arrival order."""
        from postroom.rules import retention

        return retention.slice(self._parts.store, self._parts.programs, slicing, key)

    def mend(self) -> Mended:
        """Repair what can be repaired: indexes from their tables, places and counts from the journal.

        Damaged messages are set aside. What the result lists as ``left`` needs a backup.
        """
        mended = self._parts.store.transact("mend", mend)
        return replace(mended, left=self.verify().differences)

    def verify(self, *, archives: bool = False) -> Verified:
        """Check that the room is undamaged and matches its journal.

        The database checks its own files; messages, definitions and journal entries are compared with their hashes;
        the journal is replayed from its beginning and compared with what is stored. The result of the archived part is
        stored; with ``archives`` that part is read and replayed, too.
        """
        differences: tuple[Difference, ...] = ()
        try:
            differences = self._parts.store.read(damaged)
            told = self._parts.store.read(partial(verified, archives=archives))
        except StoreCorrupt as damage:  # what cannot be read at all is named, too
            return Verified(0, 0, 0, 0, (*differences, Difference("the store", None, str(damage))))
        return replace(told, differences=(*differences, *told.differences)[:DIFFERENCES_MAX])

    def archive(
        self,
        before: datetime | timedelta,
        folder: str | os.PathLike[str],
        *,
        progress: OnProgress | None = None,
        master: str = "local[*]",
        conf: Mapping[str, str] | None = None,
    ) -> list[Archive]:
        """Move journal entries before a time, or older than an age, into a folder, as Parquet by Spark.

        They are read back and compared before they are removed here. ``trace`` and ``locate`` work as before.
        Returns the new archives: none if no entry is so old.
        """
        if not isinstance(before, (datetime, timedelta)):
            raise ArgumentInvalid(argument="before", why="give a datetime, or a timedelta before now")
        from postroom.engine import archiving

        store = self._parts.store
        if isinstance(before, timedelta):
            moment = store.session.clock() - before // _MICROSECOND
        else:
            moment = to_microseconds(before)
        write = archiving.spark_writer(partial(spark_session, master, conf))
        return archiving.archive(store, moment, path_of(folder, "folder").absolute(), write, progress)

    def export_xes(
        self,
        file: str | os.PathLike[str],
        *,
        case: str | Case = "message",
        replace: bool = False,
        progress: OnProgress | None = None,
    ) -> EventLog:
        """Write what happened to all messages as an event log in XES, for process mining.

        A case is one message, or with ``case="cause"`` a message and all its effects. The file is compressed if its
        name ends in ``.gz``. The log covers this room's own journal with its archives.
        """
        from postroom.exchange.xes import export_xes

        return export_xes(self._parts.store, path_of(file), case, replace=replace, progress=progress)

    def export_ocel(
        self, file: str | os.PathLike[str], *, replace: bool = False, progress: OnProgress | None = None
    ) -> EventLog:
        """Like ``export_xes``, as an object-centric event log in OCEL 2.0, whose objects are the messages: JSON, or
        ``.xml``."""
        from postroom.exchange.ocel import export_ocel

        return export_ocel(self._parts.store, path_of(file), replace=replace, progress=progress)

    def archives(self) -> list[Archive]:
        """The archives of the journal, oldest first."""
        return self._parts.store.read(lambda tx: tx.journal.archives.all())

    def archive_moved(self, folder: str | os.PathLike[str]) -> list[Archive]:
        """Tell the room in which folder moved archives are now."""
        from postroom.engine import archiving

        return archiving.moved(self._parts.store, path_of(folder, "folder").absolute())
