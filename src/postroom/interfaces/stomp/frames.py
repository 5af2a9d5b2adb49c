"""STOMP frames: parsed as they arrive, within limits, and written.

The head is UTF-8 lines up to an empty one; a body ends at a NUL, or after the length that the head gives.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from postroom.errors import RequestInvalid, RequestTooLarge
from postroom.limits import BODY_BYTES_MAX, STOMP_HEAD_BYTES_MAX, STOMP_HEADERS_MAX

#: What a client may say.
COMMANDS = frozenset(
    "CONNECT STOMP SEND SUBSCRIBE UNSUBSCRIBE ACK NACK BEGIN COMMIT ABORT DISCONNECT".split()  # in the standard's order
)
#: Frames whose headers are written as they are: so servers of version 1.0 understand them.
_PLAIN = frozenset({"CONNECT", "STOMP", "CONNECTED"})
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", ":": "\\c"}
_UNESCAPED = {written[1]: sign for sign, written in _ESCAPES.items()}
_WRITTEN = str.maketrans(_ESCAPES)
BEAT = b"\n"


class Frame(NamedTuple):
    """One frame of a client. The first one counts of a repeated header."""

    command: str
    headers: dict[str, str]
    body: bytes

    def need(self, name: str) -> str:
        """A required header."""
        try:
            return self.headers[name]
        except KeyError:
            raise RequestInvalid(where=f"{self.command} {name}", why="this header is missing") from None


class _Head(NamedTuple):
    command: str
    headers: dict[str, str]
    length: int | None  # of the body, if the head says it


class Parser:
    """Parses bytes as they arrive, and returns complete frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._head: _Head | None = None
        self._looked = 0  # up to where there is no end of what is being read

    @property
    def partial(self) -> bool:
        """Whether a frame is incomplete."""
        return self._head is not None or bool(self._buffer)

    def feed(self, data: bytes) -> list[Frame]:
        """The frames completed by these bytes; raises if they are invalid or too large."""
        self._buffer += data
        frames = []
        while (frame := self._next()) is not None:
            frames.append(frame)
        return frames

    def _next(self) -> Frame | None:
        if self._head is None:
            self._head = self._next_head()
            if self._head is None:
                return None
        body = self._next_body(self._head)
        if body is None:
            return None
        command, headers, _ = self._head
        self._head = None
        return Frame(command, headers, body)

    def _next_head(self) -> _Head | None:
        buffer = self._buffer
        if not self._looked:  # ends of lines between frames are signs of life
            del buffer[: len(buffer) - len(buffer.lstrip(b"\r\n"))]
        end, after = _blank_line(buffer, max(0, self._looked - 2))
        if end > STOMP_HEAD_BYTES_MAX or (end < 0 and len(buffer) > STOMP_HEAD_BYTES_MAX):
            raise RequestTooLarge(limit=STOMP_HEAD_BYTES_MAX)
        if end < 0:
            self._looked = len(buffer)
            return None
        head = _read_head(bytes(buffer[:end]))
        del buffer[:after]
        self._looked = 0
        return head

    def _next_body(self, head: _Head) -> bytes | None:
        buffer = self._buffer
        end = buffer.find(0, self._looked) if head.length is None else head.length
        if end > BODY_BYTES_MAX or (end < 0 and len(buffer) > BODY_BYTES_MAX):
            raise RequestTooLarge(limit=BODY_BYTES_MAX)
        if end < 0 or len(buffer) <= end:
            self._looked = len(buffer)
            return None
        if buffer[end] != 0:
            raise RequestInvalid(where=f"{head.command} content-length", why="after so many bytes there is no NUL")
        body = bytes(buffer[:end])
        del buffer[: end + 1]
        self._looked = 0
        return body


def _blank_line(buffer: bytearray, start: int) -> tuple[int, int]:
    """The end of a head, and the start of what follows; -1 if it is incomplete."""
    plain, returned = buffer.find(b"\n\n", start), buffer.find(b"\n\r\n", start)
    if plain >= 0 and (returned < 0 or plain < returned):
        return plain, plain + 2
    return returned, returned + 3


def _read_head(data: bytes) -> _Head:
    try:
        lines = [line.removesuffix("\r") for line in data.decode().split("\n")]
    except UnicodeDecodeError as error:
        raise RequestInvalid(where="frame", why=f"byte {error.start + 1} of its head is not UTF-8") from None
    command = lines[0]
    if command not in COMMANDS:
        raise RequestInvalid(where=f"frame {ascii(command)[:60]}", why=f"it is none of {', '.join(sorted(COMMANDS))}")
    if len(lines) - 1 > STOMP_HEADERS_MAX:
        raise RequestInvalid(where=command, why=f"it has more than {STOMP_HEADERS_MAX} headers")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or not name:
            raise RequestInvalid(where=f"{command} {ascii(line)[:60]}", why="a header is NAME:VALUE")
        if command not in _PLAIN:
            name, value = _unescaped(command, name), _unescaped(command, value)
        headers.setdefault(name, value)
    return _Head(command, headers, _length(command, headers.get("content-length")))


def _length(command: str, text: str | None) -> int | None:
    if text is None:
        return None
    digits = text.strip(" ")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 18:
        raise RequestInvalid(where=f"{command} content-length", why="it is not a number of bytes")
    return int(digits)


def _unescaped(command: str, text: str) -> str:
    if "\\" not in text:
        return text
    parts: list[str] = []
    signs = iter(text)
    for sign in signs:
        if sign == "\\":
            escaped = _UNESCAPED.get(next(signs, ""))
            if escaped is None:
                raise RequestInvalid(where=f"{command} {ascii(text)[:60]}", why=r"only \\, \n, \r and \c are escapes")
            sign = escaped
        parts.append(sign)
    return "".join(parts)


def written(command: str, headers: Iterable[tuple[str, str]], body: bytes = b"") -> bytes:
    """A frame as bytes.

    >>> written("RECEIPT", [("receipt-id", "a:b")])
    b'RECEIPT\\nreceipt-id:a\\\\cb\\n\\n\\x00'
    """
    if command in _PLAIN:
        lines = [f"{name}:{value}\n" for name, value in headers]
    else:
        lines = [f"{name.translate(_WRITTEN)}:{value.translate(_WRITTEN)}\n" for name, value in headers]
    head = f"{command}\n{''.join(lines)}\n".encode(errors="backslashreplace")
    return b"%b%b\0" % (head, body)
