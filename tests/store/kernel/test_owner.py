"""A process is known by its number and its start: on Linux by the kernel, elsewhere by psutil. Both are tried here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import psutil
import pytest

from postroom.store.kernel import owner


@pytest.fixture(params=["kernel", "psutil"])
def _system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "psutil":
        monkeypatch.setattr(owner, "_seen", lambda pid, thread=None: None if thread else owner._seen_elsewhere(pid))


@contextmanager
def child() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def until(true: Callable[[], bool]) -> None:
    ends = time.monotonic() + 10
    while not true():
        assert time.monotonic() < ends
        time.sleep(0.01)


@pytest.mark.usefixtures("_system")
def test_a_process_lives_is_stopped_and_has_ended() -> None:
    with child() as process:
        token = owner.process_token(process.pid)
        assert not token.endswith("/-")
        assert owner.is_alive(token) is True
        assert not owner.is_stopped(token)
        process.send_signal(signal.SIGSTOP)
        until(lambda: owner.is_stopped(token))
        assert owner.is_alive(token) is True
        process.send_signal(signal.SIGCONT)
        process.kill()
        until(lambda: owner.is_alive(token) is False)  # a zombie, as nobody has waited for it
        process.wait()
        assert owner.is_alive(token) is False
        assert owner.process_token(process.pid).endswith("/-")


@pytest.mark.usefixtures("_system")
def test_a_later_process_with_the_same_number_is_another() -> None:
    machine, pid, start = owner.process_token().split("/")
    assert owner.is_alive(f"{machine}/{pid}/{start}") is True
    assert owner.is_alive(f"{machine}/{pid}/1{start}") is False


@pytest.mark.usefixtures("_system")
def test_a_thread_whose_start_is_unknown_lives_as_long_as_its_process() -> None:
    assert owner.is_alive(owner.thread_token(1)) is True


def test_the_token_on_linux_is_what_it_was() -> None:
    """Rooms have such tokens in leases, locks and spheres: ticks of the kernel, and nothing of a clock."""
    start = owner.process_token().split("/")[2]
    ticks = (psutil.Process().create_time() - psutil.boot_time()) * os.sysconf("SC_CLK_TCK")
    assert start.isdigit()
    assert abs(int(start) - ticks) <= os.sysconf("SC_CLK_TCK")


def test_after_a_change_of_the_clock_only_the_lease_can_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, "_seen", lambda pid, thread=None: owner._seen_elsewhere(pid))
    token = owner.process_token()
    created, boot = psutil.Process().create_time(), psutil.boot_time()
    monkeypatch.setattr(psutil, "boot_time", partial(float, boot + 3600))
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: created + 3600)
    assert owner.is_alive(token) is None
    monkeypatch.setattr(psutil, "boot_time", partial(float, boot + 1))
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: created)
    assert owner.is_alive(token) is True, "another rounding is no other clock"
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: created + 7)
    assert owner.is_alive(token) is False


def test_the_token_of_this_process_is_read_once_and_is_the_same() -> None:
    assert owner.own_token() == owner.own_token() == owner.process_token()
    assert owner.own_token().split("/")[1] == str(os.getpid())
