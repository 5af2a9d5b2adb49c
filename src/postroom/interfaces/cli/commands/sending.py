"""``postroom send``: a message from the words of the command, from standard input, or many from a file."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Annotated, Any

import typer

from postroom.errors import ArgumentInvalid, QueueLocked, QueueUnknown
from postroom.interfaces.cli import output
from postroom.interfaces.cli.commands.exchange import send_file
from postroom.interfaces.cli.context import (
    PropertiesOption,
    QueueArgument,
    named_values,
    opened,
    option,
    settings,
    standard_input,
)
from postroom.model.body import Format
from postroom.model.spelling import written
from postroom.queues import status

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from postroom.model.message import Value
    from postroom.queues.results import Distributed
    from postroom.room import Postroom

BodyOption = Annotated[str | None, option("--body -b TEXT", "The message.")]
AlsoOption = Annotated[list[str] | None, option("--also QUEUE", "One more destination; may be repeated.")]
SourceOption = Annotated[str | None, option("--source NAME", "The terminal it comes from.")]
SegmentsOption = Annotated[list[str] | None, option("--segment -s TEXT", "A segment; may be repeated.")]
IdempotencyOption = Annotated[
    str | None, option("--idempotency-key TEXT", "Makes a retry safe: the same key sends once.")
]
CauseOption = Annotated[str | None, option("--cause KEY", "The message that caused this one.")]
PriorityOption = Annotated[
    int, option("--priority 0-9", "Messages with a higher one are received first.", show_default=True)
]
DelayOption = Annotated[float | None, option("--delay SECONDS", "Delivered only after so many seconds.")]
AtOption = Annotated[
    str | None, option("--at TIME", "Delivered only from then on, such as 2026-01-31T07:00+02:00. Without a zone: UTC.")
]
ReplyToOption = Annotated[str | None, option("--reply-to QUEUE", "The queue for an answer.")]
CorrelationOption = Annotated[str | None, option("--correlation TEXT", "An id that the answer repeats.")]
ExpiresOption = Annotated[float | None, option("--expires SECONDS", "Not delivered after so many seconds.")]
RoomWaitOption = Annotated[float | None, option("--wait -w SECONDS", "Wait for room in a full queue.")]
FileOption = Annotated[str | None, option("--file FILE", "Many messages: .jsonl, .csv, .parquet, .txt.")]
MessagesOption = Annotated[
    bool, option("--messages", "With --file: rows are whole messages, as postroom export writes them.")
]
DelimiterOption = Annotated[
    str | None, option("--delimiter C", "With --file: what parts the columns of .csv. Default: a comma.")
]


FormatOption = Annotated[Format | None, option("--format -f", "How the body is written; see below for the default.")]
TypeOption = Annotated[str | None, option("--type NAME", "A message type it must fit.")]


def send(
    queue: QueueArgument,
    body: BodyOption = None,
    format: FormatOption = None,
    type: TypeOption = None,
    property: PropertiesOption = None,
    also: AlsoOption = None,
    idempotency_key: IdempotencyOption = None,
    cause: CauseOption = None,
    priority: PriorityOption = 0,
    delay: DelayOption = None,
    at: AtOption = None,
    expires: ExpiresOption = None,
    reply_to: ReplyToOption = None,
    correlation: CorrelationOption = None,
    wait: RoomWaitOption = None,
    file: FileOption = None,
    messages: MessagesOption = False,
    delimiter: DelimiterOption = None,
    source: SourceOption = None,
    segment: SegmentsOption = None,
    group: Annotated[bool, option("--group", "With --segment: it ends a group of messages.")] = False,
) -> None:
    """Send a message to a queue, or every row of a file.

    The body is --body, or standard input. On a terminal, type lines and end with one that starts with a full stop. With
    --also, the queues that can accept the message get it, and the others are listed (exit code 1).

    Without --format the body is text. But in a queue that rules or counters read, a body that begins with < is XML, and
    one that begins with { or [ is JSON; if it is not, it is refused. --format text stores it as it is.

    A file is sent in batches, and can be sent again after an error or a kill: rows that were sent before are recognised
    by their content, and left out. To send the same rows twice, give another --idempotency-key.

    \b
    Examples:
      postroom send MASTER-QUEUE SUBQ-1 QUE1A --body "order 17"
      postroom send INP_0002 < order.txt
      postroom send orders --format json --body '{"id": 17}' --property customer=Oscar
      postroom send OQ3 --also OQ4 --body "closing time"
      postroom send orders --file orders.csv
      postroom send orders --segment "JONES" --segment "NAILS 100" --source TERM-1
    """
    common: dict[str, Any] = {"format": format, "type": type, "properties": named_values(property or [])}
    single = {"--cause": cause, "--delay": delay, "--expires": expires, "--wait": wait, "--priority": priority or None}
    single |= {"--source": source, "--at": at, "--reply-to": reply_to, "--correlation": correlation}
    if file is not None or messages or delimiter is not None:
        beside = {**single, "--segment": segment, "--group": group or None, "--body": body, "--also": also}
        _send_rows(queue, file, beside, messages, delimiter, idempotency_key=idempotency_key, **common)
        return
    if segment or group:
        kept = {**single, "--source": None, "--idempotency-key": idempotency_key, "--body": body, "--also": also}
        kept |= {"--type": type, "--format": format}
        _refuse(kept, "it does not go with --segment")
        _send_segments(queue, segment or [], group, common["properties"], source)
        return
    with opened() as it:
        if not also:
            _refuse_message(it, queue)
        text = _standard_input() if body is None else body
        if also:
            _refuse({"--idempotency-key": idempotency_key, **single}, "it goes with one destination, not with --also")
            _show_shared(it.queues.distribute(["/".join(queue), *also], text, **common))
            return
        one: dict[str, Any] = {"idempotency_key": idempotency_key, "cause": cause, "source": source, "wait": wait}
        one |= {"at": _moment(at), "reply_to": reply_to, "correlation": correlation, "priority": priority}
        sent = it.queues.send(queue, text, delay=delay, expires=expires, **one, **common)
    output.answer(sent.as_dict(), sent.key)


def _send_rows(
    queue: list[str],
    file: str | None,
    beside: Mapping[str, object],
    messages: bool,
    delimiter: str | None,
    **options: Any,
) -> None:
    why = "with --file, the messages are the rows of the file"
    _refuse(beside, why)
    if file is None:
        _refuse({"--messages": messages or None, "--delimiter": delimiter}, why)
    send_file(queue, file or "", messages, delimiter=delimiter, **options)


def _moment(written: str | None) -> datetime | None:
    """A time as given; without a zone it is UTC."""
    try:
        moment = None if written is None else datetime.fromisoformat(written)
    except ValueError:
        why = f"{written!r} is no time such as 2026-01-31T07:00 or 2026-01-31T07:00+02:00"
        raise ArgumentInvalid(argument="--at", why=why) from None
    return moment if moment is None or moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _refuse(given: Mapping[str, object], why: str) -> None:
    """Raise if any of these options was given."""
    for name, value in given.items():
        if value is not None:
            raise ArgumentInvalid(argument=name, why=why)


def _send_segments(
    queue: list[str], segments: list[str], group: bool, properties: dict[str, Value], source: str | None
) -> None:
    if not segments:
        raise ArgumentInvalid(argument="--group", why="it goes with --segment")
    with opened() as it:
        sent = it.queues.send_segments(queue, segments, group=group, properties=properties, source=source)
    output.answer(sent.as_dict(), sent.key)


def _show_shared(shared: Distributed) -> None:
    if settings.json:
        output.as_json(shared.as_dict())
    else:
        output.table(["queue", "key", "refused"], [(one.queue, one.key, one.reason) for one in shared.deliveries])
    if shared.status != status.DONE:
        raise typer.Exit(1)


def _refuse_message(it: Postroom, words: list[str]) -> None:
    """Raise if a queue is followed by words that name no level below it: they were meant as the message."""
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
    text = standard_input()
    if text is not None:
        return text
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
    """Lines from the terminal with their line ends; text mode would treat a carriage return as one."""
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            why = f"byte {error.start + 1} of line {number} is not UTF-8"
            raise ArgumentInvalid(argument="standard input", why=why) from None
