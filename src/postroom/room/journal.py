"""What happened to messages, where they are, and what keeps them."""

from __future__ import annotations

from typing import Literal, overload

from postroom.errors import ArgumentInvalid
from postroom.limits import JOURNAL_ROWS_MAX
from postroom.model.message import Message
from postroom.model.types import FieldValue
from postroom.model.views import record
from postroom.room.parts import Parts
from postroom.rules import retention
from postroom.stations import editions, whereabouts
from postroom.stations.editions import Valued
from postroom.stations.story import Story, story
from postroom.store.journal import Event
from postroom.store.types import find_type
from postroom.store.verification import Verified, verified


class JournalFace(Parts):
    """Finding a message by its key, its story, and the slices that hold it."""

    def show(self, key: str, edition: int | None = None) -> Message:
        """One message, wherever it is; with ``edition`` as it was: the first is how it was created."""
        if edition is not None:
            return editions.show(self._network, key, edition)
        return whereabouts.show(self._network, key)

    def fields(self, message: Message) -> dict[str, FieldValue]:
        """What a typed message says, field by field, whatever it is written in."""
        name = message.type
        if name is None:
            raise ArgumentInvalid(argument="message", why=f"{message.key} has no type")
        return record(message.body, message.format, self.store.read(lambda tx: find_type(tx, name)))

    @overload
    def trace(self, key: str, *, causes: Literal[False] = False) -> list[Event]: ...
    @overload
    def trace(self, key: str, *, causes: Literal[True]) -> Story: ...
    def trace(self, key: str, *, causes: bool = False) -> list[Event] | Story:
        """Everything that happened to a message, oldest first; also after it is gone.

        With ``causes``, the same of all messages that it came from and that it led to, as a tree.
        """
        return story(self._network, key) if causes else whereabouts.trace(self._network, key)

    def trace_values(self, key: str) -> list[Valued]:
        """The same with what each event has written; every node must answer."""
        return editions.trace(self._network, key)

    def locate(self, key: str) -> str | None:
        """The queue, station or mailbox a message is in, from its last journal entry; None if it was discarded."""
        return whereabouts.locate(self._network, key)

    def journal(self, last: int = 20) -> list[Event]:
        """The newest entries of the journal, oldest of them first."""
        if not 0 < last <= JOURNAL_ROWS_MAX:
            raise ArgumentInvalid(argument="last", why=f"1 to {JOURNAL_ROWS_MAX}")
        return self.store.read(lambda tx: list(tx.journal.tail(last)))

    def journal_after(self, seq: int) -> list[Event]:
        """The next entries after a number, a page at a time."""
        return self.store.read(lambda tx: tx.journal.after(seq))

    def why(self, key: str) -> retention.Held:
        """Which slices hold a message, and whether it may go."""
        return retention.why(self.store, key)

    def slice(self, slicing: str, key: str) -> list[Message]:
        """The messages of a slice's current lifetime, in the order of their arrival."""
        return retention.slice(self.store, self._programs, slicing, key)

    def verify(self) -> Verified:
        """Replay the journal from its beginning, and compare what it comes to with what is stored."""
        return self.store.read(verified)
