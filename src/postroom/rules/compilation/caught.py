"""Error places for ``catch``: file, line and column in the program, not in the generated query."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from postroom.model.xmltext import attribute
from postroom.rules.compilation.plan import Source
from postroom.rules.language.edits import Edit
from postroom.rules.language.positions import begin_of
from postroom.rules.language.tokens import tokens_before

_ASKED = {"$err:module": 4, "$err:line-number": 5, "$err:column-number": 6}
_TABLE, _MODULES = "(: places :)", "(: modules :)"
_WORD = re.compile(r"\w+|[^\w\s]")
#: An entry of the table has the module (0: the query), a place there, and one in a file. The last that fits is it.
FUNCTION = (
    "declare function qs:caught($m as xs:string?, $l as xs:integer?, $c as xs:integer?, $w as xs:integer) "
    f"as xs:anyAtomicType? {{ let $of := (index-of(({_MODULES}), $m), 0)[1] "
    f"return ({_TABLE})[?1 eq $of][?2 lt $l or (?2 eq $l and ?3 le ($c, 1)[1])][last()]?($w) }};"
)


def caught_edits(text: str, start: int, end: int) -> Iterator[Edit]:
    """Replace the variables of a catch by those with places in the program."""
    if "$err:" in text[start:end]:
        for token in tokens_before(text, start, end)[0]:
            if token.kind == "variable" and token.text in _ASKED:
                asked = f"qs:caught($err:module, $err:line-number, $err:column-number, {_ASKED[token.text]})"
                yield Edit(token.start, token.end, asked)


def with_caught(text: str) -> str:
    """The text with the helper function if it is called; on one line, so that no line number changes."""
    return FUNCTION if "qs:caught(" in text else ""


def with_places(text: str, sources: Iterable[Source], libraries: Iterable[tuple[str, Source]]) -> str:
    """A query that knows the sources of its pieces."""
    if _TABLE not in text:
        return text
    known = list(libraries)
    entries = [entry for source in sources for entry in _entries(0, source)]
    entries += [entry for number, (_, source) in enumerate(known, 1) for entry in _entries(number, source)]
    modules = ", ".join(f'"{attribute(address)}"' for address, _ in known)
    return text.replace(_TABLE, ", ".join(entries), 1).replace(_MODULES, modules, 1)


def _entries(module: int, source: Source) -> Iterator[str]:
    """The line table of a piece of the query."""
    text, line, begin = source.made.text, source.line, 0
    for word in _WORD.finditer(text):
        breaks = text.count("\n", begin, word.start())
        if breaks:
            line, begin = line + breaks, text.rindex("\n", 0, word.start()) + 1
        place = source.said.place(source.file, begin_of(source.said.text, source.made.origin(word.start())))
        where = f'"{attribute(place.file)}", {place.line}, {place.column}'
        yield f"[{module}, {line}, {word.start() - begin + 1}, {where}]"
    yield f"[{module}, {source.line + text.count(chr(10)) + 1}, 1, (), (), ()]"
