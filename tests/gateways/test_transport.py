"""Settings of endpoints: read once, refused with a reason, and without secrets."""

from __future__ import annotations

import pytest

from postroom.errors import GatewayInvalid
from postroom.gateways.http import HttpTransport
from postroom.gateways.transport import read_settings


@pytest.mark.parametrize(("name", "text", "why"), [
    ("colour", "red", "no setting colour; there are address"),
    ("attempts", "0", "from 1 to 100"), ("attempts", "2.5", "invalid literal"), ("seconds", "nan", "from 0.1 to 600"),
    ("private", "maybe", "one of yes, no"), ("token", "s3cret", "a secret is not written here"),
    ("token", "file:relative", "an absolute path"), ("address", "a\nb", "printable text"), ("address", "", "printable"),
])  # fmt: skip
def test_a_setting_that_is_wrong_is_named(name: str, text: str, why: str) -> None:
    with pytest.raises(GatewayInvalid, match=why):
        read_settings("g", HttpTransport.settings, {name: text})


def test_what_was_given_is_not_told() -> None:
    with pytest.raises(GatewayInvalid) as caught:
        read_settings("g", HttpTransport.settings, {"token": "hunter2plain"})
    assert "token: a secret is not written here" in str(caught.value)
    assert "hunter2plain" not in str(caught.value)
