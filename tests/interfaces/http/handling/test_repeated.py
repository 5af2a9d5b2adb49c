"""Heads that are sent again: what is told apart from another request, and what is not."""

from __future__ import annotations

import pytest

from postroom.interfaces.http.handling.repeated import RepeatedHead

_BEFORE = b"POST /q HTTP/1.1\r\nHost: x\r\nContent-Length: "


def _request(body: bytes, *, before: bytes = _BEFORE, after: bytes = b"\r\nAccept: */*\r\n\r\n") -> bytes:
    return before + b"%d" % len(body) + after + body


def test_a_head_is_known_again_with_a_body_of_another_length() -> None:
    head = RepeatedHead.of(_request(b"12345"), 5)
    assert head is not None
    assert head.body(_request(b"12345")) == b"12345"
    assert head.body(_request(b"x" * 99_999)) == b"x" * 99_999
    assert head.body(_request(b"")) == b""
    assert head.body(_request(b"Content-Length: 3\r\n\r\n")) == b"Content-Length: 3\r\n\r\n"


@pytest.mark.parametrize(
    "data",
    [
        _request(b"12345")[:-1],
        _request(b"12345") + b"P",
        _request(b"12345") * 2,
        _request(b"12345").replace(b"length", b"Length").lower(),
        _request(b"12345", before=_BEFORE.replace(b"/q", b"/r")),
        _request(b"12345", before=b"\r\n" + _BEFORE),
        _request(b"12345", after=b"\r\nAccept: */*\r\nX: y\r\n\r\n"),
        _request(b"12345", after=b"\r\n\r\n"),
        _request(b"12345", after=b" \r\nAccept: */*\r\n\r\n"),
        _request(b"x" * 100_000),
        _request(b"12345").replace(b": 5", b": +5"),
        _request(b"12345").replace(b": 5", b": 5 "),
        _request(b"12345").replace(b": 5", b": 5, 5"),
        _request(b"12345").replace(b": 5", b": \xd9\xa5"),
        _request(b"12345").replace(b": 5", b": "),
        _BEFORE,
        _BEFORE + b"5",
        b"",
    ],
)
def test_whatever_else_comes_is_left_to_the_parser(data: bytes) -> None:
    head = RepeatedHead.of(_request(b"12345"), 5)
    assert head is not None
    assert head.body(data) is None


@pytest.mark.parametrize(
    "data",
    [
        _request(b"12345") + b"\r\n",
        b"\r\n\r\n" + _request(b"12345"),
        _request(b"12345").replace(b"\r\n", b"\n"),
        _request(b"12345", before=b"POST /q HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: "),
        _request(b"12345").replace(b"Content-Length", b"Content-Size"),
        _request(b"12345").replace(b": 5", b": 6"),
    ],
)
def test_a_head_whose_end_or_length_is_not_sure_is_not_remembered(data: bytes) -> None:
    assert RepeatedHead.of(data, 5) is None
