"""``postroom receive``: the next message, a segment of it, or all that come."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.errors import ArgumentInvalid, QueueHeld
from postroom.interfaces.cli import output
from postroom.interfaces.cli.commands.consumers import receive_leased
from postroom.interfaces.cli.context import OptionalQueueArgument, WhereOption, opened, option, settings
from postroom.limits import FOLLOW_SECONDS
from postroom.model.digits import digits_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from postroom.model.message import Message
    from postroom.queues.results import Received
    from postroom.room import Postroom


class Shown(StrEnum):
    """How a received message is written."""

    BODY = "body"
    JSONL = "jsonl"


LeaseOption = Annotated[
    str | None, option("--lease SECONDS|policy", "Lease it: it stays in its queue until it is done.")
]
CountOption = Annotated[int | None, option("--count N", "With --lease: at most so many messages.")]


def receive(
    queue: OptionalQueueArgument = None,
    segment: Annotated[
        bool, option("--segment -s", "One line of the message; the queue stays locked for you.")
    ] = False,
    wait: Annotated[float | None, option("--wait -w SECONDS", "Wait for a message.")] = None,
    follow: Annotated[bool, option("--follow", "Keep receiving, until Ctrl-C or --wait is over.")] = False,
    format: Annotated[
        Shown, option("--format", "body: what it says; jsonl: the whole message as a line of JSON.", show_default=True)
    ] = Shown.BODY,
    or_fail: Annotated[bool, option("--or-fail", "Exit with 3 if there is nothing to receive.")] = False,
    area: Annotated[int | None, option("--area BYTES", "A portion of at most so many bytes.")] = None,
    lease: LeaseOption = None,
    count: CountOption = None,
    where: WhereOption = None,
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
      postroom receive desk --follow --wait 0 --format jsonl > messages.jsonl
      while postroom receive INP_0002 --or-fail; do :; done
      postroom receive orders --lease 30
      postroom receive orders --where "region = 'EU' and total > 100"
    """
    if format is Shown.JSONL and (segment or settings.json):
        raise ArgumentInvalid(argument="--format", why="jsonl is for whole messages, and without --json")
    settings.jsonl = format is Shown.JSONL
    if lease is not None:
        if follow or segment or area is not None or settings.jsonl:
            why = "it goes with none of --follow, --segment, --area and --format jsonl"
            raise ArgumentInvalid(argument="--lease", why=why)
        receive_leased(queue or [], lease, wait, or_fail, count, where)
        return
    if count is not None:
        raise ArgumentInvalid(argument="--count", why="it goes with --lease")
    if follow and area is not None:
        raise ArgumentInvalid(argument="--area", why="it does not go with --follow")
    from postroom.interfaces.opening import is_served

    with opened() as it:
        if follow:
            _follow(it, queue or [], wait, where)
            return
        in_parts = (segment or area is not None) and is_served(it.url)  # then it is final when it arrives
        received = it.receive(
            *(queue or ()),
            segment=segment,
            wait=wait,
            deliver=None if in_parts else partial(_show_received, segment=segment),
            area=area,
            where=where,
        )
        if received.message is None or in_parts:
            _show_received(received, segment)
    if or_fail and received.message is None:
        raise typer.Exit(3)


def _follow(it: Postroom, queue: list[str], wait: float | None, where: str | None) -> None:
    if where is None and it.spheres.is_state(queue):
        _follow_state(it, queue, wait)
    else:
        follow_queue(it, queue, wait, where)


def follow_queue(it: Postroom, queue: list[str], wait: float | None, where: str | None = None) -> None:
    """Print each message as it arrives; with --json one document per line.

    With --wait until none has come for so long.
    """
    try:
        while True:
            try:
                seconds = FOLLOW_SECONDS if wait is None else wait
                received = it.receive(*queue, wait=seconds, deliver=_show_message, where=where).message
            except QueueHeld:  # whoever follows goes on when the queue is enabled
                received = None
            if received is None and wait is not None:
                return
    except KeyboardInterrupt:
        output.note("")


def _follow_state(it: Postroom, queue: list[str], wait: float | None) -> None:
    """Print the content of a state and new arrivals; nothing is taken out."""
    try:
        for come in it.spheres.follow_state(queue[0], wait):
            why = f": {come['reason']}" if come["reason"] else ""
            output.answer(come, f"{come['entity']} is {come['state']}{why}")
    except KeyboardInterrupt:
        output.note("")


def _show_message(received: Received) -> None:
    message = received.message
    assert message is not None
    output.deliver(message, partial(output.as_json, message.as_dict()) if settings.json else _written(message))


def _written(message: Message) -> Callable[[], None]:
    """A function that writes a message: its body, or as one JSON line."""
    if settings.jsonl:
        return lambda: output.say(digits_json(message.as_dict()))
    return lambda: output.say(message.body)


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
        output.deliver(message, _written(message))
    if segment and received.end_of_message:
        output.note("end of message")
