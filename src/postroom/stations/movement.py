"""Movement control: a query over many nodes reports a message that moves meanwhile once, wherever it is.

Queries are numbered and run on every node in that order, on the mailboxes last. Whoever moves a message tells how far
it has been seen; where it arrives, it is hidden from queries that have seen it, and the mailboxes show it to queries
that would miss it. These are the rules alone, without stores and networks: each function is what one place does at
once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Place:
    """A node, or the mailboxes: the last query that ran there, and the messages that are hidden from some."""

    done: int = 0
    hidden: frozenset[tuple[str, int]] = frozenset()  # a message, and the last query that has seen it

    def seen(self, message: str) -> int:
        """The last query that has seen a message which is here."""
        return next((seen for name, seen in self.hidden if name == message), self.done)

    def without(self, message: str) -> Place:
        """After a message has left."""
        return replace(self, hidden=frozenset(each for each in self.hidden if each[0] != message))

    def with_arrived(self, message: str, seen: int) -> Place:
        """After a message has come that a query has seen which has not run here yet."""
        return replace(self, hidden=self.hidden | {(message, seen)}) if seen > self.done else self

    def visible(self, messages: Iterable[str]) -> frozenset[str]:
        """What the next query finds of the messages that are here."""
        hidden = {name for name, _ in self.hidden}
        return frozenset(message for message in messages if message not in hidden)

    def after(self, query: int) -> Place:
        """When a query has run: what only it and those before it had to overlook need not be remembered."""
        return Place(query, frozenset(each for each in self.hidden if each[1] > query))


@dataclass(frozen=True, slots=True)
class Shown:
    """A message that left the mailboxes for a node which some queries had already passed: these find it here."""

    message: str
    place: str
    seen: int
    until: int  # the first query that meets it on the node

    def is_for(self, query: int) -> bool:
        return self.seen < query < self.until


@dataclass(frozen=True, slots=True)
class Mailboxes:
    """The control node's part: mailboxes are a place, and show what has left them too late."""

    place: Place = field(default_factory=Place)
    shown: frozenset[Shown] = frozenset()

    def leave(self, message: str, node: str, done: int) -> tuple[int, Mailboxes]:
        """Let a message go to a node that has run queries up to ``done``; answers with the last that has seen it."""
        seen = self.place.seen(message)
        shown = self.shown | {Shown(message, node, seen, done + 1)} if done > seen else self.shown
        return seen, Mailboxes(self.place.without(message), shown)

    def arrive(self, message: str, seen: int) -> Mailboxes:
        return replace(self, place=self.place.with_arrived(message, seen))

    def found(self, query: int, messages: Iterable[str]) -> frozenset[str]:
        """What a query finds here: the mail that waits, and what has gone where it has already been."""
        late = {each.message for each in self.shown if each.is_for(query)}
        return self.place.visible(messages) | late

    def after(self, query: int) -> Mailboxes:
        rest = frozenset(each for each in self.shown if each.until > query + 1)
        return Mailboxes(self.place.after(query), rest)
