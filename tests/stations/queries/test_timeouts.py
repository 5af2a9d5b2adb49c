"""How long a query may take: more than nothing, and no more than is allowed."""

from __future__ import annotations

from math import inf, nan

import pytest

from postroom.errors import ArgumentInvalid
from postroom.limits import QUERY_SECONDS_MAX
from postroom.stations.queries.timeouts import check_timeout


def test_a_timeout_is_a_time() -> None:
    for seconds in (0.001, 1, QUERY_SECONDS_MAX):
        check_timeout(seconds)
    for wrong in (0, -1, nan, inf, QUERY_SECONDS_MAX + 1):
        with pytest.raises(ArgumentInvalid, match="timeout: more than 0 and at most"):
            check_timeout(wrong)
