"""Frames: what is written can be read, and nothing else is taken for a call."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.interfaces.cobol.wire import (
    Call,
    FrameInvalid,
    length_of,
    read_answer,
    read_call,
    write_answer,
    write_call,
)

NUMBERS = st.integers(-(2**31), 2**31 - 1)


@given(st.sampled_from("RSEDCPIQ"), NUMBERS, NUMBERS, NUMBERS, st.lists(st.binary(max_size=40), max_size=4))
def test_a_call_that_is_written_is_read_the_same(verb: str, a: int, b: int, c: int, fields: list[bytes]) -> None:
    call = Call(verb, a, b, c, tuple(fields))
    frame = write_call(call)
    assert length_of(frame[:4]) == len(frame) - 4
    assert read_call(frame[4:]) == call
    assert read_answer(write_answer(a, fields)) == (a, fields)


@given(st.binary(max_size=60))
def test_bytes_are_a_call_or_refused(data: bytes) -> None:
    try:
        call = read_call(data)
    except FrameInvalid:
        return
    assert write_call(call)[4:] == data


def test_a_frame_has_a_bound() -> None:
    with pytest.raises(FrameInvalid):
        length_of(b"\xff\xff\xff\xff")
