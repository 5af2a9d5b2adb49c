"""Where a write may come from."""

from __future__ import annotations

import pytest

from postroom.errors import RequestRefused
from postroom.interfaces.web.headers import check_origin, headers

HOST = {"host": "room.example:7600"}


@pytest.mark.parametrize(
    "said",
    [
        {"origin": "https://room.example:7600"},
        {"sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "same-origin", "origin": "https://room.example:7600"},
    ],
)
def test_a_page_of_this_server_may_write(said: dict[str, str]) -> None:
    check_origin("https", HOST | said)


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"origin": "null"},
        {"origin": "http://room.example:7600"},
        {"origin": "https://room.example"},
        {"origin": "https://room.example:7600.evil.example"},
        {"sec-fetch-site": "same-site", "origin": "https://room.example:7600"},
        {"sec-fetch-site": "same-origin", "origin": "https://evil.example"},
        {"sec-fetch-site": "none"},
        {"referer": "https://room.example:7600/web/"},
    ],
)
def test_no_other_page_may(said: dict[str, str]) -> None:
    with pytest.raises(RequestRefused):
        check_origin("https", HOST | said)


def test_under_tls_a_browser_keeps_to_it() -> None:
    assert b"strict-transport-security" in dict(headers("text/html", is_safe=True))
    assert b"strict-transport-security" not in dict(headers("text/html"))
