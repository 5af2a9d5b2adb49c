"""A process that listens: it says so, takes messages in, and ends by a signal."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import postroom
from postroom.errors import ListenRefused
from postroom.gateways.listening import listen
from postroom.gateways.smtp_server import free_port
from postroom.room import Postroom


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_of_its_own_listens_and_ends(sqlite_url: str, tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "p.demaq").write_text("create queue q kind incomingGateway mode persistent port here")
    with postroom.open(sqlite_url) as room:
        room.gateways.add("here", "http", path="/q")
        room.load(tmp_path / "p.demaq")
        port = free_port("127.0.0.1")
        command = [sys.executable, "-m", "postroom", "--room", sqlite_url, "gateway", "listen"]
        server = subprocess.Popen(
            [*command, "--http", f"127.0.0.1:{port}", "--smtp", f"127.0.0.1:{free_port('127.0.0.1')}"],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stderr is not None
            assert "mail is taken in" in server.stderr.readline()
            assert f"messages are taken in at 127.0.0.1:{port}" in server.stderr.readline()
            assert httpx.post(f"http://127.0.0.1:{port}/q", content="x", trust_env=False).status_code == 202
        finally:
            server.send_signal(number)
            server.communicate(timeout=30)
        assert [message.body for message in room.queues.info("q")] == ["x"]


def test_a_place_that_is_taken_is_told_with_the_option_for_another(room: Postroom) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = taken.getsockname()
        with pytest.raises(ListenRefused, match=r"http://127\.0\.0\.1:[0-9]+: .* in use; .* with --http"):
            listen(room.gateways, place, None, None, None, print)
        with pytest.raises(ListenRefused, match=r"smtp://127\.0\.0\.1:[0-9]+: .* in use; .* with --smtp"):
            listen(room.gateways, None, place, None, None, print)
