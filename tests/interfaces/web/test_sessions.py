"""Sign-in: how often someone may try, and what a cookie is worth."""

from __future__ import annotations

import pytest

from postroom.errors import TooManyRequests
from postroom.interfaces.web import sessions
from postroom.interfaces.web.sessions import Throttle, cookies, session_cookie, session_of
from postroom.limits import LOGIN_TRIES, LOGIN_WAIT_SECONDS_MAX, LOGINS_REMEMBERED_MAX


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(sessions, "monotonic", lambda: now[0])
    return now


def fail(throttle: Throttle, name: str, address: str, times: int) -> None:
    for _ in range(times):
        throttle.failed(name, address)


def test_whoever_fails_often_waits_longer_each_time(clock: list[float]) -> None:
    throttle = Throttle()
    fail(throttle, "ann", "1.1.1.1", LOGIN_TRIES - 1)
    throttle.check("ann", "1.1.1.1")
    fail(throttle, "ann", "1.1.1.1", 1)
    with pytest.raises(TooManyRequests):
        throttle.check("ann", "1.1.1.1")
    clock[0] += 1.1
    throttle.check("ann", "1.1.1.1")
    fail(throttle, "ann", "1.1.1.1", 20)
    clock[0] += LOGIN_WAIT_SECONDS_MAX - 1
    with pytest.raises(TooManyRequests):
        throttle.check("ann", "1.1.1.1")
    clock[0] += 2
    throttle.check("ann", "1.1.1.1")


def test_others_are_not_locked_out(clock: list[float]) -> None:
    throttle = Throttle()
    fail(throttle, "ann", "6.6.6.6", LOGIN_TRIES + 3)
    throttle.check("ann", "1.1.1.1")  # she herself, elsewhere
    throttle.check("ben", "6.6.6.6")  # someone else, behind the same address


def test_guesses_from_many_addresses_slow_strangers_and_not_the_user(clock: list[float]) -> None:
    throttle = Throttle()
    throttle.succeeded("ann", "1.1.1.1")
    for number in range(LOGIN_TRIES * 10):
        throttle.failed("ann", f"6.6.6.{number}")
    with pytest.raises(TooManyRequests):
        throttle.check("ann", "7.7.7.7")
    throttle.check("ann", "1.1.1.1")
    throttle.check("ben", "7.7.7.7")


def test_what_is_remembered_is_bounded(clock: list[float]) -> None:
    throttle = Throttle()
    for number in range(LOGINS_REMEMBERED_MAX + 50):
        throttle.failed(f"name{number}", "6.6.6.6")
        throttle.succeeded(f"name{number}", "6.6.6.6")
    assert len(throttle._tries) <= LOGINS_REMEMBERED_MAX
    assert len(throttle._trusted) <= LOGINS_REMEMBERED_MAX


def test_under_tls_no_other_host_can_set_the_cookie() -> None:
    assert session_cookie("x", True).startswith(b"__Host-postroom=x; Path=/;")
    assert b"; Secure" in session_cookie("x", True)
    assert session_of({"cookie": "postroom=evil; __Host-postroom=x"}, True) == "x"
    assert session_of({"cookie": "postroom=evil"}, True) == ""


def test_of_two_cookies_of_a_name_the_first_counts() -> None:
    assert cookies({"cookie": "a=1; b=2; a=3;; =x"}) == {"a": "1", "b": "2", "": ""}


@pytest.mark.parametrize("shown", ["", ".", "zz.a", "ff.a", "416e6e.", "416e6e.00.00", "00", "." * 100])
def test_what_is_no_session_is_nobody(shown: str) -> None:
    name, _ = sessions._split(shown)
    assert name in ("", "Ann", "\0")
