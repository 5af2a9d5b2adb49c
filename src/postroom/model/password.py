"""Passwords: argon2id, at the parameters of RFC 9106's low-memory profile (the library's default)."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argon2 import PasswordHasher


@cache
def _hasher() -> PasswordHasher:
    from argon2 import PasswordHasher

    return PasswordHasher()


def hash_password(password: str) -> str:
    return _hasher().hash(password)


_HASH = re.compile(r"\$argon2id\$v=19\$m=(\d{1,8}),t=(\d{1,3}),p=(\d{1,3})\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}")


def is_hash(text: str) -> bool:
    """Whether ``text`` is a complete argon2id hash, as ``postroom hierarchy`` prints it, and of a bearable cost."""
    found = _HASH.fullmatch(text)
    if found is None:
        return False
    memory, time, lanes = map(int, found.groups())
    return 19_456 <= memory <= 1_048_576 and 1 <= time <= 50 and 1 <= lanes <= 32


def verify_password(stored: str, password: str) -> bool:
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        return _hasher().verify(stored, password)
    except (VerificationError, InvalidHashError, UnicodeEncodeError):
        return False
