"""Commands on COBOL programs: cobol …"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Annotated, Any

from postroom.errors import ArgumentInvalid, FileUnreadable, PostroomError
from postroom.interfaces.cli import output
from postroom.interfaces.cli.context import Commands, argument, opened, option, settings
from postroom.interfaces.cli.suggestions import SuggestingGroup

_OWN = ("-h", "--help", "--room", "--json")


class _Programs(SuggestingGroup):
    """``postroom cobol FILE`` is short for ``postroom cobol translate FILE``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in _OWN:
            args = ["translate", *args]
        return super().parse_args(ctx, args)


cobol_app = Commands(
    cls=_Programs,
    help="COBOL programs with a COMMUNICATION SECTION. postroom cobol FILE is short for translate FILE.",
)

FileArgument = Annotated[Path, argument("FILE", "A COBOL program.")]
FreeOption = Annotated[bool | None, option("--free/--fixed", "How lines are written. Default: by the first division.")]
FolderOption = Annotated[list[Path] | None, option("-I --copybooks FOLDER", "Copybooks; may be repeated.")]
CardsOption = Annotated[Path | None, option("--cards FILE", "Words to replace: WORD TEXT, a line each.")]
StandardOption = Annotated[str | None, option("--std NAME", "The dialect, as cobc -std has it.")]


def _options(free: bool | None, folders: list[Path] | None, cards: Path | None) -> Any:
    from postroom.interfaces.cobol.precompiler import Options, read_cards
    from postroom.interfaces.cobol.source import Layout

    layout = None if free is None else Layout.FREE if free else Layout.FIXED
    return Options(layout, tuple(folders or ()), {} if cards is None else read_cards(cards))


@cobol_app.command("translate")
def cobol_translate(
    file: FileArgument,
    to: Annotated[Path | None, option("-o --output FILE", "The file to write.")] = None,
    free: FreeOption = None,
    copybooks: FolderOption = None,
    cards: CardsOption = None,
) -> None:
    """Translate the COMMUNICATION SECTION and its verbs into calls of libpostroom.

    The result is COBOL in free format for GnuCOBOL; the compiler's errors name the lines of FILE.

    \b
    Examples:
      postroom cobol teller.cob -o teller.out.cob
      postroom cobol CM101M.CBL --cards cards.txt
    """
    from postroom.exchange.output_file import refuse_room
    from postroom.interfaces.cobol.precompiler import precompile

    text = precompile(file, _options(free, copybooks, cards)).encode(errors="surrogateescape")
    if to is None and settings.json:
        output.as_json({"file": str(file), "output": text.decode(errors="replace")})
        return
    if to is None:
        sys.stdout.buffer.write(text)
        sys.stdout.flush()
        return
    refuse_room(to)
    try:
        to.write_bytes(text)
    except OSError as error:
        raise FileUnreadable(file=str(to), why=error.strerror or str(error)) from None
    output.answer({"file": str(to)}, f"wrote {to}")


@cobol_app.command("build")
def cobol_build(
    file: FileArgument,
    to: Annotated[Path, option("-o --output FILE", "The program.")],
    free: FreeOption = None,
    copybooks: FolderOption = None,
    cards: CardsOption = None,
    std: StandardOption = None,
) -> None:
    """Translate, compile and link a program (needs cobc, of the Debian package gnucobol).

    \b
    Example:
      postroom cobol build teller.cob -o teller
    """
    from postroom.exchange.output_file import refuse_room
    from postroom.interfaces.cobol.building import build

    refuse_room(to)
    build(file, to, _options(free, copybooks, cards), std)
    output.answer({"file": str(to)}, f"made {to}")


@cobol_app.command("run", context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True})
def cobol_run(
    file: FileArgument,
    words: Annotated[list[str] | None, argument("[WORDS]...", "Arguments for the program.")] = None,
    free: FreeOption = None,
    copybooks: FolderOption = None,
    cards: CardsOption = None,
    std: StandardOption = None,
) -> None:
    """Compile a program if that was not done, and run it with the rest of the line.

    Its queues are those of --room, else of $POSTROOM_URL, else of ./postroom.db: the working directory chooses
    them. As a COMMAND LINE of a queue description, the program starts with its CD FOR INITIAL INPUT filled in.

    \b
    Examples:
      postroom cobol run teller.cob
      POSTROOM_SOURCE=TERM-1 postroom cobol run entry.cob
    """
    from postroom.gateways.compiler import become
    from postroom.interfaces.cobol.building import built

    become(built(file, _options(free, copybooks, cards), std).absolute(), words or [], settings.room)


@cobol_app.command("library")
def cobol_library() -> None:
    """Print where libpostroom is: postroom.h, postroom.c and the object file, which is made if it is not there.

    \b
    Example:
      postroom cobol library
    """
    from postroom.interfaces.cobol.building import LIBRARY, library

    made = library()
    output.answer({"folder": str(LIBRARY), "file": str(made)}, f"-I{LIBRARY} {made}")


@cobol_app.command("session", hidden=True)
def cobol_session(
    descriptor: Annotated[int, argument("NUMBER", "An open socket.")],
) -> None:
    """Answer the calls of one program. Programs start this by themselves.

    \b
    Example:
      postroom cobol session 5
    """
    from postroom.interfaces.cobol.process import refuse_all, serve

    try:
        connection = socket.socket(fileno=descriptor)
    except OSError as error:
        raise ArgumentInvalid(argument="NUMBER", why=error.strerror or str(error)) from None
    encoding = os.environ.get("POSTROOM_ENCODING") or "utf-8"
    with connection:
        try:
            with opened() as it:
                serve(it, connection, encoding=encoding, source=os.environ.get("POSTROOM_SOURCE") or None)
        except PostroomError as error:
            refuse_all(connection, error)
            raise
