"""TLS to partners: files that cannot be used are refused by the name of their setting."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import postroom
from postroom.errors import GatewayInvalid
from postroom.gateways.tls import context_of


def test_files_are_looked_at_when_a_gateway_is_added(sqlite_url: str, tmp_path: Path) -> None:
    """The engine ended when it came to the first message."""
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")
    http = {"address": "https://a.example/"}
    with postroom.open(sqlite_url) as room:
        for transport, settings, why in [
            ("http", {**http, "ca": "/nonexistent.pem"}, "ca: /nonexistent.pem cannot be read: No such file"),
            ("http", {**http, "ca": str(empty)}, "ca: .* has no certificates that can be read"),
            ("http", {**http, "certificate": str(empty)}, "certificate: .* cannot be used"),
            ("http", {**http, "certificate": str(empty), "key": "/none"}, "key: /none cannot be read"),
            ("smtp", {"recipient": "a@b.example", "ca": str(tmp_path)}, "ca: .* cannot be read: Is a directory"),
            ("soap", {"path": "/a", "wss_key": "/none"}, "wss-key: /none cannot be read"),
            ("http", {**http, "username": "a:b", "password": "env:P"}, "no colon"),
            ("smtp", {"recipient": "a@b.example", "username": "ä", "password": "env:P"}, "in ASCII"),
        ]:
            with pytest.raises(GatewayInvalid, match=why):
                room.gateways.add("g", transport, **settings)


def test_nobody_is_asked_for_the_password_of_a_key(tmp_path: Path) -> None:
    key, certificate = str(tmp_path / "a.key"), str(tmp_path / "a.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-passout", "pass:hunter2", "-days", "3", "-subj", "/CN=a",
         "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"certificate: .* cannot be used"):
        context_of({"certificate": certificate, "key": key})
