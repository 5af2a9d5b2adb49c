"""Principals who show a password or a token, and logins that end."""

from __future__ import annotations

import pytest

from postroom.errors import ArgumentInvalid, PasswordNeeded, PrincipalRefused
from postroom.store.kernel.base import Store
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
