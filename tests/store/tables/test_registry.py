"""Principals who show a password or a token, and logins that end."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from argon2 import PasswordHasher

from postroom.errors import ArgumentInvalid, PasswordNeeded, PrincipalRefused
from postroom.model.password import is_outdated
from postroom.store.kernel.base import Store
from postroom.store.tables import registry
from postroom.store.tables.registry import Registry, check_actor


def test_a_principal_is_registered_replaced_and_removed(store: Store) -> None:
    registry = Registry(store)
    assert registry.add("reg_ann", "one") is None
    token = registry.add("reg_bob")
    assert token is not None
    registry.verify("reg_bob", token)
    with pytest.raises(PasswordNeeded):
        registry.add("reg_ann", "two")
    with pytest.raises(PrincipalRefused):
        registry.add("reg_ann", "two", old="wrong")
    registry.add("reg_ann", "two", old="one")
    with pytest.raises(PrincipalRefused):
        registry.verify("reg_ann", "one")
    assert {"reg_ann", "reg_bob"} <= set(registry.names())
    assert registry.knows("reg_ann")
    for name in ("reg_ann", "reg_bob"):
        registry.remove(name)
    with pytest.raises(PrincipalRefused):
        registry.remove("reg_ann")
    assert not registry.knows("reg_ann")


def test_a_login_stands_for_a_name_until_it_ends_or_the_password_is_another(store: Store) -> None:
    registry = Registry(store)
    registry.add("reg_cat", "one")
    token, other = registry.login("reg_cat", "one"), registry.login("reg_cat", "one")
    assert registry.admits("reg_cat", token)
    assert not registry.admits("reg_cat", token + "x")
    assert not registry.admits("reg_dan", token)
    registry.logout("reg_cat", token)
    assert not registry.admits("reg_cat", token)
    registry.add("reg_cat", "two", replace=True)
    assert not registry.admits("reg_cat", other)
    registry.remove("reg_cat")


@pytest.mark.parametrize(("name", "password"), [("no name", "x"), ("ann", ""), ("ann", "x" * 5000), ("ann", "\ud800")])
def test_what_is_no_name_or_no_password_is_refused(name: str, password: str) -> None:
    with pytest.raises(ArgumentInvalid):
        Registry.hashed(name, password)
    check_actor("user", "ann")
    with pytest.raises(ArgumentInvalid):
        check_actor("user", "a\nb")


def _refusing(looked: list[str]) -> Callable[[str, str], bool]:
    def verify(stored: str, given: str) -> bool:
        looked.append(stored)
        return False

    return verify


def test_an_unknown_name_costs_what_a_known_one_costs(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """One look at a hash of the same cost, whoever is named."""
    known = Registry(store)
    known.add("reg_known", "secret")
    looked: list[str] = []
    monkeypatch.setattr(registry, "verify_password", _refusing(looked))
    costs = []
    for name in ("reg_known", "reg_nobody"):
        with pytest.raises(PrincipalRefused):
            known.login(name, "wrong")
        (stored,) = looked
        looked.clear()
        costs.append(stored.split("$")[1])
    assert costs == ["argon2id", "argon2id"]
    real = PasswordHasher()
    assert registry._NOBODY.split("$")[3] == f"m={real.memory_cost},t={real.time_cost},p={real.parallelism}"


def test_a_password_of_older_parameters_is_hashed_again_when_it_is_shown(store: Store) -> None:
    known = Registry(store)
    older = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1).hash("secret")
    known.add("reg_old", "secret")
    store.transact("test", lambda tx: tx.principals.set_secret(registry.KIND, "reg_old", older))
    with pytest.raises(PrincipalRefused):
        known.login("reg_old", "wrong")
    assert _secret(store) == older
    token = known.login("reg_old", "secret")
    renewed = _secret(store)
    assert renewed != older
    assert not is_outdated(renewed)
    assert known.admits("reg_old", token), "the login that renewed it is valid"
    known.login("reg_old", "secret")
    assert _secret(store) == renewed, "once is enough"
    known.remove("reg_old")


def _secret(store: Store) -> str:
    secret = store.read(lambda tx: tx.principals.secret(registry.KIND, "reg_old"))
    assert secret is not None
    return secret
