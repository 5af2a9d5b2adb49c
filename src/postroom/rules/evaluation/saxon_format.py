"""Data exchange with Saxon: messages as one document for a query, and its result as pending actions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from postroom.engine.steps.effects import Document
from postroom.errors import BodyMismatch
from postroom.model.body import Format
from postroom.model.views import as_xml, record
from postroom.model.xmltext import escaped, without_declaration
from postroom.rules.compilation.plan import SAME, Plan, Template

_VALUES = re.compile(r'="([^"]*)"')
_ATTRIBUTES = {"p": 3, "k": 2, "z": 3, "x": 6}
_REFERENCE = re.compile("&(?:#x([0-9a-fA-F]+)|#([0-9]+)|(amp|lt|gt|quot|apos));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_FORMATS = {"x": "xml", "j": "json", "t": "text"}


def element(document: Document, plan: Plan) -> str:
    """A message in the document of a batch; a typed one as XML of its type, whatever its format."""
    _, form, type, body, _ = document
    if type is not None and type in plan.types:
        try:
            known = plan.types[type]
            return f"<d>{as_xml(record(body, Format(form), known), known)}</d>"
        except BodyMismatch:  # the type has changed since; then it is what it always was
            pass
    if form == "xml":
        return f"<d>{without_declaration(body)}</d>"
    return f'<d f="{form[0]}">{escaped(body)}</d>'


class Made(NamedTuple):
    """One action from the query's result: a message for a queue, or a slice to reset."""

    rule: int
    queue: str
    format: str
    body: str
    properties: Sequence[tuple[str, str | None, str]] = ()  # name, kind, value
    entries: Sequence[tuple[str, str]] = ()
    slicing: str | None = None
    value: str = ""  # of the slice
    compensates: bool = False  # the message made before it
    same: bool = False  # it is the current message itself, and of its type
    at: int = 0  # where its action stands in the rule's body


class Failed(NamedTuple):
    """The error of a rule, with its place in the query or a library module."""

    rule: int  # its number
    code: str
    description: str
    line: int = 0
    column: int = 0
    module: str = ""


@dataclass(slots=True)
class Answer:
    """The result for one message. Entry queries return properties and entries, and no actions."""

    made: list[Made] = field(default_factory=list)
    properties: list[tuple[str, str | None, str]] = field(default_factory=list)
    entries: list[tuple[str, str]] = field(default_factory=list)
    failed: Failed | None = None


def parts(text: str, mark: str) -> list[str]:
    """A query's result by message, in input order."""
    return text.split(f"<?r-{mark}?>")[1:]


def by_template(part: str, mark: str) -> list[tuple[str, str]] | None:
    """Template numbers and bodies, if a message's part has nothing else."""
    before, *made = part.split(f"<?t-{mark} ")
    if before or part.count(f"-{mark}") > len(made):
        return None
    return [(number, body) for number, _, body in [piece.partition("?>") for piece in made]]


def answer(part: str, mark: str, templates: Sequence[Template] = ()) -> Answer:
    """Parse a message's part.

    It is flat: an empty element or processing instruction announces what follows, and then comes the body.
    """
    collected = Answer()
    before, *pieces = part.split(f"-{mark} ")  # each begins with what its tag says
    tag = before[-1:]
    for number, piece in enumerate(pieces, 1):
        following = piece[-1] if number < len(pieces) else ""
        if following:
            piece = piece[: -3 if piece.endswith(f"<?{following}") else -2]
        if tag == "t":
            template, _, body = piece.partition("?>")
            known = templates[int(template)]
            collected.made.append(Made(known.rule, known.queue, "xml", body, known.properties, at=known.at))
        elif tag in "eu":
            # Names of queues and numbers: none of them has a quote or a bracket in it.
            attributes, _, body = piece.partition("/>")
            _, queue, _, rule, _, form, _ = attributes.split('"')
            text = body if form == "x" else _plain(body)
            same = rule.endswith(SAME)
            rule, _, at = rule.removesuffix(SAME).partition(".")
            undoes = tag == "u"
            made = Made(int(rule), queue, _FORMATS[form], text, compensates=undoes, same=same, at=int(at or 0))
            collected.made.append(made)
        else:
            _detail(tag, [_plain(value) for value in _VALUES.findall(piece)[: _ATTRIBUTES[tag]]], collected)
        tag = following
    return collected


def _detail(tag: str, values: list[str], answer: Answer) -> None:
    """Add a property or an entry to the message before it, or to the result of an entry query."""
    if tag == "p":
        name, value, *kind = values
        detail = (name, kind[0] if kind else None, value)
        if answer.made:
            last = answer.made[-1]
            answer.made[-1] = last._replace(properties=(*last.properties, detail))
        else:
            answer.properties.append(detail)
    elif tag == "k":
        if answer.made:
            answer.made[-1] = answer.made[-1]._replace(entries=(*answer.made[-1].entries, (values[0], values[1])))
        else:
            answer.entries.append((values[0], values[1]))
    elif tag == "z":
        answer.made.append(Made(int(values[1]), "", "", "", slicing=values[0], value=values[2]))
    elif answer.failed is None:
        rule, code, description, line, column, module = values
        code = code.removeprefix("err:").removeprefix("qs:")
        answer.failed = Failed(int(rule), code, description, _number(line), _number(column), module)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _plain(text: str) -> str:
    """Unescape XML text. HTML's rules differ for some references, so ``html.unescape`` is not used."""
    return _REFERENCE.sub(_character, text) if "&" in text else text


def _character(reference: re.Match[str]) -> str:
    hexadecimal, decimal, name = reference.groups()
    return _NAMED[name] if name else chr(int(hexadecimal, 16) if hexadecimal else int(decimal))


def batch(parts: Iterable[str], sets: Sequence[str] = ()) -> str:
    """The document of a query: the sets, then the messages."""
    return f"<b>{''.join(sets)}{''.join(parts)}</b>"
