"""Frames: whole or in pieces they are the same, what is none is refused, and nothing grows without bound."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.errors import RequestInvalid, RequestTooLarge
from postroom.interfaces.stomp.frames import COMMANDS, Frame, Parser, written
from postroom.limits import BODY_BYTES_MAX, STOMP_HEAD_BYTES_MAX

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
FRAMES = st.builds(
    Frame,
    st.sampled_from(sorted(COMMANDS - {"CONNECT", "STOMP"})),
    st.dictionaries(TEXT.filter(lambda name: name not in ("", "content-length")), TEXT, max_size=5),
    st.binary(max_size=50),
)


def said(frame: Frame, *, counted: bool = True) -> bytes:
    length = [("content-length", str(len(frame.body)))] if counted else []
    return written(frame.command, [*frame.headers.items(), *length], frame.body)


def heard(frame: Frame) -> Frame:
    return frame._replace(headers={name: value for name, value in frame.headers.items() if name != "content-length"})


@given(st.lists(FRAMES, max_size=4), st.data())
@settings(max_examples=150, deadline=None)
def test_frames_come_back_however_they_are_cut(frames: list[Frame], data: st.DataObject) -> None:
    stream = b"\n".join(map(said, frames)) + b"\r\n"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    parser, found = Parser(), list[Frame]()
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += parser.feed(stream[start:end])
    assert list(map(heard, found)) == frames
    assert not parser.partial


@given(st.lists(st.binary(max_size=40) | st.sampled_from([b"SEND\n", b"\n\n", b"\0", b"a:b\n", b"content-length:3\n"])))
@settings(max_examples=300, deadline=None)
def test_whatever_comes_is_a_frame_or_refused(pieces: list[bytes]) -> None:
    parser, found = Parser(), list[Frame]()
    with suppress(RequestInvalid, RequestTooLarge):  # anything else fails
        for piece in pieces:
            found += parser.feed(piece)
    assert all(frame.command in COMMANDS for frame in found)


def test_a_body_without_a_length_ends_at_nul_and_lines_may_end_with_both_signs() -> None:
    (frame,) = Parser().feed(b"SEND\r\na:b\r\na:c\r\nempty:\r\n\r\nbody\0")
    assert frame == Frame("SEND", {"a": "b", "empty": ""}, b"body")  # of a repeated header the first counts
    (frame,) = Parser().feed(b"SEND\ncontent-length:3\n\na\0b\0")
    assert frame.body == b"a\0b"


def test_the_first_frame_is_written_without_escapes() -> None:
    (frame,) = Parser().feed(b"CONNECT\npasscode:a\\nb:c\n\n\0")
    assert frame.headers == {"passcode": "a\\nb:c"}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "it is none of"),
        (b"send\n\n\0", "it is none of"),
        (b"\xff\xfe\n\n", "not UTF-8"),
        (b"SEND\nno colon\n\n\0", "NAME:VALUE"),
        (b"SEND\n:empty\n\n\0", "NAME:VALUE"),
        (b"SEND\na:\\t\n\n\0", "escapes"),
        (b"SEND\na:\\\n\n\0", "escapes"),
        (b"SEND\ncontent-length:-1\n\n\0", "not a number"),
        (b"SEND\ncontent-length:\xc2\xb2\n\n\0", "not a number"),
        (b"SEND\ncontent-length:2\n\nabc\0", "no NUL"),
        (b"SEND\n" + b"a:b\n" * 200 + b"\n\0", "more than"),
    ],
)
def test_what_is_no_frame_is_refused_with_its_place(data: bytes, why: str) -> None:
    with pytest.raises(RequestInvalid, match=why):
        Parser().feed(data)


def test_what_is_too_large_is_refused_before_it_is_all_there() -> None:
    for begun in (b"SEND\n" + b"x" * STOMP_HEAD_BYTES_MAX, b"SEND\n\n" + b"x" * (BODY_BYTES_MAX + 1)):
        with pytest.raises(RequestTooLarge):
            Parser().feed(begun)
    with pytest.raises(RequestTooLarge):
        Parser().feed(b"SEND\ncontent-length:%d\n\n" % (BODY_BYTES_MAX + 1))
