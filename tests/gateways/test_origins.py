"""Origins: as they are written, and addresses that are looked up once."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from postroom.gateways.origins import is_public, origin_of, pinned, target_of
from postroom.gateways.transport import Undelivered


def test_an_origin_is_scheme_host_and_port() -> None:
    assert str(origin_of("https://Partner.example/x?y")) == "https://partner.example:443"
    assert str(origin_of("http://[::1]:8080/")) == "http://[::1]:8080"


@pytest.mark.parametrize(
    "url", ["", "//x", "file:///etc/passwd", "http://", "http://a@b/", "http://a b/", "http://a\\@b"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="an address"):
        origin_of(url)


@pytest.mark.parametrize(
    ("address", "public"),
    [("8.8.8.8", True), ("127.0.0.1", False), ("10.1.2.3", False), ("169.254.169.254", False), ("0.0.0.0", False),
     ("::1", False), ("::ffff:127.0.0.1", False), ("fe80::1", False), ("2002:7f00:1::", False), ("224.0.0.1", False),
     ("2606:4700::1111", True), ("64:ff9b::7f00:1", False), ("64:ff9b:1::a00:1", False), ("::127.0.0.1", False),
     ("fec0::1", False), ("192.0.0.192", False)],
)  # fmt: skip
def test_addresses_inside_of_networks_are_known(address: str, public: bool) -> None:
    assert is_public(ip_address(address)) is public


def test_a_name_leads_to_its_first_address_that_is_allowed() -> None:
    found = ["10.0.0.1", "8.8.8.8"]
    assert pinned("x.example", 80, private=False, resolver=lambda *_: found) == "8.8.8.8"
    assert pinned("x.example", 80, private=True, resolver=lambda *_: found) == "10.0.0.1"
    assert pinned("127.0.0.1", 80, private=False, resolver=lambda *_: []) == "127.0.0.1", "the operator wrote it"
    with pytest.raises(Undelivered) as caught:
        pinned("no.invalid", 80, private=False)
    assert caught.value.disconnected == "no.invalid:80"


def test_a_recipient_that_is_no_text_is_refused() -> None:
    with pytest.raises(Undelivered, match="no address"):
        target_of("http://x.example/", 7, [])
    assert target_of("http://x.example/a/b", "c", []) == "http://x.example/a/c"
