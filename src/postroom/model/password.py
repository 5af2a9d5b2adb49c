"""Passwords: argon2id, at the parameters of RFC 9106's low-memory profile (the library's default)."""

from __future__ import annotations

import os
import re
from functools import cache
from threading import BoundedSemaphore
from typing import TYPE_CHECKING

from postroom.limits import PASSWORDS_AT_ONCE

if TYPE_CHECKING:
    from argon2 import PasswordHasher


class _Turns:
    """Limits concurrent password checks: each needs 64 MiB."""

    def __init__(self) -> None:
        self.begin()
        os.register_at_fork(after_in_child=self.begin)  # whoever had a turn in the parent has none here

    def begin(self) -> None:
        self.free = BoundedSemaphore(PASSWORDS_AT_ONCE)


_turns = _Turns()


@cache
def _hasher() -> PasswordHasher:
    from argon2 import PasswordHasher

    return PasswordHasher()


def hash_password(password: str) -> str:
    with _turns.free:
        return _hasher().hash(password)


_HASH = re.compile(r"\$argon2id\$v=19\$m=(\d{1,8}),t=(\d{1,3}),p=(\d{1,3})\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}")


def is_hash(text: str) -> bool:
    """Whether ``text`` is a complete argon2id hash, as ``postroom hierarchy`` prints it, with acceptable cost."""
    match = _HASH.fullmatch(text)
    if match is None:
        return False
    memory, time, lanes = map(int, match.groups())
    return 19_456 <= memory <= 1_048_576 and 1 <= time <= 50 and 1 <= lanes <= 32


def is_outdated(stored: str) -> bool:
    """Whether a hash has other parameters than today's, so that the password must be hashed again."""
    return _hasher().check_needs_rehash(stored)


def verify_password(stored: str, password: str) -> bool:
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        with _turns.free:
            return _hasher().verify(stored, password)
    except (VerificationError, InvalidHashError, UnicodeEncodeError):
        return False
