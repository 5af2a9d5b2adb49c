"""Filling in a form: who writes which field, and when."""

from __future__ import annotations

import pytest

from postroom.errors import FieldRefused
from postroom.stations.station import Station


@pytest.mark.parametrize("blanks", [" ", "   ", "\t", "\n", "\u00a0"])
def test_a_required_field_takes_no_blanks(ann: Station, blanks: str) -> None:
    with pytest.raises(FieldRefused, match="Name: it is required"):
        ann.create("PART", Name=blanks)
    assert len(ann.messages("PART")) == 300
