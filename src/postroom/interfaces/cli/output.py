"""Printing: tables in colour on a terminal, plain when piped, one JSON document with ``--json``."""

from __future__ import annotations

import fcntl
import json
import os
import select
import stat
import sys
import termios
from array import array
from contextlib import contextmanager
from shlex import quote
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from postroom.errors import OutputFailed, PostroomError
from postroom.interfaces.cli.context import settings
from postroom.limits import READER_SECONDS
from postroom.model.digits import digits_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from postroom.model.message import Message
    from postroom.model.progress import OnProgress
    from postroom.queues.results import Listing


_EXCERPT_CHARS = 400  # of a body, at a terminal


def as_json(document: dict[str, Any]) -> None:
    """Print one document; it begins with its status, OK by default."""
    sys.stdout.write(digits_json({"status": "00"} | document) + "\n")


def listing_as_json(messages: Listing) -> None:
    """Print a listing as JSON while it is read, because it may be long."""
    sys.stdout.write('{"status": "00", "messages": [')
    for number, message in enumerate(messages):
        sys.stdout.write(", " if number else "")
        sys.stdout.write(digits_json(message.as_dict()))
    sys.stdout.write(f'], "next": {json.dumps(messages.next)}}}\n')


def say(text: str) -> None:
    """Print the answer itself."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def answer(document: dict[str, Any], text: str) -> None:
    """Print one answer: text for a person, the document with ``--json``."""
    as_json(document) if settings.json else say(text)


def deliver(message: Message, write: Callable[[], None]) -> None:
    """Write a message before its receive is committed: a failure here puts it back into its queue.

    Bytes in a pipe count only when they are read: if the reader leaves before, the message was not received.
    """
    try:
        if sys.stdout is None:
            raise OSError("standard output is closed")
        write()
        sys.stdout.flush()
        _await_reader()
    except BrokenPipeError:
        silence()  # the buffer still has it, and the next flush would fail once more
        raise
    except OSError as error:
        silence()
        raise OutputFailed(key=message.key, queue=message.queue, why=str(error)) from None


def _await_reader() -> None:
    """Wait until the reader of a pipe has read it, up to a limit; raise if the reader has gone."""
    try:
        pipe = sys.stdout.fileno()
    except (OSError, ValueError):  # not a file of the system: what is written is there
        return
    if not stat.S_ISFIFO(os.fstat(pipe).st_mode):
        return
    end, pause, errors = monotonic() + READER_SECONDS, 0.0005, select.poll()
    errors.register(pipe, 0)  # only whether all readers are gone
    while _unread(pipe):
        if errors.poll(0) and _unread(pipe):
            raise BrokenPipeError
        if monotonic() > end:
            return  # it keeps the pipe open, and will read in its own time
        sleep(pause)
        pause = min(2 * pause, 0.02)


def _unread(pipe: int) -> int:
    """The number of unread bytes in a pipe."""
    size = array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, size, True)
    return size[0]


def silence() -> None:
    """Discard buffered output: the interpreter's last flush would fail again."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def note(text: str) -> None:
    """Print a note about the answer to standard error, after all earlier output."""
    if sys.stdout is not None:
        sys.stdout.flush()
    sys.stderr.write(text + "\n")


@contextmanager
def progress(what: str) -> Iterator[OnProgress | None]:
    """A progress bar for work longer than a second; at a terminal only, removed at the end."""
    if settings.json or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table: boxed at a terminal, aligned columns in a pipe."""
    shown = [[one_line(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        from postroom.interfaces.cli.terminal import draw

        draw(headings, shown)
        return
    widths = [max(len(row[at]) for row in [list(headings), *shown]) for at in range(len(headings))]
    for row in [list(headings), *shown]:
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def one_line(cell: Any) -> str:
    """A cell without characters that break the table or the terminal."""
    text = "" if cell is None else str(cell)
    return "".join(character if character.isprintable() else "\ufffd" for character in text.replace("\n", "⏎"))


def on_hold(queue: str) -> str:
    """Why messages wait for a queue on hold, and what frees them."""
    return f"{queue} is on hold; free it with: postroom enable {quote(queue)}"


def damaged(key: str) -> str:
    """What is to be known of a message that does not match its hash."""
    return f"{key} is damaged: it does not match its hash, and nobody will receive it; see: postroom trace {key}"


def excerpt(body: Any) -> str:
    """A body on one line: its beginning at a terminal, all of it in a pipe."""
    text = " ".join(str(body).split())
    return f"{text[:_EXCERPT_CHARS]} …" if sys.stdout.isatty() and len(text) > _EXCERPT_CHARS else text


def failure(error: PostroomError) -> None:
    """Print an error: one line on stderr; with ``--json`` also status key and code on stdout."""
    line = one_line(" ".join(str(error).split()))
    sys.stderr.write(f"postroom: {error.code}: {line}\n")
    if settings.json:
        shape = {"code": error.code, "text": line, "happened": error.happened}
        as_json({"status": error.status, "error": shape})
