"""The areas of CDs: every item at its place, as the standard has it."""

from __future__ import annotations

from datetime import datetime

import pytest

from postroom.interfaces.cobol.areas import AreaInvalid, InputDescription, IoDescription, OutputDescription


def test_an_input_cd_has_87_characters_with_every_item_at_its_place() -> None:
    cd = InputDescription(b" " * 87)
    cd.set_queues(("MASTER", "SUB", "LOW"))
    cd.received(datetime(2026, 11, 17, 6, 5, 4, 990_000), "TERM-1", 42, "2")
    cd.write("status", "00")
    cd.write("count", 7)
    names = b"MASTER      SUB         LOW                     "
    assert bytes(cd.area) == names + b"261117" + b"06050499" + b"TERM-1      " + b"0042" + b"2" + b"00" + b"000007"
    assert cd.queues == ("MASTER", "SUB", "LOW")
    assert (cd.text("source"), cd.number("length")) == ("TERM-1", 42)


def test_names_that_are_blank_at_the_beginning_or_between_others_are_none() -> None:
    assert InputDescription(b" " * 87).queues is None
    assert InputDescription((b" " * 12 + b"SUB").ljust(87)).queues is None
    assert InputDescription((b"TOP".ljust(24) + b"LOW").ljust(87)).queues is None
    assert InputDescription(b"TOP".ljust(87)).queues == ("TOP",)


def test_an_output_cd_has_a_table_of_destinations() -> None:
    cd = OutputDescription(b"0002" + b"0005" + b"99" + b"9OQ3         " + b"9OQ4         ")
    assert cd.destinations == ["OQ3", "OQ4"]
    cd.set_errors(["0", "1"])
    assert bytes(cd.area[10:]) == b"0OQ3         1OQ4         "


@pytest.mark.parametrize("count", [b"0000", b"0003", b"    ", b"-001"])
def test_a_count_that_is_no_number_of_destinations_is_none(count: bytes) -> None:
    assert OutputDescription(count + b"000500" + b" " * 26).destinations is None


def test_a_number_that_does_not_fit_is_the_greatest_that_does_and_no_number_is_none() -> None:
    cd = InputDescription(b" " * 87)
    assert cd.number("count") is None
    cd.write("count", 12_345_678)
    assert cd.number("count") == 999_999


def test_an_area_that_no_cd_has_is_refused() -> None:
    for kind in (InputDescription, IoDescription, OutputDescription):
        with pytest.raises(AreaInvalid):
            kind(b" " * 20)
    assert IoDescription(b" " * 33).text("status") == ""
