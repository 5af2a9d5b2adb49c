"""Commands on queues: send, receive, count, peek, history, disable, enable, hierarchy, queue …"""

from __future__ import annotations

import sys
from enum import StrEnum
from functools import partial
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.errors import ArgumentInvalid, QueueHeld, QueueLocked, QueueUnknown
from postroom.interfaces.cli import output
from postroom.interfaces.cli.context import (
    Commands,
    LimitOption,
    OptionalQueueArgument,
    QueueArgument,
    known_password,
    new_password,
    opened,
    password_source,
    settings,
)
from postroom.limits import FOLLOW_SECONDS
from postroom.model.body import Format
from postroom.model.moment import to_iso
from postroom.model.spelling import written
from postroom.queues import status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from postroom.model.message import Message, Value
    from postroom.queues.results import Held, Listing, Received
    from postroom.room import Postroom

queue_app = Commands(help="Create, remove and configure single queues.")


class Processed(StrEnum):
    """What happens to a message once it was received."""

    KEEP = "keep"
    DISCARD = "discard"


def send(
    queue: QueueArgument,
    body: Annotated[
        str | None, typer.Option("--body", "-b", metavar="TEXT", help="The message.", show_default=False)
    ] = None,
    format: Annotated[Format, typer.Option("--format", "-f", help="How the body is written.")] = Format.TEXT,
    type: Annotated[
        str | None, typer.Option("--type", metavar="NAME", help="A message type it must fit.", show_default=False)
    ] = None,
    property: Annotated[
        list[str] | None,
        typer.Option("--property", "-p", metavar="NAME=VALUE", help="A property; may be repeated.", show_default=False),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option("--also", metavar="QUEUE", help="One more destination; may be repeated.", show_default=False),
    ] = None,
    idempotency_key: Annotated[
        str | None,
        typer.Option(
            "--idempotency-key", metavar="TEXT", help="Makes a retry safe: the same key sends once.", show_default=False
        ),
    ] = None,
    cause: Annotated[
        str | None,
        typer.Option("--cause", metavar="KEY", help="The message that caused this one.", show_default=False),
    ] = None,
) -> None:
    """Send a message to a queue.

    The body is --body, or standard input. On a terminal, type lines and end with one that starts with a full stop. With
    --also, the queues that can accept the message get it, and the others are listed (exit code 1).

    \b
    Examples:
      postroom send MASTER-QUEUE SUBQ-1 QUE1A --body "order 17"
      postroom send INP_0002 < order.txt
      postroom send orders --format json --body '{"id": 17}' --property customer=Oscar
      postroom send OQ3 --also OQ4 --body "closing time"
    """
    properties = _properties(property or [])
    with opened() as it:
        if not also:
            _refuse_message(it, queue)
        text = _standard_input() if body is None else body
        if also:
            for option, given in (("--idempotency-key", idempotency_key), ("--cause", cause)):
                if given is not None:
                    raise ArgumentInvalid(argument=option, why="it goes with one destination, not with --also")
            every = ["/".join(queue), *also]
            shared = it.queues.distribute(every, text, format=format, type=type, properties=properties)
            if settings.json:
                output.as_json(shared.as_dict())
            else:
                output.table(
                    ["queue", "key", "refused"], [(one.queue, one.key, one.reason) for one in shared.deliveries]
                )
            if shared.status != status.DONE:
                raise typer.Exit(1)
            return
        once = idempotency_key
        sent = it.send(queue, text, format=format, type=type, properties=properties, idempotency_key=once, cause=cause)
    output.as_json(sent.as_dict()) if settings.json else output.say(sent.key)


def receive(
    queue: OptionalQueueArgument = None,
    segment: Annotated[
        bool, typer.Option("--segment", "-s", help="One line of the message; the queue stays locked for you.")
    ] = False,
    wait: Annotated[
        float | None, typer.Option("--wait", "-w", metavar="SECONDS", help="Wait for a message.", show_default=False)
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Keep receiving, until Ctrl-C or --wait is over.")] = False,
    or_fail: Annotated[bool, typer.Option("--or-fail", help="Exit with 3 if there is nothing to receive.")] = False,
) -> None:
    """Receive the next message of a queue or level.

    Below a level, it receives from the first non-empty queue, left to right. The message goes to standard output; empty
    queues on the way are listed on standard error.

    \b
    Examples:
      postroom receive MASTER-QUEUE
      postroom receive INP_0002 --segment
      postroom receive MASTER-QUEUE SUBQ-3 --wait 30 --json
      postroom receive desk --follow
      while postroom receive INP_0002 --or-fail; do :; done
    """
    with opened() as it:
        if follow:
            follow_one = _follow_state if it.spheres.is_state(queue or ()) else follow_queue
            follow_one(it, queue or [], wait)
            return
        received = it.receive(
            *(queue or ()), segment=segment, wait=wait, deliver=partial(_show_received, segment=segment)
        )
        if received.message is None:
            _show_received(received, segment)
    if or_fail and received.message is None:
        raise typer.Exit(3)


def follow_queue(it: Postroom, queue: list[str], wait: float | None) -> None:
    """Each message as it comes; with --json a document a line. With --wait until none has come for so long."""
    try:
        while True:
            try:
                seconds = FOLLOW_SECONDS if wait is None else wait
                received = it.receive(*queue, wait=seconds, deliver=_show_message).message
            except QueueHeld:  # whoever follows goes on when the queue is enabled
                received = None
            if received is None and wait is not None:
                return
    except KeyboardInterrupt:
        output.note("")


def _follow_state(it: Postroom, queue: list[str], wait: float | None) -> None:
    """What is in a state of a machine, and what comes into it; nothing is taken out."""
    try:
        for come in it.spheres.follow_state(queue[0], wait):
            why = f": {come['reason']}" if come["reason"] else ""
            output.as_json(come) if settings.json else output.say(f"{come['entity']} is {come['state']}{why}")
    except KeyboardInterrupt:
        output.note("")


def count(queue: OptionalQueueArgument = None) -> None:
    """Count the messages of a queue, a level or the room. Alias: accept.

    \b
    Examples:
      postroom count
      postroom count MASTER-QUEUE SUBQ-3
    """
    _show_counts(queue or [])


def accept(queue: OptionalQueueArgument = None) -> None:
    """The same as count: an alias, the name that Multics gave it.

    \b
    Example:
      postroom accept
    """
    _show_counts(queue or [])


def _show_counts(queue: list[str]) -> None:
    with opened() as it:
        accepted = it.count(*queue)
    if settings.json:
        output.as_json(accepted.as_dict())
    elif not accepted.queues:
        output.note("this room has no queues yet: postroom load FILE.qdl, or postroom queue create NAME")
    else:
        output.table(
            ["queue", "path", "unprocessed", "processed", "state"],
            [
                (
                    count.queue,
                    " ".join(count.path),
                    count.unprocessed,
                    count.processed,
                    _HELD[count.hold.label] or _lock(count.locked_by),
                )
                for count in accepted.queues
            ],
        )


def peek(queue: QueueArgument, limit: LimitOption = None) -> None:
    """Show unprocessed messages without receiving them. Alias: info.

    \b
    Example:
      postroom peek MASTER-QUEUE --limit 10
    """
    with opened() as it:
        _show(it.peek(*queue, limit=limit), "no unprocessed message")


def info(queue: QueueArgument, limit: LimitOption = None) -> None:
    """The same as peek: an alias, the name that Multics gave it.

    \b
    Example:
      postroom info MASTER-QUEUE
    """
    peek(queue, limit)


def history(queue: QueueArgument, limit: LimitOption = None) -> None:
    """Show processed messages with their times.

    \b
    Example:
      postroom history INP_0000
    """
    with opened() as it:
        _show(it.queues.history(*queue, limit=limit), "no processed message")


def disable(
    queue: QueueArgument,
    input_only: Annotated[
        bool, typer.Option("--input-only", help="Only stop sends; messages can still be received (ANSI).")
    ] = False,
    output_only: Annotated[
        bool, typer.Option("--output-only", help="Only stop receives; messages are accepted and wait (ANSI).")
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
        output.as_json({"status": status.DONE, "description": text, "levels": shape})
    elif text:
        output.say(text)
    else:
        output.note("this room has no queue description: postroom load FILE.qdl")


@queue_app.command("create")
def queue_create(
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False)],
    discard_processed: Annotated[
        bool, typer.Option("--discard-processed", help="Delete each message after it was received.")
    ] = False,
    with_password: Annotated[
        bool, typer.Option("--with-password", help="Ask for a password for disable/enable.")
    ] = False,
) -> None:
    """Create a queue without a description file.

    \b
    Example:
      postroom queue create orders
    """
    from postroom.queues.administration import check_queue_name

    check_queue_name(name)
    password = new_password(f"password for {name}") if with_password else None
    with opened(create=True) as it:
        it.queues.create(name, keep_processed=not discard_processed, password=password)
    output.as_json({"status": status.DONE, "queue": name}) if settings.json else output.say(f"created {name}")


@queue_app.command("list")
def queue_list() -> None:
    """List the queues of the room with their counts, as postroom count does.

    \b
    Example:
      postroom queue list
    """
    _show_counts([])


@queue_app.command("remove")
def queue_remove(
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False)],
) -> None:
    """Remove a queue that has no unprocessed messages and is in no description.

    \b
    Example:
      postroom queue remove orders
    """
    with opened() as it:
        it.queues.remove(name)
    output.as_json({"status": status.DONE, "queue": name}) if settings.json else output.say(f"removed {name}")


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
    if settings.json:
        output.as_json({"status": status.DONE if changed else status.ALREADY, "changed": changed})
    else:
        output.say(f"{processed.value}: {', '.join(changed)}" if changed else f"already set: {processed.value}")


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
    output.as_json({"status": status.DONE}) if settings.json else output.say("password set")


def _refuse_message(it: Postroom, words: list[str]) -> None:
    """Raise if a queue is followed by words that are not below it: they were meant as the message."""
    if len(words) == 1 or _is_there(it, words):
        return
    known = {name for count in it.count().queues for name in (count.queue, "/".join(count.path))}
    for place in range(len(words) - 1, 0, -1):
        if "/".join(words[:place]) in known:
            queue = " ".join(map(written, words[:place]))
            why = f"{queue} is a queue; the message goes with --body: postroom send {queue} --body …"
            raise ArgumentInvalid(argument=shortened(words[place]), why=why)


def _is_there(it: Postroom, words: list[str]) -> bool:
    try:
        it.count(*words)
    except QueueLocked:
        pass  # by someone who reads a message of it
    except (ArgumentInvalid, QueueUnknown):
        return False
    return True


def _standard_input() -> str:
    if sys.stdin is None:
        raise ArgumentInvalid(argument="standard input", why="it is closed; give the message with --body")
    if not sys.stdin.isatty():
        data = sys.stdin.buffer.read()
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise ArgumentInvalid(argument="standard input", why=f"byte {error.start + 1} is not UTF-8") from None
    output.note("type the message; end it with a line that starts with '.'")
    lines = []
    for line in _typed_lines():
        if line.startswith("."):
            break
        lines.append(line.removesuffix("\n"))
    else:
        if not lines:
            raise ArgumentInvalid(argument="standard input", why="nothing was typed, so nothing was sent")
    # The newline that ends a last line may be left out, unless that line is empty: then it is all there is of it.
    return "\n".join(lines) + ("" if lines and lines[-1] else "\n" if lines else "")


def _typed_lines() -> Iterator[str]:
    """Lines from the terminal with their own ends: as text, Python would take a carriage return for a line's end."""
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            why = f"byte {error.start + 1} of line {number} is not UTF-8"
            raise ArgumentInvalid(argument="standard input", why=why) from None


def _properties(given: list[str]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ArgumentInvalid(argument="--property", why=f"{pair!r} is not NAME=VALUE")
        found[name] = value
    return found


def _show(listing: Listing, nothing: str) -> None:
    if settings.json:
        output.messages_as_json(listing)
        return
    rows = [_row(message) for message in listing]
    if rows:
        output.table(["key", "queue", "created", "processed", "message"], rows)
    else:
        output.note(nothing)


def _show_message(received: Received) -> None:
    message = received.message
    assert message is not None
    say = partial(output.as_json, message.as_dict()) if settings.json else partial(output.say, message.body)
    output.deliver(message, say)


def _show_received(received: Received, segment: bool) -> None:
    message = received.message
    if settings.json:
        write = partial(output.as_json, received.as_dict())
        write() if message is None else output.deliver(message, write)
        return
    for name in received.passed:
        output.note(f"no unprocessed message in {name}")
    for name in received.held:
        output.note(f"{name} is on hold")
    if message is not None:
        output.deliver(message, lambda: output.say(message.body))
    if segment and received.end_of_message:
        output.note("end of message")


def _row(message: Message) -> tuple[str, str, str, str, str]:
    processed = to_iso(message.processed) if message.processed else ""
    said = "(damaged: it does not match its hash)" if message.corrupt else message.body.removesuffix("\n")
    return message.key, message.queue, to_iso(message.created), processed, said


def _show_hold(held: Held, state: str) -> None:
    if settings.json:
        output.as_json(held.as_dict())
    elif held.status == status.ALREADY:
        output.say(f"already {state}")
    else:
        output.say(f"{state}: {', '.join(held.changed)}")


_HELD = {"": "", "input only": "input held", "full": "held", "output only": "output held"}


def _lock(holder: str | None) -> str:
    return "" if holder is None else f"locked by {holder}"
