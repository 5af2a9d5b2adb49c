"""How long a query or an SQL statement may take."""

from __future__ import annotations

from postroom.errors import ArgumentInvalid
from postroom.limits import QUERY_SECONDS_MAX


def check_timeout(seconds: float) -> None:
    if not 0 < seconds <= QUERY_SECONDS_MAX:
        raise ArgumentInvalid(argument="timeout", why=f"more than 0 and at most {QUERY_SECONDS_MAX:.0f} seconds")
