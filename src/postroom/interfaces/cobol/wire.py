"""The protocol between a program and its session: frames with a length, three numbers, and fields of bytes.

A call is ``VERB A B C FIELD…``, an answer ``RESULT FIELD…``; numbers have four bytes, big-endian. The C library makes
calls and copies answers; their meaning is in ``session.py``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from postroom.limits import COBOL_FRAME_BYTES_MAX

_HEAD = struct.Struct("!ciii")
_LENGTH = struct.Struct("!I")


class FrameInvalid(ValueError):
    """Bytes that are not a call."""


class Call(NamedTuple):
    """One verb of a program."""

    verb: str
    a: int
    b: int
    c: int
    fields: tuple[bytes, ...]


def length_of(head: bytes) -> int:
    """How many bytes of a frame follow its first four."""
    (length,) = _LENGTH.unpack(head)
    if length > COBOL_FRAME_BYTES_MAX:
        raise FrameInvalid(f"a frame of {length} bytes; at most {COBOL_FRAME_BYTES_MAX} are taken")
    return int(length)


def read_call(body: bytes) -> Call:
    """The call in a frame."""
    if len(body) < _HEAD.size:
        raise FrameInvalid("a frame that is too short")
    verb, a, b, c = _HEAD.unpack_from(body)
    return Call(verb.decode("latin-1"), a, b, c, _fields(body, _HEAD.size))


def _fields(body: bytes, at: int) -> tuple[bytes, ...]:
    fields: list[bytes] = []
    end = len(body)
    while at < end:
        if at + 4 > end:
            raise FrameInvalid("a field without its length")
        start = at + 4
        at = start + _LENGTH.unpack_from(body, at)[0]
        if at > end:
            raise FrameInvalid("a field that is longer than its frame")
        fields.append(body[start:at])
    return tuple(fields)


def write_call(call: Call) -> bytes:
    """The frame of a call, as the C library makes it."""
    return _frame(_HEAD.pack(call.verb.encode("latin-1"), call.a, call.b, call.c), call.fields)


def write_answer(result: int, fields: Iterable[bytes] = ()) -> bytes:
    """A whole frame of an answer."""
    return _frame(struct.pack("!i", result), fields)


def read_answer(frame: bytes) -> tuple[int, list[bytes]]:
    """The answer in a whole frame."""
    (result,) = struct.unpack_from("!i", frame, 4)
    return int(result), list(_fields(frame, 8))


def _frame(head: bytes, fields: Iterable[bytes]) -> bytes:
    body = head + b"".join(_LENGTH.pack(len(field)) + field for field in fields)
    return _LENGTH.pack(len(body)) + body
