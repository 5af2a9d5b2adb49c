"""The program ``postroom``: where its commands are, and how errors end it."""

from __future__ import annotations

import atexit
import gc
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Annotated

import typer

from postroom import __version__
from postroom.errors import PostroomError
from postroom.interfaces.cli import output
from postroom.interfaces.cli.context import (
    Commands,
    JsonOption,
    RoomOption,
    TokenOption,
    option,
    settings,
    with_password_source,
)
from postroom.interfaces.cli.panels import Panels

#: Which module has which commands. A command imports its own module alone: all of them take longer than most run.
COMMANDS: dict[str, tuple[str, ...]] = {
    "sending": ("send",),
    "receiving": ("receive",),
    "queues": ("disable", "enable", "hierarchy"),
    "listings": ("count", "accept", "peek", "info", "history"),
    "consumers": ("leases", "done", "release", "extend", "fail", "purge", "move", "redrive"),
    "working": ("work",),
    "rooms": ("load", "trace", "locate", "show", "journal", "verify", "mend"),
    "engine": ("run",),
    "preparing": ("prepare",),
    "streams": ("stream",),
    "serving": ("serve",),
    "rules": ("catalog", "explain", "slice", "why", "try"),
    "flows": ("publish", "subscribe", "unsubscribe", "connect", "disconnect", "subscriptions", "graph"),
    "nodes": ("login", "logout"),
    "stations": ("form", "create", "copy", "modify", "list", "next", "mail", "ship", "take-back", "get"),
    "queries": ("query", "sql"),
    "procedures": ("waiting",),
    "spheres": ("spheres", "compensate"),
    "editors": ("lsp",),
    "operating": ("top", "doctor"),
    "exchange": ("export",),
    "upkeep": ("sweep", "archive", "backup", "restore"),
    "access": ("why-not",),
}
#: Which module has which group of commands.
GROUPS: dict[str, str] = {
    "queue": "queues",
    "source": "sources",
    "cobol": "cobol",
    "schedule": "consumers",
    "type": "types",
    "outbox": "rooms",
    "collection": "rules",
    "principal": "flows",
    "user": "access",
    "grant": "access",
    "token": "access",
    "gateway": "gateways",
    "node": "nodes",
    "station": "nodes",
    "dossier": "stations",
    "table": "queries",
    "procedure": "procedures",
    "counter": "counters",
    "sphere": "spheres",
    "retention": "upkeep",
}
#: So many new objects before Python looks which of them nobody reaches. A short command keeps nearly all that it makes:
#: with Python's own bound of 700, that was a tenth of it.
_OBJECTS_MAX = 10_000
_NOTHING = "--version"  # needs no command
_MODULE = {name: module for module, names in COMMANDS.items() for name in names} | GROUPS


def _version(value: bool) -> None:
    if value:
        output.say(f"postroom {__version__}")
        raise typer.Exit


def postroom(
    room: RoomOption = None,
    token: TokenOption = None,
    json: JsonOption = False,
    version: Annotated[bool, option("--version", "Print the version.", callback=_version, is_eager=True)] = False,
) -> None:
    """Structured messages in transactional queues.

    \b
    First steps:
      postroom queue create orders
      postroom send orders --body "order 17"
      postroom receive orders
      postroom load FILE.qdl        a whole tree of queues; see docs/guide/queues.md
      postroom load FILE.demaq      a program of rules; see docs/guide/rules.md
      postroom load FILE.flow       a graph that routes events; see docs/guide/flows.md
      postroom load FILE.form       message types, procedures, counters; see docs/guide/stations.md
      postroom help CODE            what an error means, and what to do
    """


def program(word: str = "") -> typer.Typer:
    """The program with one command or group; with all of them if ``word`` is none, or for the version."""
    whole = (word not in _MODULE and word != _NOTHING) or "_POSTROOM_COMPLETE" in os.environ
    app = _empty()
    for name in _MODULE if whole else {word} - {_NOTHING}:
        if name in GROUPS:
            app.add_typer(_group(name), name=name)
        else:
            app.command(name)(_verb(name))
    return app


def listing() -> typer.Typer:
    """The program as its own help shows it: every command by its words, and none that can be run.

    Options of all commands take most of half a second to prepare.
    """
    app = _empty()
    for name in _MODULE:
        about = _group(name).info.help if name in GROUPS else _verb(name).__doc__
        typer.Typer.command(app, name, help=str(about))(_listed)
    return app


def _listed() -> None:
    raise AssertionError("a command that is only listed was run")


def _empty() -> typer.Typer:
    app = Commands(
        name="postroom",
        cls=Panels,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback(invoke_without_command=False)(postroom)
    return app


def _group(name: str) -> typer.Typer:
    group: typer.Typer = getattr(_module(name), f"{name}_app")
    return group


def _verb(name: str) -> Callable[..., None]:
    module, verb = _module(name), name.replace("-", "_")
    function: Callable[..., None] = getattr(module, verb if hasattr(module, verb) else f"{verb}_")  # some are Python's
    return function


def _module(name: str) -> ModuleType:
    return import_module(f"postroom.interfaces.cli.commands.{_MODULE[name]}")


def _for(words: Sequence[str]) -> typer.Typer:
    """What these words of a command line need."""
    if list(words) == [_NOTHING]:
        return program(_NOTHING)
    if not any(word in _MODULE for word in words) and "_POSTROOM_COMPLETE" not in os.environ:
        return listing()
    return program(_called(words))


def _called(words: Sequence[str]) -> str:
    """The first word that is not an option, which names a command."""
    rest = iter(words)
    return next(
        (word for word in rest if not (word in ("--room", "--token") and next(rest, "")) and not word.startswith("-")),
        "",
    )


def main() -> None:
    """Run one command. Refusals exit with 1 and one line, wrong usage with 2."""
    gc.set_threshold(_OBJECTS_MAX)
    atexit.register(gc.freeze)  # nor does it look once more through all of them before they go
    settings.room, settings.json, settings.jsonl, settings.password_source = None, False, False, ""
    settings.token, settings.tell = None, output.note
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a narrow terminal must not cost anyone a message
    try:
        try:
            app = _for(sys.argv[1:])
            if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as ``postroom.__main__`` leaves it
                signal.signal(signal.SIGINT, signal.default_int_handler)
            app()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # here, where a failure can still be told
    except PostroomError as error:
        output.failure(with_password_source(error))
        sys.exit(1)
    except BrokenPipeError:  # the reader of our output left; nothing more to say
        output.silence()
        sys.exit(1)
    except OSError as error:
        output.silence()
        sys.stderr.write(f"postroom: output-failed: cannot write the answer: {error.strerror}\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
