"""Passwords: argon2id, at the parameters of RFC 9106's low-memory profile (the library's default)."""

from __future__ import annotations

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


def is_hash(text: str) -> bool:
    """Whether ``text`` is a complete argon2id hash, as ``postroom hierarchy`` prints it."""
    from argon2 import extract_parameters
    from argon2.exceptions import InvalidHashError

    try:
        return text.startswith("$argon2id$") and bool(extract_parameters(text))
    except InvalidHashError:
        return False


def verify_password(stored: str, password: str) -> bool:
    from argon2.exceptions import VerificationError

    try:
        return _hasher().verify(stored, password)
    except VerificationError:
        return False
