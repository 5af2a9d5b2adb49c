"""Messages between an editor and the server: JSON-RPC with a length header."""

from __future__ import annotations

import json
from typing import IO, Any

_LENGTH = "content-length"
_BYTES_MAX = 64 * 1024 * 1024


class Closed(Exception):
    """The other end has gone, or no longer speaks the protocol."""


class Malformed(Exception):
    """A message is whole, but not JSON; the next one can be read."""


def read(stream: IO[bytes]) -> Any:
    """The next message."""
    length = None
    while True:
        line = stream.readline(1_000)
        if not line:
            raise Closed("the stream has ended")
        if line in (b"\r\n", b"\n"):
            break
        name, _, value = line.decode("ascii", "replace").partition(":")
        if name.strip().lower() == _LENGTH and value.strip().isdigit():
            length = int(value)
    if length is None or length > _BYTES_MAX:
        raise Closed("a message without a length, or too long")
    body = stream.read(length)
    if len(body) != length:
        raise Closed("the stream ended within a message")
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"a message is not JSON: {error}") from error


def write(stream: IO[bytes], message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode()
    stream.write(f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    stream.flush()
