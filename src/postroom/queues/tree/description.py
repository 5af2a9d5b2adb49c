"""The Queue Description Language: text → entries, each with its line and column.

    01 INPUT-QUEUE (MASTER-QUE) PASSWORD IS "MASTER"
       02 SUB-QUEUE-1 (SUBQ-1) COMMAND LINE IS "report --daily"
    01 OUTPUT-QUEUE (OQ3)
    99

The text is free-form: blanks and line ends only separate words. Keywords may be in either case; a line that starts with
``*`` is a comment. Reading ends at level 99. The rules of the language are in ``checks.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from postroom.errors import DescriptionInvalid
from postroom.limits import DESCRIPTION_BYTES_MAX
from postroom.model.definitions import Position
from postroom.model.spelling import close
from postroom.model.words import Lexicon, Word, WordReader

CLAUSE_LEVELS = {"INPUT-QUEUE": 1, "OUTPUT-QUEUE": 1, "SUB-QUEUE-1": 2, "SUB-QUEUE-2": 3, "SUB-QUEUE-3": 4}
END_LEVEL = 99


class PolicyClause(NamedTuple):
    """A clause on delivery."""

    name: str  # of the field of ``Policy``
    expected: str
    seconds: bool = False
    quoted: bool = False


POLICY_CLAUSES = {
    "LEASE": PolicyClause("lease", "a number of seconds", seconds=True),
    "ATTEMPTS": PolicyClause("attempts", "a number of attempts"),
    "BACKOFF": PolicyClause("backoff", "a number of seconds", seconds=True),
    "BACKOFF-MAX": PolicyClause("backoff_max", "a number of seconds", seconds=True),
    "DEAD-LETTERS": PolicyClause("dead_letters", "the name of a queue", quoted=True),
    "ORDER": PolicyClause("order", "FREE, STRICT or BY"),
    "EXPIRED": PolicyClause("expired", "DROP or DEAD-LETTERS"),
    "MESSAGES-MAX": PolicyClause("max_messages", "a number of messages"),
    "BYTES-MAX": PolicyClause("max_bytes", "a number of bytes"),
    "AGE-MAX": PolicyClause("max_age", "a number of seconds", seconds=True),
    "RETRY": PolicyClause("retry", "PASSING or ALL"),
    "WHEN-FULL": PolicyClause("over", "REFUSE or DEAD-LETTERS"),
}
_CLAUSES = ("PASSWORD", "COMMAND", "TIMEOUT", *POLICY_CLAUSES)
POLICY_NAMES = {"by", *(clause.name for clause in POLICY_CLAUSES.values())}


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the tree, as written."""

    level: int
    clause: str
    name: str
    position: Position
    password: str | None = None
    password_hash: str | None = None
    command: str | None = None
    timeout: str | None = None  # seconds, as written
    policy: tuple[tuple[str, str], ...] = ()  # how messages are delivered, by the names of ``Policy``, as written


_PIECES = re.compile(
    r"""(?P<blank>^[ \t\r\f\ufeff]*\*[^\n]* | [ \t\r\f\ufeff]+ | \n) | (?P<string>"[^"\n]*")
      | (?P<name>\([^()\n]*\)) | (?P<word>[A-Za-z0-9_-]+)""",
    re.VERBOSE | re.MULTILINE,
)
LEXICON = Lexicon(
    _PIECES,
    DescriptionInvalid,
    {
        '"': "a quoted string has no closing quote on its line",
        "(": "a name has no closing parenthesis on its line",
    },
)


def fail(position: Position, what: str, rule: str) -> NoReturn:
    LEXICON.fail(position, what, rule)


def parse(text: str, file: str) -> tuple[Entry, ...]:
    """The entries of a description; raises at the first syntax error."""
    if len(text) > DESCRIPTION_BYTES_MAX:
        fail(Position(file, 1), f"the description is longer than {DESCRIPTION_BYTES_MAX} characters", "size")
    return tuple(_Reader(LEXICON.words(text, file)).entries())


def _clauses() -> str:
    """All clauses of an entry, as they begin."""
    *most, last = ["COMMAND LINE" if word == "COMMAND" else word for word in _CLAUSES]
    return f"{', '.join(most)} and {last}, each with IS"


def _meant(keyword: str) -> str:
    """A question whether another clause was meant: one of the same parts, or one that is spelled almost so."""
    parts = sorted(keyword.split("-"))
    likely = [word for word in _CLAUSES if sorted(word.split("-")) == parts] or close(keyword, _CLAUSES)
    return f" (did you mean {likely[0]}?)" if likely else ""


class _Reader(WordReader):
    def entries(self) -> Iterator[Entry]:
        empty = True
        while True:
            level, position = self._level()
            if level == END_LEVEL and empty:
                fail(position, "a description needs at least one 01 INPUT-QUEUE", "input-required")
            if level == END_LEVEL:
                return
            yield self._entry(level, position)
            empty = False

    def _level(self) -> tuple[int, Position]:
        word = self.next
        if self.done:
            fail(word.position, "the description must end with level 99", "end-required")
        if word.kind != "word" or not re.fullmatch(r"[0-9]{2}", word.text):
            fail(word.position, f"a level number (01 to 04, or 99) is expected, not {word.text}", "syntax")
        if int(word.text) not in (1, 2, 3, 4, END_LEVEL):
            fail(word.position, f"level {word.text} does not exist; levels are 01 to 04, and 99 at the end", "levels")
        # Nothing after 99 is looked at, not even its words.
        if int(word.text) != END_LEVEL:
            self.take()
        return int(word.text), word.position

    def _entry(self, level: int, position: Position) -> Entry:
        clause = self._take("word", "INPUT-QUEUE, OUTPUT-QUEUE or SUB-QUEUE-n")
        if clause.text.upper() not in CLAUSE_LEVELS:
            fail(clause.position, f"INPUT-QUEUE, OUTPUT-QUEUE or SUB-QUEUE-n is expected, not {clause.text}", "syntax")
        name = self._take("name", "a name in parentheses").text[1:-1].strip()
        options: dict[str, str] = {}
        while self.next.kind == "word" and not self.next.text.isdigit():
            key, value, place = self._option()
            if key in options or {key, *options} >= {"password", "password_hash"}:
                fail(place, "a clause is given twice for one entry", "clause-once")
            options[key] = value
        policy = tuple((name, options.pop(name)) for name in list(options) if name in POLICY_NAMES)
        return Entry(level, clause.text.upper(), name, position, policy=policy, **options)

    def _option(self) -> tuple[str, str, Position]:
        word = self.take()
        keyword = word.text.upper()
        if keyword in ("PROCESSOR", "STATION"):
            what = f"{keyword} is not accepted here; what is: {_clauses()}"
            fail(word.position, what, f"no-{keyword.lower()}")
        if keyword == "PASSWORD":
            hashed = self.next.text.upper() == "HASH"
            if hashed:
                self.take()
            self._keyword("IS")
            return ("password_hash" if hashed else "password"), self._string("a password"), word.position
        if keyword == "COMMAND":
            self._keyword("LINE")
            self._keyword("IS")
            return "command", self._string("a command line"), word.position
        if keyword == "TIMEOUT":
            self._keyword("IS")
            seconds = self._take("word", "a number of seconds")
            self._keyword("SECONDS")
            return "timeout", seconds.text, word.position
        if keyword in POLICY_CLAUSES:
            return (*self._policy(POLICY_CLAUSES[keyword]), word.position)
        fail(word.position, f"{word.text} is no clause{_meant(keyword)}; the clauses are {_clauses()}", "syntax")

    def _policy(self, clause: PolicyClause) -> tuple[str, str]:
        """A clause on delivery: name and value."""
        self._keyword("IS")
        if clause.quoted:
            return clause.name, self._string(clause.expected)
        value = self._take("word", clause.expected).text
        if clause.name == "order" and value.upper() == "BY":
            return "by", self._string("a property")
        if clause.seconds:
            self._keyword("SECONDS")
        return clause.name, value if clause.seconds else value.lower()

    def _keyword(self, expected: str) -> None:
        word = self._take("word", expected)
        if word.text.upper() != expected:
            fail(word.position, f"{expected} is expected, not {word.text}", "syntax")

    def _string(self, what: str) -> str:
        return self._take("string", f"{what} in double quotes").text[1:-1]

    def _take(self, kind: str, expected: str) -> Word:
        word = self.next
        if self.done:
            fail(word.position, f"{expected} is expected, but the text ends", "syntax")
        if word.kind != kind:
            fail(word.position, f"{expected} is expected, not {word.text}", "syntax")
        return self.take()
