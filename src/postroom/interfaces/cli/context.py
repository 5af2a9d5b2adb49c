"""What every command shares: which room, how to print, who is asking.

A room takes half a second to import. So commands import it only when they run, and help stays fast.
"""

from __future__ import annotations

import getpass
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from postroom.errors import ArgumentInvalid, PasswordWrong, PostroomError, PrincipalRefused
from postroom.interfaces.cli.suggestions import SuggestingGroup

if TYPE_CHECKING:
    from postroom.model.message import Value
    from postroom.room import Postroom

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class Settings:
    """Options given before the command; options of the command itself win."""

    room: str | None = None
    token: str | None = None  # for a server
    json: bool = False
    jsonl: bool = False  # received messages as lines of JSON
    tell: Callable[[str], None] | None = None  # says something about the answer to a person
    password_source: str = ""  # said of a password that is refused and that nobody has typed


settings = Settings()


def option(words: str, help: str, **more: Any) -> Any:
    """An option by how it is written: ``-o --output FILE``. Its default is not shown unless that is asked for."""
    names = [word for word in words.split() if word.startswith("-")]
    metavar = words.split()[-1] if len(names) < len(words.split()) else None
    return typer.Option(*names, metavar=metavar, help=help, **{"show_default": False} | more)


def argument(metavar: str, help: str | None = None, **more: Any) -> Any:
    """An argument by the word that stands for it. Its default is not shown unless that is asked for."""
    return typer.Argument(metavar=metavar, help=help, **{"show_default": False} | more)


def _set_room(value: str | None) -> str | None:
    if value is not None:
        settings.room = value
    return value


def _set_token(value: str | None) -> str | None:
    if value is not None:
        settings.token = value
    return value


def _set_json(value: bool) -> bool:
    settings.json = settings.json or value
    return value


def _known_queues(incomplete: str) -> list[str]:
    """Queue names for shell completion. Never raises."""
    from postroom.interfaces.opening import open as open_room

    try:
        with open_room(settings.room, create=False, token=settings.token) as room:
            queues = room.count().queues
    except PostroomError:
        return []
    names = {name for count in queues for name in (count.queue, *count.path)}
    return sorted(name for name in names if name.startswith(incomplete))


RoomOption = Annotated[
    str | None,
    option(
        "--room URL",
        "A SQLite path, a PostgreSQL URL, or the URL of a server. Default: $POSTROOM_URL, else ./postroom.db.",
        callback=_set_room,
        is_eager=True,
    ),
]
JsonOption = Annotated[bool, option("--json", "Print one JSON document.", callback=_set_json, is_eager=True)]
TokenOption = Annotated[
    str | None,
    option(
        "--token TOKEN",
        "The token for a server. Others can see it in the process list: better use $POSTROOM_TOKEN.",
        callback=_set_token,
        is_eager=True,
    ),
]
#: What every command may be given besides its own options.
_SHARED = {"room": RoomOption, "token": TokenOption, "json": JsonOption}


class Commands(typer.Typer):
    """Commands that all accept ``--room`` and ``--json``, which go into the settings."""

    def __init__(self, **options: Any) -> None:
        super().__init__(no_args_is_help=True, rich_markup_mode=None, **{"cls": SuggestingGroup} | options)

    def command(self, name: str | None = None, **options: Any) -> Callable[[F], F]:
        add = super().command(name, **options)

        def added(function: F) -> F:
            add(_with_shared(function))
            return function

        return added


def _with_shared(function: Callable[..., None]) -> Callable[..., None]:
    """The command with the shared options after its own."""

    @wraps(function)
    def command(**given: Any) -> None:
        function(**{name: value for name, value in given.items() if name not in added})

    signature = inspect.signature(function, eval_str=True)
    added = {name: annotation for name, annotation in _SHARED.items() if name not in signature.parameters}
    shared = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=False if name == "json" else None, annotation=annotation
        )
        for name, annotation in added.items()
    ]
    command.__signature__ = signature.replace(  # type: ignore[attr-defined]  # inspect looks for it
        parameters=[*signature.parameters.values(), *shared]
    )
    command.__annotations__ = {**function.__annotations__, **added}
    return command


_QUEUE = typer.Argument(
    help="A queue's physical name, or 1 to 4 names from the top of the tree (or joined by /).",
    autocompletion=_known_queues,
    show_default=False,
)
QueueArgument = Annotated[list[str], _QUEUE]
OptionalQueueArgument = Annotated[list[str] | None, _QUEUE]
LimitOption = Annotated[int | None, option("--limit N", "At most this many messages.")]
WhereOption = Annotated[str | None, option("--where CONDITIONS", "Only messages with these properties.")]
PropertiesOption = Annotated[list[str] | None, option("--property -p NAME=VALUE", "A property; may be repeated.")]
MasterOption = Annotated[str, option("--master URL", "The Spark master to evaluate on.", show_default=True)]
ConfOption = Annotated[list[str] | None, option("--conf KEY=VALUE", "A setting of Spark; may be repeated.")]
KeyArgument = Annotated[str, argument("KEY", "A message key such as 00001.00042.")]


def opened(*, create: bool = False) -> Postroom:
    """The room of this command.

    Locks belong to the calling shell, so they outlast the command and end with the shell. A room that was not there
    before is told: its name may be mistyped, or the folder another one.
    """
    from postroom.interfaces.opening import is_served
    from postroom.interfaces.opening import open as open_room
    from postroom.room.parts import Announcement
    from postroom.store.kernel.owner import process_token

    Announcement.tell = settings.tell if sys.stderr is not None and sys.stderr.isatty() else None
    room = open_room(settings.room, create=create, owner=process_token(os.getppid()), token=settings.token)
    if not is_served(room.url) and room.store.made and settings.tell is not None:
        settings.tell(f"made a new room: {room.store.session.place}")
    return room


def spark_settings(words: list[str] | None) -> dict[str, str]:
    """The settings of ``--conf``."""
    settings = {}
    for word in words or []:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise ArgumentInvalid(argument="--conf", why=f"KEY=VALUE, not {word!r}")
        settings[key] = value
    return settings


def exported_password(otherwise: str) -> str | None:
    """The password in the environment, which has precedence. If it is refused, the error says where it came from."""
    given = os.environ.get("POSTROOM_PASSWORD")
    if given is not None:
        settings.password_source = f"came from $POSTROOM_PASSWORD; unset it to {otherwise}"
    return given


def with_password_source(error: PostroomError) -> PostroomError:
    """An error that says where the password came from, if it was not typed."""
    if not settings.password_source:
        return error
    if isinstance(error, PasswordWrong):
        return PasswordWrong(**error.facts | {"source": f" (it {settings.password_source})"})
    if isinstance(error, PrincipalRefused):
        why = f"{error.facts['why']} (the password {settings.password_source})"
        return PrincipalRefused(**error.facts | {"why": why})
    return error


def password_source(prompt: str) -> Callable[[], str]:
    """Where to get a password: environment, terminal, or a line of standard input; never an argument."""

    def ask() -> str:
        given = exported_password("be asked, or to give it on standard input")
        if given is not None:
            return given
        if _is_typed():
            return getpass.getpass(f"{prompt}: ")
        line = sys.stdin.readline() if sys.stdin is not None else ""
        if not line:
            raise ArgumentInvalid(
                argument="password", why="set POSTROOM_PASSWORD, or give it on standard input or a terminal"
            )
        return line.rstrip("\r\n")

    return ask


def _is_typed() -> bool:
    """Whether a password that is not in the environment is asked for at the terminal."""
    return sys.stdin is not None and sys.stdin.isatty()


def password_at_hand() -> bool:
    """Whether a password is available without reading standard input, which may be a pipe without a writer."""
    return "POSTROOM_PASSWORD" in os.environ or _is_typed()


def typed_password(level: str) -> str:
    """The current password of a level, from the environment or the terminal."""
    return password_source(f"current password of {level}")()


def known_password(prompt: str) -> str | Callable[[], str]:
    """An existing password from the environment or standard input, or a function that asks for it."""
    ask = password_source(prompt)
    if _is_typed() and "POSTROOM_PASSWORD" not in os.environ:
        return ask
    try:
        return ask()
    except ArgumentInvalid:  # nothing was given: that is told if a password is needed
        return ask


def new_password(prompt: str) -> str:
    """A new password; at a terminal it is typed twice."""
    password = password_source(prompt)()
    typed = "POSTROOM_PASSWORD" not in os.environ and _is_typed()
    if typed and getpass.getpass(f"{prompt}, again: ") != password:
        raise ArgumentInvalid(argument="password", why="the two are not the same; nothing was changed")
    return password


def standard_input() -> str | None:
    """Standard input; None at a terminal."""
    if sys.stdin is None or sys.stdin.isatty():
        return None
    data = sys.stdin.buffer.read()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ArgumentInvalid(argument="standard input", why=f"byte {error.start + 1} is not UTF-8") from None


def named_values(given: list[str]) -> dict[str, Value]:
    """Properties given as NAME=VALUE."""
    values: dict[str, Value] = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ArgumentInvalid(argument="--property", why=f"{pair!r} is not NAME=VALUE")
        values[name] = value
    return values
