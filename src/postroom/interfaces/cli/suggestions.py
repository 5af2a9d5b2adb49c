"""Words that people know from elsewhere and type first, and what is said to them here."""

from __future__ import annotations

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from postroom.model.spelling import close

_COUNTS = "queues and their counts: postroom count"
#: By the words as they are typed. Only what is no command: a test sees to it.
ELSEWHERE: dict[str, str] = {
    "delete": "a queue is removed with: postroom queue remove",
    "error": "errors are messages: postroom peek postroom-errors",
    "errors": "errors are messages: postroom peek postroom-errors",
    "init": "a room is made by the first postroom queue create or postroom load",
    "ls": _COUNTS,
    "purge": "old messages and entries are deleted with: postroom sweep",
    "queue delete": "a queue is removed with: postroom queue remove",
    "queues": _COUNTS,
    "replay": "postroom verify replays the journal",
    "start": "the engine is started with: postroom run",
    "status": _COUNTS,
    "version": "postroom --version",
}


class Guesses(TyperGroup):
    """A group of commands that understands ``help``, and answers a word that is no command with what to type."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        word = args[0]
        if word in self.commands or word.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        if word != "help":
            ctx.fail(f"No such command {word!r}{self._hint(ctx, word)}")
        if args[1:]:
            return self.resolve_command(ctx, [*args[1:], "--help"])
        sys.stdout.write(f"{ctx.get_help()}\n")
        raise typer.Exit

    def _hint(self, ctx: Any, word: str) -> str:
        """What to type instead, if we know."""
        known = ELSEWHERE.get(" ".join([*_words(ctx), word]))
        if known is not None:
            return f"; {known}"
        meant = close(word, self.commands, most=3)
        return f". Did you mean {', '.join(map(repr, meant))}?" if meant else "."


def _words(ctx: Any) -> list[str]:
    """The words behind the program's name that lead to a group."""
    return [] if ctx.parent is None else [*_words(ctx.parent), ctx.info_name]
