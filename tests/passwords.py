"""Hashes that cost little. What a hash must cost is for ``tests/model/test_password.py`` to say."""

from __future__ import annotations

from argon2 import PasswordHasher

#: The cheapest that ``is_hash`` takes: a tenth of the time of a real one.
CHEAP = PasswordHasher(time_cost=1, memory_cost=19_456, parallelism=1)


def cheap() -> PasswordHasher:
    return CHEAP
