"""Commands that list the messages of queues and change nothing: count, peek, history."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from postroom.interfaces.cli import output
from postroom.interfaces.cli.context import (
    LimitOption,
    OptionalQueueArgument,
    QueueArgument,
    WhereOption,
    opened,
    settings,
)
from postroom.limits import SCREEN_MESSAGES
from postroom.model.moment import to_iso

if TYPE_CHECKING:
    from postroom.model.message import Message
    from postroom.queues.results import Listing

_HELD = {"": "", "input only": "input held", "full": "held", "output only": "output held"}


def count(queue: OptionalQueueArgument = None) -> None:
    """Count the messages of a queue, a level or the room. Alias: accept.

    \b
    Examples:
      postroom count
      postroom count MASTER-QUEUE SUBQ-3
    """
    with opened() as it:
        accepted = it.count(*(queue or ()))
    if settings.json:
        output.as_json(accepted.as_dict())
    elif not accepted.queues:
        output.note("this room has no queues yet: postroom load FILE.qdl, or postroom queue create NAME")
    else:
        # Columns that few rooms need are shown where there is something in them.
        aside = [name for name in ("leased", "delayed", "blocked") if any(getattr(c, name) for c in accepted.queues)]
        output.table(
            ["queue", "path", "unprocessed", "processed", *aside, "state"],
            [
                (
                    count.queue,
                    " ".join(count.path),
                    count.unprocessed,
                    count.processed,
                    *(getattr(count, name) for name in aside),
                    _HELD[count.hold.label] or _lock(count.locked_by),
                )
                for count in accepted.queues
            ],
        )


def accept(queue: OptionalQueueArgument = None) -> None:
    """The same as count: an alias, the name that Multics gave it.

    \b
    Example:
      postroom accept
    """
    count(queue)


def peek(queue: QueueArgument, limit: LimitOption = None, where: WhereOption = None) -> None:
    """Show unprocessed messages without receiving them. Alias: info.

    \b
    Example:
      postroom peek MASTER-QUEUE --limit 10
    """
    with opened() as it:
        _show(it.peek(*queue, limit=_most(limit), where=where), "no unprocessed message", limit)


def info(queue: QueueArgument, limit: LimitOption = None, where: WhereOption = None) -> None:
    """The same as peek: an alias, the name that Multics gave it.

    \b
    Example:
      postroom info MASTER-QUEUE
    """
    peek(queue, limit, where)


def history(queue: QueueArgument, limit: LimitOption = None) -> None:
    """Show processed messages with their times.

    \b
    Example:
      postroom history INP_0000
    """
    with opened() as it:
        _show(it.queues.history(*queue, limit=_most(limit)), "no processed message", limit)


def _most(limit: int | None) -> int | None:
    """How many messages to read for a listing: one more than is shown, to know if there are more."""
    return SCREEN_MESSAGES + 1 if limit is None and sys.stdout.isatty() and not settings.json else limit


def _show(listing: Listing, nothing: str, limit: int | None) -> None:
    if settings.json:
        output.listing_as_json(listing)
        return
    rows = [_row(message) for message in listing]
    more = len(rows) > SCREEN_MESSAGES and _most(limit) != limit
    if rows:
        headings = ["key", "queue", "created", "processed at", "message"]
        output.table(headings, rows[:SCREEN_MESSAGES] if more else rows)
    else:
        output.note(nothing)
    if more:
        output.note(f"the first {SCREEN_MESSAGES:,}; --limit N shows more, postroom count counts all")


def _row(message: Message) -> tuple[str, str, str, str, str]:
    processed = to_iso(message.processed) if message.processed else "blocked" if message.blocked else ""
    text = "(damaged: it does not match its hash)" if message.corrupt else message.body.removesuffix("\n")
    return message.key, message.queue, to_iso(message.created), processed, text


def _lock(holder: str | None) -> str:
    return "" if holder is None else f"locked by {holder}"
