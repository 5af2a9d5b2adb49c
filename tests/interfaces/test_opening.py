"""Opening a room wherever it is."""

from __future__ import annotations

import pytest

import postroom
from postroom.errors import ArgumentInvalid, ServerUnreachable


def test_a_url_of_a_server_opens_no_file_and_nothing_else_takes_a_token(sqlite_url: str) -> None:
    with pytest.raises(ArgumentInvalid, match="only a server"):
        postroom.open(sqlite_url, token="x")
    with pytest.raises(ArgumentInvalid, match="by the token"):
        postroom.open("http://127.0.0.1:9", actor="ann")
    with postroom.open("http://127.0.0.1:9", token="x") as room, pytest.raises(ServerUnreachable):
        room.count()


def test_the_url_may_come_from_the_environment(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTROOM_URL", sqlite_url)
    with postroom.open() as room:
        assert room.url == sqlite_url
