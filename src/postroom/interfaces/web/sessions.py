"""Sign-in: browser sessions, their cookies, and limits on attempts.

A session is a login of the room (``Registry.login``): random, kept as a hash, bound to the password, and ended at once
by sign-out, by another password or by the removal of its user.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic

from postroom.errors import PrincipalRefused, TooManyRequests
from postroom.limits import LOGIN_SECONDS, LOGIN_TRIES, LOGIN_WAIT_SECONDS_MAX, LOGINS_AT_ONCE, LOGINS_REMEMBERED_MAX
from postroom.room import Postroom

_COOKIE, _SAFE_COOKIE = "postroom", "__Host-postroom"


@dataclass
class _Tries:
    failed: int = 0
    until: float = 0.0  # before this nobody may try again


class Throttle:
    """Limits failed sign-ins by name and address.

    Guesses from very many addresses slow down the name as a whole, except for addresses from which it has signed in
    before.
    """

    def __init__(self) -> None:
        self._tries: OrderedDict[tuple[str, str | None], _Tries] = OrderedDict()
        self._trusted: OrderedDict[tuple[str, str], None] = OrderedDict()

    def check(self, name: str, address: str) -> None:
        """Raise if it is too early for another attempt."""
        now = monotonic()
        for key in self._keys(name, address):
            tries = self._tries.get(key)
            if tries is not None and tries.until > now:
                raise TooManyRequests(who=f"{name!r}"[:60], seconds=tries.until - now + 1)

    def failed(self, name: str, address: str) -> None:
        for key in self._keys(name, address):
            tries = self._tries.setdefault(key, _Tries())
            self._tries.move_to_end(key)
            tries.failed += 1
            over = tries.failed - (LOGIN_TRIES if key[1] is not None else LOGIN_TRIES * 10)
            if over >= 0:
                tries.until = monotonic() + min(2.0 ** min(over, 30), LOGIN_WAIT_SECONDS_MAX)
        while len(self._tries) > LOGINS_REMEMBERED_MAX:
            self._tries.popitem(last=False)

    def succeeded(self, name: str, address: str) -> None:
        self._tries.pop((name, address), None)
        self._trusted[name, address] = None
        while len(self._trusted) > LOGINS_REMEMBERED_MAX:
            self._trusted.popitem(last=False)

    def _keys(self, name: str, address: str) -> list[tuple[str, str | None]]:
        own: list[tuple[str, str | None]] = [(name, address)]
        return own if (name, address) in self._trusted else [*own, (name, None)]


class Sessions:
    """Browser sessions. ``shown`` is the content of a cookie: the name and a token."""

    def __init__(self, room: Postroom) -> None:
        self._room = room
        self.throttle = Throttle()
        self.at_once = asyncio.Semaphore(LOGINS_AT_ONCE)  # each needs 64 MB

    def begin(self, name: str, password: str, address: str) -> str:
        """Sign in and return the cookie; raises for a wrong password, or after too many."""
        try:
            token = self._room.access.sign_in(name, password)
        except PrincipalRefused:
            self.throttle.failed(name, address)
            raise
        self.throttle.succeeded(name, address)
        return f"{name.encode().hex()}.{token}"

    def user(self, shown: str) -> str | None:
        """The user of a valid session."""
        name, token = _split(shown)
        return name if name and self._room.access.is_signed_in(name, token) else None

    def end(self, shown: str) -> None:
        name, token = _split(shown)
        if name and self._room.access.is_signed_in(name, token):
            self._room.access.sign_out(name, token)


def _split(shown: str) -> tuple[str, str]:
    name, _, token = shown.partition(".")
    try:
        return bytes.fromhex(name).decode(), token
    except ValueError:
        return "", ""


def cookies(headers: Mapping[str, str]) -> dict[str, str]:
    """The cookies of a request, by name; the first of several."""
    values: dict[str, str] = {}
    for part in headers.get("cookie", "").split(";"):
        name, _, value = part.strip().partition("=")
        values.setdefault(name, value)
    return values


def session_of(headers: Mapping[str, str], is_safe: bool) -> str:
    return cookies(headers).get(_SAFE_COOKIE if is_safe else _COOKIE, "")


def session_cookie(shown: str, is_safe: bool) -> bytes:
    """A header that sets a session cookie, or with empty text removes it.

    Under TLS no other host or path can set it.
    """
    age = int(LOGIN_SECONDS) if shown else 0
    name, more = (_SAFE_COOKIE, "; Secure") if is_safe else (_COOKIE, "")
    return f"{name}={shown}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{more}".encode("ascii")


def theme_cookie(theme: str, is_safe: bool) -> bytes:
    secure = "; Secure" if is_safe else ""
    return f"postroom-theme={theme}; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax{secure}".encode("ascii")
