"""A reader of TextMate grammars, for tests: the part that ours use, on Python's regular expressions."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

SYNTAXES = Path(__file__).parents[2] / "editors" / "vscode" / "syntaxes"
Rule = dict[str, Any]


@dataclass(frozen=True)
class Token:
    """A piece of a line, with the names of what it is, outermost first."""

    text: str
    scopes: tuple[str, ...]

    def is_a(self, *kinds: str) -> bool:
        return any(scope.startswith(kinds) for scope in self.scopes)


@dataclass
class Level:
    """A rule that has begun and not ended."""

    rule: Rule
    scopes: tuple[str, ...]
    end: str = ""


@dataclass
class Grammar:
    """A grammar, and what is open after the lines so far."""

    document: Rule
    open: list[Level] = field(default_factory=list)

    @classmethod
    def of(cls, suffix: str) -> Grammar:
        return cls(json.loads((SYNTAXES / f"{suffix}.tmLanguage.json").read_text()))

    def tokens(self, text: str) -> list[list[Token]]:
        """The tokens of each line."""
        self.open = [Level(self.document, (self.document["scopeName"],))]
        return [self._line(line) for line in text.splitlines()]

    def rules(self, patterns: list[Rule]) -> list[Rule]:
        """What can begin here, in order; includes are put in."""
        found: list[Rule] = []
        for each in patterns:
            if "include" in each:
                name = each["include"]
                target = self.document if name == "$self" else self.document["repository"][name[1:]]
                found += [target] if "match" in target or "begin" in target else self.rules(target["patterns"])
            else:
                found.append(each)
        return found

    def _line(self, line: str) -> list[Token]:
        found: list[Token] = []
        at = 0
        line += "\n"
        while at < len(line):
            level = self.open[-1]
            rule, match = self._next(line, at)
            if match is None:
                found.append(Token(line[at:], self._inner(level)))
                break
            if match.start() > at:
                found.append(Token(line[at : match.start()], self._inner(level)))
            found += self._taken(rule, match)
            assert match.end() > at or (rule is not None and "match" not in rule) or level.end, (
                "a rule that takes nothing"
            )
            at = match.end()
        return [Token(one.text.removesuffix("\n"), one.scopes) for one in found if one.text.removesuffix("\n")]

    def _next(self, line: str, at: int) -> tuple[Rule | None, re.Match[str] | None]:
        """The rule that begins first; the end of the open one goes before others at the same place."""
        level = self.open[-1]
        best: tuple[Rule | None, re.Match[str] | None] = (None, None)
        if level.end:
            best = (None, compiled(level.end).search(line, at))
        for rule in self.rules(level.rule.get("patterns", [])):
            match = compiled(rule.get("match") or rule["begin"]).search(line, at)
            if match is not None and (best[1] is None or match.start() < best[1].start()):
                best = (rule, match)
        return best

    def _taken(self, rule: Rule | None, match: re.Match[str]) -> list[Token]:
        level = self.open[-1]
        if rule is None:
            self.open.pop()
            return pieces(match, level.scopes, level.rule.get("endCaptures", {}))
        scopes = self._inner(level) + ((rule["name"],) if "name" in rule else ())
        if "match" in rule:
            return pieces(match, scopes, rule.get("captures", {}))
        self.open.append(Level(rule, scopes, rule["end"]))
        return pieces(match, scopes, rule.get("beginCaptures", {}))

    def _inner(self, level: Level) -> tuple[str, ...]:
        name = level.rule.get("contentName")
        return (*level.scopes, name) if name else level.scopes


def pieces(match: re.Match[str], scopes: tuple[str, ...], captures: Rule) -> list[Token]:
    """What was matched, cut at its captures; ours do not lie in each other."""
    found: list[Token] = []
    at = match.start()
    if "0" in captures:
        scopes = (*scopes, captures["0"]["name"])
    for number in range(1, (match.re.groups or 0) + 1):
        if match.start(number) < at or str(number) not in captures:
            continue
        found.append(Token(match.string[at : match.start(number)], scopes))
        found.append(Token(match[number], (*scopes, captures[str(number)]["name"])))
        at = match.end(number)
    found.append(Token(match.string[at : match.end()], scopes))
    return [token for token in found if token.text]


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)
