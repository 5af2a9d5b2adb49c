"""Passwords: argon2id hashes, and nothing that can be read back."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pytest
from argon2 import PasswordHasher, Type
from tests.passwords import CHEAP

from postroom.limits import PASSWORDS_AT_ONCE
from postroom.model import password
from postroom.model.password import hash_password, is_hash, verify_password

pytestmark = pytest.mark.usefixtures("real_passwords")


@cache
def hashed() -> str:
    return hash_password("MASTER")


def test_a_hash_is_argon2id_at_the_low_memory_profile_of_rfc_9106() -> None:
    assert hashed().startswith("$argon2id$v=19$m=65536,t=3,p=4$")


def test_a_password_is_right_or_wrong() -> None:
    assert verify_password(hashed(), "MASTER") is True
    assert verify_password(hashed(), "master") is False
    assert verify_password(hashed(), "MASTER ") is False
    assert verify_password(hashed(), "") is False


def test_the_password_does_not_stand_in_its_hash() -> None:
    assert "MASTER" not in hashed()


def test_two_hashes_of_one_password_differ() -> None:
    assert hash_password("MASTER") != hashed()


def test_a_hash_made_with_other_parameters_still_verifies() -> None:
    stored = CHEAP.hash("QUE1")
    assert is_hash(stored)
    assert verify_password(stored, "QUE1")
    assert not verify_password(stored, "QUE2")


def test_what_hash_password_makes_is_a_hash() -> None:
    assert is_hash(hashed())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "MASTER",
        "$",
        "$argon2id$",
        "$argon2id$v=19$m=65536,t=3,p=4",
        "$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$aGFzaGhhc2g$more",
        "$argon2id$v=19$m=much,t=3,p=4$c2FsdHNhbHQ$aGFzaGhhc2g",
        "$argon2id$v=19$t=3,p=4$c2FsdHNhbHQ$aGFzaGhhc2g",
        " $argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$aGFzaGhhc2g",
        "$ARGON2ID$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$aGFzaGhhc2g",
        "$2b$12$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234",
    ],
)
def test_other_text_is_not_a_hash(text: str) -> None:
    assert is_hash(text) is False


def test_a_hash_of_another_kind_is_not_taken_for_argon2id() -> None:
    assert is_hash(PasswordHasher(time_cost=1, memory_cost=8, parallelism=1, type=Type.I).hash("x")) is False


@pytest.mark.parametrize("cut", [1, 20, 43])
def test_a_hash_that_lost_its_end_is_not_a_hash(cut: int) -> None:
    assert not is_hash(hashed()[:-cut])


def test_a_hash_that_is_not_base64_is_not_a_hash() -> None:
    assert not is_hash("$argon2id$v=19$m=65536,t=3,p=4$!$!")


def test_no_password_fits_what_is_not_a_hash() -> None:
    assert verify_password("junk", "MASTER") is False


def test_bytes_that_are_not_utf8_in_an_argument_are_a_wrong_password() -> None:
    assert verify_password(hashed(), "\udcff") is False


def test_however_many_sign_in_few_passwords_are_looked_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them takes 64 MiB."""
    lock, now, most = threading.Lock(), 0, 0
    full = threading.Event()

    class Slow:
        def verify(self, stored: str, given: str) -> bool:
            nonlocal now, most
            with lock:
                now += 1
                most = max(most, now)
                if now == PASSWORDS_AT_ONCE:
                    full.set()
            assert full.wait(30), "as many as may be are looked at at a time"
            with lock:
                now -= 1
            return True

    monkeypatch.setattr(password, "_hasher", Slow)
    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(lambda _: password.verify_password("", ""), range(64)))
    assert most == PASSWORDS_AT_ONCE
