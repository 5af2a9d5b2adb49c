"""Gateways as a part of a room."""

from __future__ import annotations

import postroom


def test_settings_with_a_hyphen_are_written_with_an_underscore(sqlite_url: str) -> None:
    with postroom.open(sqlite_url) as room:
        made = room.gateways.add("a", "http", path="/a", in_token="env:T")
        assert made.settings == {"path": "/a", "in-token": "env:T"}
        assert room.gateways.all() == [
            {
                "gateway": "a",
                "transport": "http",
                "directions": ["answer", "in"],
                "settings": {"path": "/a", "in-token": "env:T"},
                "queue_names": [],
            }
        ]
