"""The bounds of the program: each is a positive number, and those that belong together fit together."""

from __future__ import annotations

import re
from pathlib import Path

from postroom import limits

LINES = Path(limits.__file__).read_text().splitlines()
BOUNDS = {name: value for name, value in vars(limits).items() if name.isupper()}


def test_every_bound_is_a_positive_number_with_a_remark() -> None:
    written = [line for line in LINES if re.match(r"[A-Z_]+: Final = ", line)]
    assert len(written) == len(BOUNDS)
    assert [line for line in written if "  # " not in line] == []
    assert {name for name, value in BOUNDS.items() if value <= 0} == {"INT_MIN"}


def test_a_larger_thing_has_room_for_the_smaller_ones_in_it() -> None:
    assert limits.PROPERTY_BYTES_MAX < limits.BODY_BYTES_MAX <= limits.MESSAGE_OUTPUT_BYTES_MAX
    assert limits.BODY_BYTES_MAX <= limits.STEP_BYTES_MAX
    assert limits.NAME_CHARS_MAX <= limits.QUEUE_NAME_CHARS_MAX
    assert limits.KEY_RESERVE_MAX < limits.KEY_TAIL
    assert limits.RESERVE_OPEN_BYTES < limits.RESERVE_BYTES
    assert limits.DISK_BYTES_MIN < limits.DISK_BYTES_LOW


def test_nobody_is_given_up_before_a_sign_of_life_is_due() -> None:
    assert limits.HEARTBEAT_SECONDS_MIN < limits.HEARTBEAT_SECONDS < limits.CHECK_SECONDS <= limits.CHECK_SECONDS_MAX
    assert limits.GRACE_SECONDS < limits.CHECK_SECONDS
    assert limits.STEP_SECONDS < limits.ENGINE_LEASE_SECONDS
    assert limits.QUERY_SECONDS <= limits.QUERY_SECONDS_MAX


def test_whole_numbers_of_forms_are_those_of_64_bits() -> None:
    assert (limits.INT_MIN, limits.INT_MAX) == (-9223372036854775808, 9223372036854775807)
