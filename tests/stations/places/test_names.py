"""The names of stations' queues."""

from __future__ import annotations

import pytest

from postroom.limits import DOSSIER_CHARS_MAX
from postroom.stations.places.names import database, is_dossier, mailbox, station_of


@pytest.mark.parametrize("station", ["North", "a b", "x:y"])
def test_a_queue_tells_whose_it_is(station: str) -> None:
    assert database(station) != mailbox(station)
    assert station_of(database(station)) == station_of(mailbox(station)) == station


@pytest.mark.parametrize(
    ("name", "fits"),
    [("open", True), ("", False), ("two\nlines", False), ("x" * DOSSIER_CHARS_MAX, True), ("x" * 201, False)],
)
def test_what_a_dossier_can_be_called(name: str, fits: bool) -> None:
    assert is_dossier(name) is fits
