"""The process that listens: where it may, within which bounds, and how it stops or is killed."""

from __future__ import annotations

import logging
import os
import re
import resource
import signal
import socket
import ssl
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import sleep

import httpx
import pytest
from tests.interfaces.http.conftest import serving

import postroom
from postroom.errors import (
    AnswerLost,
    ArgumentInvalid,
    ListenRefused,
    ServerExposed,
    ServerFailed,
    ServerUnreachable,
)
from postroom.interfaces.http import server
from postroom.interfaces.http.handling import calls
from postroom.interfaces.http.server import Listening, check
from postroom.room import Postroom


def prepared(url: str) -> str:
    """A room with a queue and an operator; answers with a token."""
    with postroom.open(url) as room:
        room.queues.create("orders")
        room.flows.add_principal("boss", "secret")
        room.access.grant("boss", "operate")
        return room.access.create_token("boss", "x")


@contextmanager
def process(url: str, *more: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """``postroom serve`` as a process of its own, and its URL."""
    words = [sys.executable, "-m", "postroom", "serve", "--room", url, *more]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            yield child, child.stdout.readline().split()[-1]
        finally:
            if child.poll() is None:
                child.kill()


# --- where it listens ---


def test_it_listens_on_a_public_address_only_with_a_certificate_and_a_user(room: Postroom, tmp_path: Path) -> None:
    (tmp_path / "pem").write_text("x")
    pem = str(tmp_path / "pem")
    for host in ("127.0.0.1", "::1", "localhost", "127.5.5.5"):
        check(room, Listening(host))
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org", "0"):
        with pytest.raises(ServerExposed, match="certificate"):
            check(room, Listening(host))
        with pytest.raises(ServerExposed, match="no user"):
            check(room, Listening(host, 7600, pem, pem))
    room.flows.add_principal("boss", "secret")
    room.access.grant("boss", "operate")
    check(room, Listening("0.0.0.0", 7600, pem, pem))
    for wrong in (Listening("127.0.0.1", 1, pem, None), Listening("127.0.0.1", 1, "/nowhere", "/nowhere")):
        with pytest.raises(ArgumentInvalid):
            check(room, wrong)


def test_a_port_that_is_taken_is_told_before_anything_is_begun() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = Listening(port=taken.getsockname()[1])
        with pytest.raises(ListenRefused, match=r"in use; .* with --port"):
            server.bound(place)
        with pytest.raises(ListenRefused, match=r"in use; .* with --stomp"):
            server.bound(place, "--stomp")
    with pytest.raises(ListenRefused, match="with --host"):
        server.bound(Listening("192.0.2.1", 0))


# --- the process ---


def test_a_server_that_stops_does_not_wait_for_those_who_follow_or_wait(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postroom.open(sqlite_url) as room:
        room.queues.create("orders")
        with serving(room) as served, ExitStack() as stack:
            waits, pause = threading.Event(), calls.pause

            def noted(room: Postroom, queue: tuple[str, ...] | None) -> float:
                waits.set()
                return pause(room, queue)

            monkeypatch.setattr(calls, "pause", noted)
            cancelled: list[object] = []
            monkeypatch.setattr(logging.getLogger("uvicorn.error"), "error", lambda *told: cancelled.append(told))
            client = stack.enter_context(served.client())
            assert client.post("/spheres", json={"id": "mine", "heartbeat": 4}).status_code == 200
            paths = ("/queues/orders/follow", "/journal/follow", "/spheres/mine/heartbeat")
            streams = [stack.enter_context(client.stream("GET", path)) for path in paths]
            waited: list[int] = []

            def wait() -> None:
                with served.client() as other:
                    answer = other.post("/queues/orders/receive", json={"wait": 300}, timeout=120)
                    waited.append(answer.status_code)
                    assert answer.json()["message"] is None

            thread = threading.Thread(target=wait)
            thread.start()
            assert waits.wait(60)
            while served.interface.tail.followers < 2:
                sleep(0.01)
            served.stop()
            for stream in streams:
                assert stream.status_code == 200
                stream.read()  # they end
            thread.join(60)
            assert waited == [200]
            assert not cancelled, "nothing had to be broken off"


def test_it_stops_when_it_is_told_to_and_leaves_a_closed_room(sqlite_url: str) -> None:
    token = prepared(sqlite_url)
    with process(sqlite_url, "--port", "0") as (child, url):
        with postroom.open(url, token=token) as remote:
            remote.send("orders", "x")
        child.send_signal(signal.SIGTERM)
        assert child.wait(30) == 0
    assert not Path(f"{sqlite_url}-wal").exists()
    with postroom.open(sqlite_url) as room:
        assert room.count("orders").queues[0].unprocessed == 1


def _kill_under_load(url: str, token: str, clients: int, messages: int) -> None:
    acknowledged: dict[str, str] = {}
    unknown: list[str] = []

    def send(at: str, body: str) -> None:
        try:
            with postroom.open(at, token=token) as remote:
                acknowledged[body] = remote.send("orders", body, idempotency_key=body).key
        except (AnswerLost, ServerUnreachable, ServerFailed):
            unknown.append(body)

    bodies = [f"message {number}" for number in range(messages)]
    with process(url, "--port", "0") as (child, at), ThreadPoolExecutor(clients) as pool:
        done = pool.map(lambda body: send(at, body), bodies)
        while len(acknowledged) < messages // 3:
            sleep(0.01)
        os.kill(child.pid, signal.SIGKILL)
        list(done)
    assert unknown, "some were on their way"
    known = dict(acknowledged)
    with process(url, "--port", "0") as (_, at):
        for body in bodies:  # all of them again: what was acknowledged has the key that it had
            send(at, body)
    assert {body: acknowledged[body] for body in known} == known
    with postroom.open(url) as room:
        assert sorted(message.body for message in room.peek("orders")) == sorted(bodies), "each of them once"
        assert not room.journal.verify().differences


def test_a_killed_server_has_lost_nothing_it_acknowledged_and_a_retry_does_not_double(sqlite_url: str) -> None:
    _kill_under_load(sqlite_url, prepared(sqlite_url), 8, 60)


@pytest.mark.slow
def test_a_killed_server_under_64_clients(url: str) -> None:
    _kill_under_load(url, prepared(url), 64, 640)


def test_a_server_stops_though_a_request_goes_on(sqlite_url: str) -> None:
    """As a query that starts Spark does, which nobody can end."""
    token = prepared(sqlite_url)
    program = f"""
import sys, time
from postroom.interfaces.http import app, server
from postroom.room.operations import RoomOperations
app.STOP_SECONDS = server.STOP_SECONDS = 1.0
def diagnose(self):
    print("begun", flush=True)
    time.sleep(3600)
RoomOperations.diagnose = diagnose
sys.argv = ["postroom", "serve", "--room", {sqlite_url!r}, "--port", "0"]
from postroom.interfaces.cli.main import main
main()
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        url = child.stdout.readline().split()[-1]
        asking = threading.Thread(target=_asked, args=(url, token))
        asking.start()
        assert child.stdout.readline() == "begun\n"
        child.send_signal(signal.SIGTERM)
        try:
            assert child.wait(60) == 0
        finally:
            child.kill()
            asking.join(60)
    with postroom.open(sqlite_url) as room:
        assert not room.journal.verify().differences


def _asked(url: str, token: str) -> None:
    with suppress(httpx.HTTPError):
        httpx.get(f"{url}/doctor", headers={"authorization": f"Bearer {token}"}, timeout=120, trust_env=False)


def test_only_the_expected_socket_is_open(sqlite_url: str) -> None:
    prepared(sqlite_url)
    with process(sqlite_url, "--port", "0") as (child, url):
        port = int(url.rsplit(":", 1)[1])
        sockets = Path(f"/proc/{child.pid}/net/tcp").read_text().splitlines()[1:]
        inodes = {os.readlink(each) for each in Path(f"/proc/{child.pid}/fd").iterdir() if each.is_symlink()}
        mine = [row.split()[1] for row in sockets if row.split()[3] == "0A" and f"socket:[{row.split()[9]}]" in inodes]
        assert mine == [f"0100007F:{port:04X}"]
        assert httpx.get(f"{url}/health/ready", trust_env=False).status_code == 200


# --- TLS, and many who follow ---


def certificate(folder: Path) -> tuple[str, str]:
    """A certificate for this machine that no authority has signed, and its key."""
    files = str(folder / "room.pem"), str(folder / "room.key")
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    about = ["-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    subprocess.run([*words, *about, "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    return files


def test_a_certificate_is_shown_and_checked_and_nothing_is_said_in_the_clear(sqlite_url: str, tmp_path: Path) -> None:
    token = prepared(sqlite_url)
    pem, key = certificate(tmp_path)
    with process(sqlite_url, "--port", "0", "--tls-certificate", pem, "--tls-key", key) as (_, url):
        assert url.startswith("https://127.0.0.1:")
        known = {"authorization": f"Bearer {token}"}
        trusted = ssl.create_default_context(cafile=pem)
        with httpx.Client(verify=trusted, trust_env=False, timeout=30) as client:
            assert client.get(f"{url}/queues", headers=known).status_code == 200
        with httpx.Client(trust_env=False, timeout=30) as stranger, pytest.raises(httpx.ConnectError):
            stranger.get(f"{url}/queues", headers=known)
        address = ("127.0.0.1", int(url.rsplit(":", 1)[1]))
        with socket.create_connection(address, timeout=30) as clear:
            clear.sendall(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
            with suppress(OSError):
                assert not clear.recv(100).startswith(b"HTTP/1.1 2")
        old = ssl.create_default_context(cafile=pem)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        with socket.create_connection(address, timeout=30) as plain, pytest.raises((ssl.SSLError, OSError)):
            old.wrap_socket(plain, server_hostname="127.0.0.1")


def _memory(pid: int) -> int:
    return int(re.findall(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())[0]) * 1024


def _follow(url: str, count: int, reading: int) -> tuple[float, float]:
    """So many followers, of which some never read; answers with the memory of each, and of messages to it."""
    token = prepared(url)
    with process(url, "--port", "0") as (child, at), httpx.Client(base_url=at, trust_env=False, timeout=120) as client:
        address = ("127.0.0.1", int(at.rsplit(":", 1)[1]))
        known = {"authorization": f"Bearer {token}"}
        assert client.post("/queues/orders/messages", json={"body": "x"}, headers=known).status_code == 201
        before = _memory(child.pid)
        head = f"GET /queues/orders/follow HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        followers: list[socket.socket] = []
        try:
            for _ in range(count):  # each asks at once: whoever is silent for long is cut off
                followers.append(socket.create_connection(address, timeout=120))
                followers[-1].sendall(head)
            for each in followers:
                assert each.recv(12) == b"HTTP/1.1 200"
            while f"postroom_followers {count}" not in client.get("/metrics", headers=known).text:
                sleep(0.2)
            open_ = _memory(child.pid)
            assert client.post("/queues/orders/messages", json={"body": "news"}, headers=known).status_code == 201
            for each in followers[:reading]:
                said = b""
                while b"news" not in said:
                    said += each.recv(65536)
            for _ in range(20):
                big = {"body": "y" * 10_000}
                assert client.post("/queues/orders/messages", json=big, headers=known).status_code == 201
            after = _memory(child.pid)
        finally:
            for each in followers:
                each.close()
        assert client.get("/health/ready").status_code == 200
    return (open_ - before) / count, (after - open_) / count


def test_hundreds_follow_and_those_who_read_nothing_cost_bounded_memory(sqlite_url: str) -> None:
    each, message = _follow(sqlite_url, 200, 20)
    assert each < 200_000
    assert message < 1_000_000


@pytest.mark.slow
def test_ten_thousand_follow(sqlite_url: str) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    each, message = _follow(sqlite_url, 10_000, 10_000)
    print(f"a follower: {each / 1024:.0f} KiB; twenty messages of 10 kB to each: {message / 1024:.0f} KiB")
    assert each < 100_000
    assert message < 1_000_000
