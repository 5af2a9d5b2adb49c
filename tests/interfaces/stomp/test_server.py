"""The process that speaks STOMP: clients that others wrote, TLS, how it stops, and what a kill leaves."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
import stomp
from tests.interfaces.http.test_server import prepared

import postroom
from postroom.errors import ServerStopping
from postroom.interfaces.stomp import server as module

from .conftest import Stomped, Wire, eventually, stomping

STOMPJS = "7.1.1"
JAVASCRIPT = """
const { Client } = require('@stomp/stompjs');
const net = require('net');
class Pipe {  // what a WebSocket is to the client, over a plain connection
  constructor() {
    this.readyState = 0;
    this.socket = net.connect(Number(process.argv[2]), '127.0.0.1', () => { this.readyState = 1; this.onopen({}); });
    this.socket.on('data', data => this.onmessage({ data: data.toString('utf8') }));
    this.socket.on('close', () => { this.readyState = 3; this.onclose({}); });
  }
  send(data) { this.socket.write(data); }
  close() { this.socket.end(); }
}
const seen = [];
const client = new Client({
  webSocketFactory: () => new Pipe(), connectHeaders: { login: 'boss', passcode: process.argv[3] },
  heartbeatIncoming: 1000, heartbeatOutgoing: 1000, reconnectDelay: 0,
  onConnect: () => {
    client.subscribe('/queue/orders', message => {
      seen.push([message.body, message.headers.colour, message.headers.redelivered]);
      if (seen.length === 1) return message.nack();
      const transaction = client.begin();
      client.publish({ destination: '/queue/answers', body: 'answer', headers: { transaction: transaction.id } });
      message.ack({ transaction: transaction.id });
      client.watchForReceipt('done', () => { console.log(JSON.stringify(seen)); client.deactivate(); });
      client.commitHeaders = { receipt: 'done' };
      transaction.commit();
      client.publish({ destination: '/queue/answers', body: 'after', headers: { receipt: 'done' } });
    }, { ack: 'client-individual' });
    client.publish({ destination: '/queue/orders', body: 'grüße', headers: { colour: 'a:b\\nc' } });
  },
  onStompError: frame => { console.error(frame.headers, frame.body); process.exit(1); },
});
client.activate();
"""


class Listener(stomp.ConnectionListener):  # type: ignore[misc]  # it has no types
    def __init__(self) -> None:
        self.heard: SimpleQueue[tuple[str, dict[str, str], str]] = SimpleQueue()

    def on_message(self, frame: Any) -> None:
        self.heard.put(("MESSAGE", frame.headers, frame.body))

    def on_receipt(self, frame: Any) -> None:
        self.heard.put(("RECEIPT", frame.headers, frame.body))

    def on_error(self, frame: Any) -> None:
        self.heard.put(("ERROR", frame.headers, frame.body))

    def hear(self, kind: str) -> tuple[dict[str, str], str]:
        found, headers, body = self.heard.get(timeout=30)
        assert found == kind, (found, headers, body)
        return headers, body


@contextmanager
def connected(port: int, token: str, kind: Any = stomp.Connection12) -> Iterator[tuple[Any, Listener]]:
    connection, listener = kind([("127.0.0.1", port)], heartbeats=(1000, 1000)), Listener()
    connection.set_listener("", listener)
    connection.connect("boss", token, wait=True)
    try:
        yield connection, listener
    finally:
        with suppress(stomp.exception.StompException, OSError):
            connection.disconnect()


@contextmanager
def process(url: str, *more: str, env: dict[str, str] | None = None) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """``postroom serve --stomp`` as a process of its own, and its port."""
    words = [sys.executable, "-m", "postroom", "serve", "--room", url, "--port", "0", "--stomp", "0", *more]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, **(env or {})}) as child:
        try:
            assert child.stdout is not None
            yield child, int(next(line for line in child.stdout if "stomp" in line).rsplit(":", 1)[1])
        finally:
            if child.poll() is None:
                child.kill()


@pytest.mark.parametrize("kind", [stomp.Connection12, stomp.Connection11], ids=["1.2", "1.1"])
def test_stomp_py_sends_receives_and_commits(here: Stomped, kind: Any) -> None:
    with connected(here.port, here.token, kind) as (client, listener):
        client.subscribe("/queue/orders", id="1", ack="client-individual")
        client.send("/queue/orders", "grüße", headers={"colour": "a:b\nc", "receipt": "sent"})
        kinds = {}
        for _ in range(2):  # the message may be there before the receipt is read
            found, headers, body = listener.heard.get(timeout=30)
            kinds[found] = (headers, body)
        headers, body = kinds["MESSAGE"]
        assert (body, headers["colour"], headers["redelivered"]) == ("grüße", "a:b\nc", "false")
        ack = (headers["ack"],) if kind is stomp.Connection12 else (headers["message-id"], "1")
        client.nack(*ack)
        headers, _ = listener.hear("MESSAGE")
        assert (headers["redelivered"], headers["attempts"]) == ("true", "2")
        ack = (headers["ack"],) if kind is stomp.Connection12 else (headers["message-id"], "1")
        transaction = client.begin()
        client.send("/queue/answers", "answer", transaction=transaction)
        client.ack(*ack, transaction=transaction)
        client.commit(transaction, receipt="committed")
        assert listener.hear("RECEIPT")[0]["receipt-id"] == "committed"
    assert [message.body for message in here.room.peek("answers")] == ["answer"]
    assert here.room.count("orders").queues[0].processed == 1


def test_stompjs_sends_receives_and_commits(here: Stomped, tmp_path: Path) -> None:
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    words = ["npm", "install", "--no-audit", "--no-fund", "--silent", f"@stomp/stompjs@{STOMPJS}"]
    made = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    if made.returncode and os.environ.get("CI") != "true":
        pytest.skip(f"npm cannot install @stomp/stompjs here: {made.stderr[-200:]}")
    assert made.returncode == 0, made.stderr
    (tmp_path / "client.js").write_text(JAVASCRIPT)
    words = ["node", "client.js", str(here.port), here.token]
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == '[["grüße","a:b\\nc","false"],["grüße","a:b\\nc","true"]]'
    assert [message.body for message in here.room.peek("answers")] == ["answer", "after"]
    assert here.room.count("orders").queues[0].processed == 1


def test_it_speaks_tls_by_the_same_files(sqlite_url: str, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    pem, key = tmp_path / "room.pem", tmp_path / "room.key"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    more = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(pem)]
    subprocess.run([*words, *more], check=True, capture_output=True)
    with postroom.open(sqlite_url) as room, stomping(room, str(pem), str(key)) as here:
        context = ssl.create_default_context(cafile=str(pem))
        with Wire(here.port, context) as wire:
            wire.connect(here.token)
            wire.done("SEND", "x", destination="/queue/orders")
        with Wire(here.port) as clear:
            clear.say("CONNECT", accept_version="1.2", host="x", passcode=here.token)
            assert clear.hears_the_end()
        assert room.count("orders").queues[0].unprocessed == 1


@pytest.mark.parametrize("command", ["ACK", pytest.param("SEND", marks=pytest.mark.slow)])
def test_a_server_killed_between_the_commit_and_the_receipt_has_lost_nothing(url: str, command: str) -> None:
    token = prepared(url)
    with postroom.open(url) as room:
        room.queues.create("answers")
        for number in range(3):
            room.send("orders", str(number))
    point = {"ACK": "done.committed", "SEND": "send.committed"}[command]
    with process(url, env={"POSTROOM_FAULT": f"{point}:kill"}) as (child, port), Wire(port) as wire:
        wire.connect(token)
        wire.say("SUBSCRIBE", id="1", destination="/queue/orders", ack="client-individual")
        heard = [wire.hear("MESSAGE") for _ in range(3)]
        if command == "ACK":
            wire.say("ACK", id=heard[0].headers["ack"], receipt="r")
        else:
            wire.say("SEND", "answer", destination="/queue/answers", receipt="r", content_type="text/plain")
        assert wire.hears_the_end()
        assert child.wait(30) == -signal.SIGKILL
    left = ["1", "2"] if command == "ACK" else ["0", "1", "2"]
    with process(url) as (child, port), Wire(port) as wire:
        wire.connect(token)
        wire.say("SUBSCRIBE", id="1", destination="/queue/orders", ack="client")
        again = [wire.hear("MESSAGE") for _ in left]
        assert [each.body for each in again] == left
        assert {each.headers["redelivered"] for each in again} == {"true"}
        wire.done("ACK", id=again[-1].headers["ack"])
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0
    with postroom.open(url) as room:
        assert room.count("orders").queues[0].processed == 3
        assert room.count("answers").queues[0].unprocessed == (command == "SEND")
        assert not room.journal.verify().differences


def test_it_stops_when_it_is_told_to_and_says_good_bye(sqlite_url: str) -> None:
    token = prepared(sqlite_url)
    with postroom.open(sqlite_url) as room:
        room.send("orders", "x")
    with process(sqlite_url) as (child, port), Wire(port) as wire:
        wire.connect(token)
        wire.say("SUBSCRIBE", id="1", destination="/queue/orders", ack="client")
        wire.hear("MESSAGE")
        child.send_signal(signal.SIGTERM)
        assert wire.hear("ERROR").headers["code"] == ServerStopping.code
        assert wire.hears_the_end()
        assert child.wait(30) == 0
    with postroom.open(sqlite_url) as room:
        (left,) = room.peek("orders")
        assert left.body == "x"


@pytest.mark.parametrize(
    "said", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\n\n", b"SEND\n\n\0", b"\0\0\0\n\n"]
)
def test_whatever_comes_is_refused_and_the_server_goes_on(shared: Stomped, said: bytes) -> None:
    with Wire(shared.port) as odd:
        odd.socket.sendall(said)
        odd.socket.shutdown(socket.SHUT_WR)
        assert odd.hear("ERROR").headers["code"] == "request-invalid"
    with shared.wire() as wire:
        wire.done("SEND", "x", destination="/queue/orders")


def test_connections_are_bounded(here: Stomped, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STOMP_CONNECTIONS_MAX", 1)
    with here.wire() as wire:
        with Wire(here.port) as more:
            assert more.hears_the_end()
        wire.done("SEND", "x", destination="/queue/orders")


def test_a_client_that_does_not_read_is_cut_off_and_keeps_nobody_waiting(
    here: Stomped, monkeypatch: pytest.MonkeyPatch
) -> None:
    from postroom.interfaces.stomp import session

    monkeypatch.setattr(session, "STOMP_WRITE_SECONDS", 0.5)
    here.room.queues.send_many("orders", ["x" * 1_000_000] * 30)
    with here.wire() as lazy:
        lazy.say("SUBSCRIBE", id="1", destination="/queue/orders", ack="client", prefetch_count="1000")
        with here.wire() as other:
            other.done("SEND", "y", destination="/queue/answers")
        eventually(lambda: here.room.count("orders").queues[0].leased > 0)
        eventually(lambda: here.room.count("orders").queues[0].unprocessed == 30)


@pytest.mark.slow
def test_subscribers_of_a_killed_server_are_removed_by_the_next(sqlite_url: str, tmp_path: Path) -> None:
    token = prepared(sqlite_url)
    (tmp_path / "trading.flow").write_text("domain trading\nspace Trades : [issue: string, price: int]\n")
    with postroom.open(sqlite_url) as room:
        room.load(tmp_path / "trading.flow")
    with process(sqlite_url) as (child, port), Wire(port) as wire:
        wire.connect(token)
        wire.done("SUBSCRIBE", id="1", destination="/topic/Trades")
        os.kill(child.pid, signal.SIGKILL)
        child.wait(30)
    with process(sqlite_url), postroom.open(sqlite_url) as room:
        eventually(lambda: not room.flows.subscriptions())
