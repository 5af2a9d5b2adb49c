"""The source of a program with syntax colours, line by line."""

from __future__ import annotations

import re

#: Words with which statements and clauses begin, in any of the languages.
_WORDS = frozenset(
    """create module queue rule for if then else do enqueue into property slicing on value kind basic mode persistent
    errorqueue collection import reset return let where schema response slice domain space arc select transform merge
    collapse table allow join durable retain type field index procedure precondition origin action destination counter
    at copy ship leave dossier abort not from takes required once free automatic input-queue output-queue password
    command line timeout""".split()
)
_PIECE = re.compile(
    r"""(?P<remark>\(:.*?(?::\)|$)|(?<![&\w])\#[^\n]*$)
      | (?P<said>"(?:[^"\\]|\\.)*"|'[^'\n]*')
      | (?P<number>(?<![\w.])[0-9]+(?:\.[0-9]+)?(?![\w]))
      | (?P<word>[A-Za-z][\w-]*)""",
    re.VERBOSE,
)


def pieces(line: str) -> list[tuple[str, str]]:
    """A line in pieces, each with its kind: remark, said, number, word, or nothing in particular.

    >>> pieces('create rule r  # a "remark"')
    [('word', 'create'), ('', ' '), ('word', 'rule'), ('', ' r  '), ('remark', '# a "remark"')]
    """
    parts: list[tuple[str, str]] = []
    at = 0

    def put(kind: str, text: str) -> None:
        if text and parts and not kind and not parts[-1][0]:
            parts[-1] = ("", parts[-1][1] + text)
        elif text:
            parts.append((kind, text))

    for match in _PIECE.finditer(line):
        put("", line[at : match.start()])
        kind = match.lastgroup or ""
        put("" if kind == "word" and match[0].lower() not in _WORDS else kind, match[0])
        at = match.end()
    put("", line[at:])
    return parts
