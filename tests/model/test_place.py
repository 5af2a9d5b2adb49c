"""Places by the names that people know."""

from __future__ import annotations

import pytest

from postroom.model.place import DATABASE, place_of


@pytest.mark.parametrize(
    ("queue", "place"),
    [
        ("station:Ada", "Ada"),
        ("mailbox:Ada", "mailbox:Ada"),
        ("orders", "orders"),
        ("my station:x", "my station:x"),
        ("station:station:x", "station:x"),
        (None, None),
    ],
)
def test_only_a_stations_database_has_another_name(queue: str | None, place: str | None) -> None:
    assert place_of(queue) == place


def test_every_station_has_a_place_of_its_own() -> None:
    assert place_of(f"{DATABASE}Ada") != place_of(f"{DATABASE}Bob")
