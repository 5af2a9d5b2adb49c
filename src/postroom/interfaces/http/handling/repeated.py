"""The head that a client sends again and again, in which only the length of the body changes."""

from __future__ import annotations

import re
from typing import NamedTuple

_LENGTH = re.compile(rb"\r\nContent-Length:[ \t]*([0-9]+)[ \t]*(?=\r\n)", re.IGNORECASE)
_END = b"\r\n\r\n"
_DIGITS_MAX = 5  # of a length; a longer body comes in pieces


class RepeatedHead(NamedTuple):
    """A head that was parsed, in two parts: what stands before the digits of the length, and after them."""

    before: bytes
    after: bytes

    @classmethod
    def of(cls, request: bytes, body_bytes: int) -> RepeatedHead | None:
        """The head of a whole request whose body has this many bytes; None if it cannot be told for sure."""
        end = request.find(_END) + len(_END)
        lengths = _LENGTH.findall(request[:end])
        if len(request) - end != body_bytes or len(lengths) != 1 or int(lengths[0]) != body_bytes:
            return None
        found = _LENGTH.search(request)
        assert found is not None  # it is the one
        return cls(request[: found.start(1)], request[found.end(1) : end])

    def body(self, data: bytes) -> bytes | None:
        """The body of a whole request that has this head; None if it is anything else."""
        before, after = self
        if not data.startswith(before):
            return None
        start = len(before)
        end = data.find(b"\r", start, start + _DIGITS_MAX + 1)
        digits = data[start:end]
        if end < 0 or not digits.isdigit() or not data.startswith(after, end):
            return None
        body = data[end + len(after) :]
        return body if len(body) == int(digits) else None
