"""Messages of an editor, whole or not at all."""

from __future__ import annotations

import io

import pytest

from postroom.interfaces.lsp import wire


def test_what_is_written_is_read() -> None:
    stream = io.BytesIO()
    for number in (1, 2):
        wire.write(stream, {"id": number, "result": "é"})
    stream.seek(0)
    assert [wire.read(stream)["id"] for _ in range(2)] == [1, 2]
    with pytest.raises(wire.Closed):
        wire.read(stream)


@pytest.mark.parametrize(
    "odd",
    [
        b"",
        b"X: 1\r\n\r\n{}",
        b"Content-Length: 9\r\n\r\n{}",
        b"Content-Length: 99999999999\r\n\r\n",
    ],
)
def test_what_is_no_message_ends_the_session(odd: bytes) -> None:
    with pytest.raises(wire.Closed):
        wire.read(io.BytesIO(odd))


@pytest.mark.parametrize("odd", [b"{]", b"", b"\xff", b"[" * 100_000])
def test_what_is_not_json_is_refused_and_the_next_message_is_read(odd: bytes) -> None:
    stream = io.BytesIO(b"Content-Length: %d\r\n\r\n%s" % (len(odd), odd))
    stream.seek(0, io.SEEK_END)
    wire.write(stream, {"id": 1})
    stream.seek(0)
    with pytest.raises(wire.Malformed, match="not JSON"):
        wire.read(stream)
    assert wire.read(stream)["id"] == 1
