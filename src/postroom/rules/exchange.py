"""Between Python and Saxon: messages as one document for a query, and its answer as pending actions."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from postroom.engine.effects import Document
from postroom.errors import BodyMismatch
from postroom.model.body import Format
from postroom.model.views import as_xml, record
from postroom.rules.plan import Plan

_DECLARATION = re.compile(r"\s*<\?xml\s[^>]*\?>")
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FORMATS = {"x": "xml", "j": "json", "t": "text"}


def element(document: Document, plan: Plan) -> str:
    """A message inside the document of a batch."""
    _, form, type, body = document
    if form == "xml":
        return f"<d>{without_declaration(body)}</d>"
    if form == "json" and type is not None and type in plan.types:
        try:
            known = plan.types[type]
            return f"<d>{as_xml(record(body, Format.JSON, known), known)}</d>"
        except BodyMismatch:  # the type has changed since; then it is what it always was, JSON
            pass
    return f'<d f="{form[0]}">{escaped(body)}</d>'


def without_declaration(body: str) -> str:
    declaration = _DECLARATION.match(body)
    return body[declaration.end() :] if declaration else body


def escaped(text: str) -> str:
    """Text between tags. What XML cannot hold is shown as the replacement character."""
    said = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#13;")
    return said if said.isascii() and said.isprintable() else _NOT_XML.sub("\ufffd", said)


def attribute(text: str) -> str:
    return escaped(text).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")


@dataclass(slots=True)
class Made:
    """One action as the query answered it."""

    rule: int
    queue: str = ""
    slicing: str | None = None
    value: str = ""  # of the slice to be reset
    properties: list[tuple[str, str | None, str]] = field(default_factory=list)  # name, kind, value
    entries: list[tuple[str, str]] = field(default_factory=list)
    format: str = ""
    body: str = ""


@dataclass(slots=True)
class Answer:
    """What the query said of one message."""

    index: int
    made: list[Made] = field(default_factory=list)
    failed: tuple[int, str, str] | None = None  # number of the rule, code, description


def answers(said: str, mark: str) -> Iterator[Answer]:
    """The answers in a query's result, in its order."""
    answer: Answer | None = None
    made = Made(0)
    rule = 0
    for match in _pattern(mark).finditer(said):
        kind = match.lastgroup
        if kind == "body":
            made.format = _FORMATS[match["d"]]
            made.body = match["text"] or ""
            if made.format != "xml":
                made.body = _plain(made.body)
        elif kind == "e":
            assert answer is not None
            made = Made(rule, match["e"])
            answer.made.append(made)
        elif kind == "a":
            rule = int(match["a"])
        elif kind == "r":
            if answer is not None:
                yield answer
            answer, rule, made = Answer(int(match["r"])), 0, Made(0)
        else:
            assert answer is not None
            _detail(kind, match, answer, made, rule)
    if answer is not None:
        yield answer


def entered(said: str, mark: str) -> Iterator[Answer]:
    """The answers of a door's query: one message's properties and entries each, as one action."""
    for piece in said.split(f'<r-{mark} i="')[1:]:
        number, _, rest = piece.partition('"')
        answer, made = Answer(int(number)), Made(0)
        answer.made.append(made)
        for match in _pattern(mark).finditer(rest):
            _detail(match.lastgroup, match, answer, made, 0)
        yield answer


def _detail(kind: str | None, match: re.Match[str], answer: Answer, made: Made, rule: int) -> None:
    if kind == "p":
        made.properties.append((_plain(match["pn"]), match["pk"], _plain(match["pv"] or "")))
    elif kind == "k":
        made.entries.append((_plain(match["kn"]), _plain(match["kv"] or "")))
    elif kind == "z":
        answer.made.append(Made(rule, slicing=_plain(match["zn"]), value=_plain(match["zv"] or "")))
    elif kind == "x" and answer.failed is None:
        answer.failed = (rule, _plain(match["xn"]).removeprefix("err:"), _plain(match["xv"] or ""))


@lru_cache(maxsize=16)
def _pattern(mark: str) -> re.Pattern[str]:
    m = f"-{mark}"
    return re.compile(
        rf'<r{m} i="(?P<r>\d+)"'
        rf'|<a{m} r="(?P<a>\d+)"'
        rf'|<e{m} q="(?P<e>[^"]*)"'
        rf'|(?P<body><d{m} f="(?P<d>.)"(?:/>|>(?P<text>.*?)</d{m}>))'
        rf'|(?P<p><p{m} n="(?P<pn>[^"]*)"(?: k="(?P<pk>[^"]*)")?(?:/>|>(?P<pv>[^<]*)</p{m}>))'
        rf'|(?P<k><k{m} n="(?P<kn>[^"]*)"(?:/>|>(?P<kv>[^<]*)</k{m}>))'
        rf'|(?P<z><z{m} s="(?P<zn>[^"]*)"(?:/>|>(?P<zv>[^<]*)</z{m}>))'
        rf'|(?P<x><x{m} c="(?P<xn>[^"]*)"(?:/>|>(?P<xv>[^<]*)</x{m}>))',
        re.DOTALL,
    )


def _plain(text: str) -> str:
    return html.unescape(text) if "&" in text else text


def batch(parts: Iterable[str], sets: Sequence[str] = ()) -> str:
    """The document of a query: sets that messages look at, then the messages."""
    return f"<b>{''.join(sets)}{''.join(parts)}</b>"
