"""Commands on queues themselves: disable, enable, hierarchy, queue …"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.interfaces.cli import output
from postroom.interfaces.cli.commands.consumers import queue_policy
from postroom.interfaces.cli.context import (
    Commands,
    QueueArgument,
    argument,
    known_password,
    new_password,
    opened,
    option,
    password_source,
    settings,
)
from postroom.queues import status

if TYPE_CHECKING:
    from postroom.queues.results import Held

queue_app = Commands(help="Create, remove and configure single queues.")


class Processed(StrEnum):
    """What happens to a message once it was received."""

    KEEP = "keep"
    DISCARD = "discard"


def disable(
    queue: QueueArgument,
    input_only: Annotated[
        bool, option("--input-only", "Only stop sends; messages can still be received (ANSI).")
    ] = False,
    output_only: Annotated[
        bool, option("--output-only", "Only stop receives; messages are accepted and wait (ANSI).")
    ] = False,
) -> None:
    """Put a queue or level on hold.

    It then neither accepts nor releases messages. Waiting receivers continue when it is enabled. The password of the
    named level is read from $POSTROOM_PASSWORD, else from the terminal, else from a line of standard input.

    \b
    Example:
      postroom disable MASTER-QUEUE SUBQ-1
    """
    with opened() as it:
        password = known_password(f"password of {' '.join(queue)}")
        held = it.queues.disable(*queue, password=password, input_only=input_only, output_only=output_only)
    _show_hold(held, "on hold for input" if input_only else "on hold for output" if output_only else "on hold")


def enable(queue: QueueArgument) -> None:
    """Take a queue or level off hold.

    \b
    Example:
      POSTROOM_PASSWORD=SUB1 postroom enable MASTER-QUEUE SUBQ-1
    """
    with opened() as it:
        held = it.queues.enable(*queue, password=known_password(f"password of {' '.join(queue)}"))
    _show_hold(held, "enabled")


def hierarchy() -> None:
    """Print the tree of queues as a description.

    Loading the output gives the same tree. Passwords are printed as hashes, because only hashes are stored.

    \b
    Example:
      postroom hierarchy > copy.qdl
    """
    with opened() as it:
        text, levels = it.definitions.hierarchy(), it.definitions.levels()
    if settings.json:
        shape = [
            {
                "path": level.path.split("/"),
                "level": level.level,
                "role": level.role,
                "leaf": level.leaf,
                "command": level.command,
                "timeout": level.timeout,
                "has_password": bool(level.password),
            }
            for level in levels
        ]
        output.as_json({"description": text, "levels": shape})
    elif text:
        output.say(text)
    else:
        output.note("this room has no queue description: postroom load FILE.qdl")


@queue_app.command("create")
def queue_create(
    name: Annotated[str, argument("NAME")],
    discard_processed: Annotated[
        bool, option("--discard-processed", "Delete each message after it was received.")
    ] = False,
    with_password: Annotated[bool, option("--with-password", "Ask for a password for disable/enable.")] = False,
) -> None:
    """Create a queue without a description file.

    \b
    Example:
      postroom queue create orders
    """
    from postroom.queues.tree.administration import check_queue_name

    check_queue_name(name)
    password = new_password(f"password for {name}") if with_password else None
    with opened(create=True) as it:
        it.queues.create(name, keep_processed=not discard_processed, password=password)
    output.answer({"queue": name}, f"created {name}")


@queue_app.command("list")
def queue_list() -> None:
    """List the queues of the room with their counts, as postroom count does.

    \b
    Example:
      postroom queue list
    """
    from postroom.interfaces.cli.commands.listings import count

    count()


@queue_app.command("remove")
def queue_remove(
    name: Annotated[str, argument("NAME")],
) -> None:
    """Remove a queue that has no unprocessed messages and is in no description.

    \b
    Example:
      postroom queue remove orders
    """
    with opened() as it:
        it.queues.remove(name)
    output.answer({"queue": name}, f"removed {name}")


@queue_app.command("mode")
def queue_mode(
    processed: Annotated[Processed, typer.Argument(help="What to do with processed messages.", show_default=False)],
    queue: QueueArgument,
) -> None:
    """Keep or discard processed messages (also those kept until now).

    \b
    Example:
      postroom queue mode discard MASTER-QUEUE SUBQ-3
    """
    with opened() as it:
        changed = it.queues.set_mode(*queue, keep_processed=processed is Processed.KEEP)
    output.answer(
        {"status": status.DONE if changed else status.ALREADY, "changed": changed},
        f"{processed.value}: {', '.join(changed)}" if changed else f"already set: {processed.value}",
    )


queue_app.command("policy")(queue_policy)


@queue_app.command("password")
def queue_password(queue: QueueArgument) -> None:
    """Set the password of a queue or level.

    Its current password, or else that of the nearest level above, is asked for first. On standard input: one line with
    the current one, then the new one.

    \b
    Example:
      postroom queue password orders
    """
    with opened() as it:
        old = (
            password_source("current password, or that of the level above")()
            if it.queues.has_password(*queue)
            else None
        )
        it.queues.set_password(*queue, password=new_password("new password"), old=old)
    output.answer({}, "password set")


def _show_hold(held: Held, state: str) -> None:
    if settings.json:
        output.as_json(held.as_dict())
    elif held.status == status.ALREADY:
        output.say(f"already {state}")
    else:
        output.say(f"{state}: {', '.join(held.changed)}")
