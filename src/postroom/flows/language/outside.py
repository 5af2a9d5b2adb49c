"""Streams from outside and to outside: where the events of a space come from or go to.

A flow names a gateway that an operator has added, and a folder or topic below it. The operator sets addresses, folders
and options.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn

from postroom.flows.language.types import INT, TIMESTAMP, Scalar, Tuple, Type
from postroom.flows.language.words import Words, fail, string
from postroom.model.definitions import Position
from postroom.model.words import Word

FILES, KAFKA, SOCKET, RATE, CONSOLE = "files", "kafka", "socket", "rate", "console"
SOURCES = (FILES, KAFKA, SOCKET, RATE)
SINKS = (FILES, KAFKA, CONSOLE)
JSON = "json"
FORMATS = (JSON, "csv", "parquet", "avro")

_GATEWAY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,59}\Z")
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.=-]{0,249}\Z")


@dataclass(frozen=True, slots=True)
class Outside:
    """One end of a stream."""

    kind: str
    gateway: str  # "" for the console
    path: str  # what is below the gateway: a folder, or a topic
    format: str  # of files
    position: Position = field(compare=False)

    @property
    def name(self) -> str:
        return f"{self.gateway}/{self.path}" if self.path else self.gateway

    def __str__(self) -> str:
        named = f' "{self.name}"' if self.gateway else ""
        return f"{self.kind}{named}{f' format {self.format}' if self.kind == FILES else ''}"


def read_outside(words: Words, *kinds: str) -> Outside:
    """Read what follows ``from`` or ``to``."""
    kind = words.keyword(*kinds)
    if kind.text == CONSOLE:
        return Outside(CONSOLE, "", "", JSON, kind.position)
    if words.next.kind != "string":
        words.refuse("the name of a gateway, in quotes")
    word = words.take()
    gateway, path = _named(word, kind.text)
    if kind.text != FILES:
        return Outside(kind.text, gateway, path, JSON, word.position)
    words.keyword("format")
    return Outside(FILES, gateway, path, words.keyword(*FORMATS).text, word.position)


def _named(word: Word, kind: str) -> tuple[str, str]:
    def refused(what: str) -> NoReturn:
        fail(word.position, f"{word.text} {what}", "outside")

    gateway, slash, path = string(word).partition("/")
    if not _GATEWAY.match(gateway):
        refused("is not the name of a gateway, or NAME/WHAT of one")
    parts = path.split("/") if slash else []
    if not all(map(_PART.match, parts)):
        refused("leads nowhere: what is below a gateway has letters, digits, _ . = -, and begins with one of the first")
    if kind == KAFKA and len(parts) != 1:
        refused("has no topic: it is GATEWAY/TOPIC")
    if kind in (SOCKET, RATE) and parts:
        refused(f"says too much: there is nothing below a gateway of {kind}")
    return gateway, path


def type_problem(outside: Outside, type: Type) -> str | None:
    """Why events of a type cannot use this source or sink."""
    if outside.kind == RATE:
        fields = [member.type for member in type.fields] if isinstance(type, Tuple) else []
        return None if fields == [TIMESTAMP, INT] else f"rate has [timestamp, int], not {type}"
    if outside.kind != FILES or outside.format == JSON:
        return None
    flat = isinstance(type, Tuple) and all(member.name and isinstance(member.type, Scalar) for member in type.fields)
    if flat and isinstance(type, Tuple) and type.fields:
        return None
    return f"{outside.format} has rows of [name: type, …] of simple types, not {type}; json has every type"
