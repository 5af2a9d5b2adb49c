"""Security headers of every page, and the check of a request's origin (row S11 of the attacks)."""

from __future__ import annotations

from collections.abc import Mapping

from postroom.errors import RequestRefused
from postroom.interfaces.http.handling.responses import Header

#: Nothing comes from elsewhere, nothing is inline, nobody frames a page.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_ALWAYS: tuple[Header, ...] = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
_NOT_KEPT: Header = (b"cache-control", b"no-store")
_KEPT: Header = (b"cache-control", b"public, max-age=31536000, immutable")
_TLS: Header = (b"strict-transport-security", b"max-age=31536000")


def headers(media_type: str, *more: Header, is_safe: bool = False, is_kept: bool = False) -> list[Header]:
    return [
        (b"content-type", media_type.encode("ascii")),
        _KEPT if is_kept else _NOT_KEPT,
        *_ALWAYS,
        *([_TLS] if is_safe else []),
        *more,
    ]


def check_origin(scheme: str, head: Mapping[str, str]) -> None:
    """Refuse a write from a page of another site. Browsers send their origin; programs use tokens."""
    site, origin = head.get("sec-fetch-site"), head.get("origin")
    if site is not None and site != "same-origin":
        raise RequestRefused(why=f"it was sent by a page of another site ({ascii(site)[:40]})")
    if origin is None and site is None:
        raise RequestRefused(why="it does not say which page has sent it; a program sends a token instead")
    if origin is not None and origin != f"{scheme}://{head.get('host', '')}":
        raise RequestRefused(why=f"it was sent by a page of {ascii(origin)[:80]}")
