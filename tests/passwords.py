"""Hashes that cost little. What a hash must cost is for ``tests/model/test_password.py`` to say."""

from __future__ import annotations

from functools import cache
from typing import Literal

from argon2 import PasswordHasher


class _Remembering(PasswordHasher):
    """The cheapest that ``is_hash`` takes, each computed once: they were two fifths of ``tests/queues``."""

    def __init__(self) -> None:
        super().__init__(time_cost=1, memory_cost=19_456, parallelism=1)
        self._hash = cache(super().hash)
        self._verify = cache(super().verify)  # what it raises is not kept

    def hash(self, password: str | bytes, *, salt: bytes | None = None) -> str:
        return self._hash(password, salt=salt)

    def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:
        return self._verify(hash, password)


CHEAP = _Remembering()


def cheap() -> PasswordHasher:
    return CHEAP
