"""What is said to words that are no commands: those that people know from other systems, slips, and codes of errors."""

from __future__ import annotations

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from postroom.errors import every_error
from postroom.model.spelling import close

_COUNTS = "queues and their counts: postroom count"
_FAILED = "what failed: postroom peek postroom-errors; postroom redrive sends it again"
_HISTORY = "what happened: postroom journal --last 50; to one message: postroom trace KEY"
_UPGRADE = "a new version migrates a room when it opens it; first: postroom backup"
#: By the words as they are typed. Only what is no command: a test sees to it.
ELSEWHERE: dict[str, str] = {
    "ack": "a leased message is ended with: postroom done",
    "consume": "postroom receive takes one message, postroom work runs workers",
    "dead-letters": _FAILED,
    "delete": "a queue is removed with: postroom queue remove",
    "error": _FAILED,
    "errors": _FAILED,
    "find": "messages: postroom locate KEY; forms: postroom query TYPE",
    "hold": "a queue is put on hold with: postroom disable",
    "init": "a room is made by the first postroom queue create or postroom load",
    "log": _HISTORY,
    "logs": _HISTORY,
    "ls": _COUNTS,
    "migrate": _UPGRADE,
    "pause": "a queue is put on hold with: postroom disable",
    "put": "postroom send QUEUE --body TEXT",
    "queue delete": "a queue is removed with: postroom queue remove",
    "queue hold": "a queue is put on hold with: postroom disable",
    "queues": _COUNTS,
    "replay": "postroom verify replays the journal",
    "requeue": _FAILED,
    "resume": "a queue is taken off hold with: postroom enable",
    "retry": _FAILED,
    "rollback": "a sphere is undone with: postroom sphere abort ID; definitions: postroom load the file as it was",
    "start": "the engine is started with: postroom run",
    "status": _COUNTS,
    "stop": "Ctrl-C, or SIGTERM, stops postroom run and postroom serve when what was begun is done",
    "tail": "new messages: postroom receive QUEUE --follow; what happens: postroom journal --last 50",
    "undo": "a sphere is undone with: postroom sphere abort",
    "upgrade": _UPGRADE,
    "version": "postroom --version",
    "worker": "workers are run with: postroom work MODULE:WORKERS",
}


class SuggestingGroup(TyperGroup):
    """A command group with ``help``, also of the code of an error; for an unknown word it suggests what to type."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        word = args[0]
        if word in self.commands or word.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        if word != "help":
            ctx.fail(f"No such command {word!r}{self._hint(ctx, word)}")
        told = _error(args[1]) if len(args) == 2 and ctx.parent is None else None
        if args[1:] and told is None:
            return self.resolve_command(ctx, [*args[1:], "--help"])
        sys.stdout.write(f"{told or ctx.get_help()}\n")
        raise typer.Exit

    def _hint(self, ctx: Any, word: str) -> str:
        """What to type instead, if known."""
        known = ELSEWHERE.get(" ".join([*_words(ctx), word]))
        if known is not None:
            return f"; {known}"
        meant = close(word, self.commands, most=3)
        return f". Did you mean {', '.join(map(repr, meant))}?" if meant else "."


_HAPPENED = {
    "no": "Nothing was changed.",
    "yes": "The change was made; this is only news of it.",
    "unknown": "It cannot tell whether anything was changed.",
}


def _error(code: str) -> str | None:
    """What an error means and what to do about it, if this is a code of one."""
    for kind in every_error():
        if kind.code == code:
            return f"{code}: {kind.template}\n\n{_HAPPENED[kind.happened]}\n\n{kind.advice}"
    return None


def _words(ctx: Any) -> list[str]:
    """The words after the program's name that lead to a group."""
    return [] if ctx.parent is None else [*_words(ctx.parent), ctx.info_name]
