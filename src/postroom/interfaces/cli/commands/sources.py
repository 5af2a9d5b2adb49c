"""Commands on sources, the terminals that messages come from: source …"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from postroom.interfaces.cli import output
from postroom.interfaces.cli.context import Commands, argument, known_password, new_password, opened, option, settings
from postroom.queues import status

if TYPE_CHECKING:
    from postroom.queues.results import Held

source_app = Commands(help="Sources: terminals by name, which may be disabled.")

SourceArgument = Annotated[str, argument("NAME", "The name of a source.")]


@source_app.command("create")
def source_create(
    name: SourceArgument,
    input: Annotated[str | None, option("--input QUEUE", "The queue that programs read from by an I-O CD.")] = None,
    to: Annotated[str | None, option("--output QUEUE", "The queue that programs write to by an I-O CD.")] = None,
    with_password: Annotated[bool, option("--with-password", "Ask for a password for disable/enable.")] = False,
) -> None:
    """Create a source.

    \b
    Example:
      postroom source create TERM-1
    """
    password = new_password(f"password for {name}") if with_password else None
    with opened() as it:
        it.queues.create_source(name, password=password, input=input, output=to)
    output.answer({"source": name}, f"created {name}")


@source_app.command("list")
def source_list() -> None:
    """List the sources.

    \b
    Example:
      postroom source list
    """
    with opened() as it:
        sources = it.queues.sources()
    if settings.json:
        output.as_json({"sources": [source.as_dict() for source in sources]})
    elif sources:
        rows = [(one.name, "" if one.enabled else "disabled", one.input or "", one.output or "") for one in sources]
        output.table(["source", "state", "input", "output"], rows)
    else:
        output.note("none; create one with: postroom source create NAME")


@source_app.command("remove")
def source_remove(name: SourceArgument) -> None:
    """Remove a source; messages that came from it keep its name.

    \b
    Example:
      postroom source remove TERM-1
    """
    with opened() as it:
        it.queues.remove_source(name)
    output.answer({"source": name}, f"removed {name}")


@source_app.command("disable")
def source_disable(name: SourceArgument) -> None:
    """Disable a source: nothing can be sent from it.

    \b
    Example:
      POSTROOM_PASSWORD=SECRET postroom source disable TERM-1
    """
    with opened() as it:
        held = it.queues.disable_source(name, known_password(f"password of {name}"))
    _show(held, "disabled", name)


@source_app.command("enable")
def source_enable(name: SourceArgument) -> None:
    """Enable a source.

    \b
    Example:
      POSTROOM_PASSWORD=SECRET postroom source enable TERM-1
    """
    with opened() as it:
        held = it.queues.enable_source(name, known_password(f"password of {name}"))
    _show(held, "enabled", name)


def _show(held: Held, state: str, name: str) -> None:
    text = f"already {state}" if held.status == status.ALREADY else f"{state}: {name}"
    output.answer(held.as_dict(), text)
