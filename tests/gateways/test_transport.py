"""Settings of endpoints: read once, refused with a reason, and without secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from postroom.errors import GatewayInvalid
from postroom.gateways.http import HttpTransport
from postroom.gateways.transport import Undelivered, read_settings, secret


@pytest.mark.parametrize(("name", "text", "why"), [
    ("colour", "red", "no setting colour; there are address"),
    ("attempts", "0", "from 1 to 100"), ("attempts", "2.5", "invalid literal"), ("seconds", "nan", "from 0.1 to 600"),
    ("private", "maybe", "one of yes, no"), ("token", "s3cret", "a secret is not written here"),
    ("token", "file:relative", "an absolute path"), ("address", "a\nb", "printable text"), ("address", "", "printable"),
])  # fmt: skip
def test_a_setting_that_is_wrong_is_named(name: str, text: str, why: str) -> None:
    with pytest.raises(GatewayInvalid, match=why):
        read_settings("g", HttpTransport.settings, {name: text})


def test_a_secret_is_found_where_the_reference_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "key"
    file.write_text("s3cret\n")
    monkeypatch.setenv("KEY", "other")
    assert (secret(f"file:{file}"), secret("env:KEY")) == ("s3cret", "other")
    for missing in ("env:NO_SUCH_VARIABLE", "file:/no/such/file"):
        with pytest.raises(Undelivered) as caught:
            secret(missing)
        assert not caught.value.final, "an operator may put it there"
