"""URLs of databases without their secrets."""

from __future__ import annotations

import pytest

from postroom.store.urls import Parted, parted, pieces, public_url, variable, with_password


def test_secrets_are_taken_out_wherever_they_stand() -> None:
    url = "postgresql://ann:s%33cret@host:5/db?sslmode=require&sslpassword=x"
    assert parted(url) == Parted(
        "postgresql://ann@host:5/db?sslmode=require", {"password": "s3cret", "sslpassword": "x"}
    )
    assert public_url(url) == "postgresql://ann@host:5/db"
    assert "s3cret" in pieces(url)
    assert parted("postgresql://host/db") == Parted("postgresql://host/db", {})


def test_the_password_of_a_node_comes_from_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(variable("north"), raising=False)
    assert with_password("north", "postgresql://host/db") == "postgresql://host/db"
    monkeypatch.setenv(variable("north"), "a b&c")
    known = with_password("north", "postgresql://host/db")
    assert parted(known).secrets == {"password": "a b&c"}
    assert with_password("north", "/a/file.db") == "/a/file.db"
