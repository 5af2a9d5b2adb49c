"""The flow language (.flow): from text to frozen definitions with their places, and back.

    domain trading
    allow operator : addArc, deleteArc
    space NYSE : [issue: string, price: int, volume: int]
    arc big : NYSE -> Big select [price: p > 75]

Blanks and line ends only separate words; ``#`` begins a comment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from postroom.flows.language import patterns, types
from postroom.flows.language.definitions import (
    ACTIONS,
    EVERYONE,
    SUBSCRIBE,
    Allow,
    Arc,
    Collapse,
    Does,
    Domain,
    Join,
    Meet,
    Merge,
    Select,
    Space,
    Statement,
    Table,
    Transform,
)
from postroom.flows.language.outside import SINKS, SOURCES, read_outside
from postroom.flows.language.windows import read_clock, read_duration, read_lateness, read_window
from postroom.flows.language.words import Words, fail, string

META = "meta"  # the meta-space of a domain is meta:DOMAIN
_STATEMENTS = ("domain", "allow", "space", "table", "arc")


def parse(text: str, file: str) -> tuple[Statement, ...]:
    """The statements of a flow file, in order; raises at the first syntax error."""
    return tuple(_Reader(Words(text, file)).statements())


class _Reader:
    def __init__(self, words: Words) -> None:
        self._words = words
        self._domain = ""

    def statements(self) -> Iterator[Statement]:
        while not self._words.done:
            yield self._statement()

    def _statement(self) -> Statement:
        words = self._words
        keyword = words.keyword(*_STATEMENTS)
        if keyword.text == "domain":
            name = words.name("the name of a domain")
            self._domain = name.text
            return Domain(name.text, keyword.position)
        if not self._domain:
            fail(keyword.position, f"a {keyword.text} belongs to a domain: begin with domain NAME", "domain-missing")
        if keyword.text == "allow":
            return self._allow()
        name = words.name(f"the name of a {keyword.text}")
        if keyword.text == "space":
            type = types.read(words) if words.sign(":") else types.UNTYPED
            retain = words.flag("retain")
            space = Space(name.text, self._domain, type, retain, keyword.position)
            if words.flag("from"):
                return replace(space, source=read_outside(words, *SOURCES))
            return replace(space, sink=read_outside(words, *SINKS)) if words.flag("to") else space
        words.expect(":", f"behind {name.text}")
        if keyword.text == "table":
            type = types.read(words)
            words.keyword("from")
            collection = words.flag("collection")
            if collection:
                source = words.name("the name of a collection").text
            elif words.next.kind == "string":
                source = string(words.take())
            else:
                words.refuse("the name of a file, in quotes")
            return Table(name.text, self._domain, type, source, collection, keyword.position)
        source = self.space()
        words.expect("->", f"behind {source}")
        target = self.space()
        does = self._does()
        durable = words.flag("durable")
        return Arc(name.text, self._domain, source, target, does, durable, keyword.position, words.since(keyword))

    def _allow(self) -> Allow:
        words = self._words
        position = words.next.position
        principal = EVERYONE if words.sign("*") else words.name("a principal or *").text
        words.expect(":", f"behind {principal}")
        actions = [self._action()]
        while words.sign(","):
            actions.append(self._action())
        return Allow(self._domain, principal, tuple(actions), position)

    def _action(self) -> str:
        word = self._words.name("what is allowed")
        known = (*ACTIONS, SUBSCRIBE)
        if word.text not in known:
            fail(word.position, f"{word.text} is not an action; there are {', '.join(known)}", "action-unknown")
        return word.text

    def space(self) -> str:
        """A space's name; after a meta-space comes its domain."""
        name = self._words.name("the name of a space").text
        if name == META and self._words.sign(":"):
            return f"{META}:{self._words.name('the name of a domain').text}"
        return name

    def _does(self) -> Does:
        words = self._words
        keyword = words.keyword("select", "transform", "merge", "collapse")
        if keyword.text == "merge":
            return Merge()
        if keyword.text == "select":
            return Select(patterns.read_pattern(words))
        begun = read_collapse(words) if keyword.text == "collapse" else read_transform(words)
        words.expect("=>", "and what becomes of an event")
        return replace(begun, result=patterns.read_expression(words))


#: The result of what was read up to it.
_NO_RESULT = patterns.Made("[", ())


def read_transform(words: Words) -> Transform | Meet:
    """A pattern, and the table or the space that it joins, up to the result."""
    pattern = patterns.read_pattern(words)
    clock = read_clock(words)
    if not words.flag("join"):
        if clock is not None:
            words.refuse("join and another space")
        return Transform(pattern, _NO_RESULT)
    name = words.name("the name of a table or a space").text
    other = patterns.read_pattern(words)
    if clock is None:
        return Transform(pattern, _NO_RESULT, Join(name, other))
    if clock.late.amount:
        fail(clock.position, "the lateness of two spaces comes after within", "syntax")
    words.keyword("at")
    time = words.name("the variable that has the time of an event").text
    words.keyword("within")
    within = read_duration(words)
    return Meet(pattern, replace(clock, late=read_lateness(words)), name, other, time, within, _NO_RESULT)


def read_collapse(words: Words) -> Collapse:
    """A pattern, keys, a time and a window, up to the result."""
    pattern = patterns.read_pattern(words)
    by: list[str] = []
    if words.flag("by"):
        by.append(words.name("a variable").text)
        while words.sign(","):
            by.append(words.name("a variable").text)
    return Collapse(pattern, tuple(by), read_clock(words), read_window(words), _NO_RESULT)
