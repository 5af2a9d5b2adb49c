"""HTTP going out: what a request says, and that it goes where the operator says and nowhere else."""

from __future__ import annotations

import base64
import hashlib
import hmac
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from time import monotonic, sleep
from typing import Any

import pytest
from tests.gateways.conftest import Partner

from postroom.gateways.circuits import Circuits
from postroom.gateways.http import HttpTransport, signature
from postroom.gateways.transport import Letter, Undelivered, read_settings
from postroom.limits import CIRCUIT_FAILURES, CIRCUIT_SECONDS, REPLY_BYTES_MAX
from postroom.store.tables.endpoints import Endpoint


@pytest.fixture
def transport() -> Iterator[HttpTransport]:
    made = HttpTransport()
    yield made
    made.close()


def letter(*, properties: Any = None, **settings: str) -> Letter:
    given = {name.replace("_", "-"): text for name, text in settings.items()}
    read = read_settings("g", HttpTransport.settings, given)
    endpoint = Endpoint("g", "http", HttpTransport().check(read), read, f"mark{sorted(settings.items())}")
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    return Letter("m-1", "00001.00001", "out", "<x/>", "xml", None, moment, properties or {}, endpoint)


def test_a_request_says_what_it_is_and_which(transport: HttpTransport, partner: Partner) -> None:
    sent = transport.outgoing(letter(address=partner.address))
    assert sent.outcome == "HTTP 204"
    (path, headers, body) = partner.got[0]
    assert (path, body) == ("/in", b"<x/>")
    assert headers["content-type"] == "application/xml; charset=utf-8"
    assert headers["idempotency-key"] == '"m-1"'
    assert "authorization" not in headers


def test_a_connection_is_kept_for_the_next_message(transport: HttpTransport, partner: Partner) -> None:
    for _ in range(5):
        transport.outgoing(letter(address=partner.address))
    assert (len(partner.got), partner.connections) == (5, 1)


def test_a_signature_is_that_of_standard_webhooks(
    transport: HttpTransport, partner: Partner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEBHOOK", "whsec_" + base64.b64encode(b"k" * 24).decode())
    transport.outgoing(letter(address=partner.address, secret="env:WEBHOOK"))
    headers = partner.got[0][1]
    signed = f"m-1.{headers['webhook-timestamp']}.<x/>".encode()
    wanted = base64.b64encode(hmac.new(b"k" * 24, signed, hashlib.sha256).digest()).decode()
    assert (headers["webhook-id"], headers["webhook-signature"]) == ("m-1", f"v1,{wanted}")
    # The example of the specification's own test data.
    key, id, stamp = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330"
    assert signature(key, id, stamp, b'{"test": 2432232314}') == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_secret_that_is_missing_for_a_while_does_not_close_the_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The one message that tries whether a host is back has no secret then; the next one has."""
    now = [0.0]
    transport = HttpTransport()
    monkeypatch.setattr(transport, "_circuits", Circuits(lambda: now[0]))
    for _ in range(CIRCUIT_FAILURES):
        with pytest.raises(Undelivered):
            transport.outgoing(letter(address="http://127.0.0.1:9/"))
    now[0] = CIRCUIT_SECONDS + 1
    with pytest.raises(Undelivered, match="there is no secret"):
        transport.outgoing(letter(address="http://127.0.0.1:9/", token="env:NO_SUCH_TOKEN"))
    monkeypatch.setenv("NO_SUCH_TOKEN", "x")
    with pytest.raises(Undelivered, match="refused"):
        transport.outgoing(letter(address="http://127.0.0.1:9/", token="env:NO_SUCH_TOKEN"))
    transport.close()


def test_cloud_events_have_their_attributes(transport: HttpTransport, partner: Partner) -> None:
    transport.outgoing(letter(address=partner.address, cloudevents="yes"))
    headers = partner.got[0][1]
    assert (headers["ce-specversion"], headers["ce-id"], headers["ce-type"]) == ("1.0", "m-1", "postroom.out")
    assert headers["ce-time"].startswith("2026-01-02T03:04:05")
    assert headers["idempotency-key"] == '"m-1"', "only attributes are percent-encoded"


@pytest.mark.parametrize(("settings", "wanted"), [
    ({"token": "env:T"}, "Bearer s3cret"),
    ({"username": "ann", "password": "env:T"}, f"Basic {base64.b64encode(b'ann:s3cret').decode()}"),
])  # fmt: skip
def test_credentials_come_from_where_the_operator_says(
    transport: HttpTransport,
    partner: Partner,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, str],
    wanted: str,
) -> None:
    monkeypatch.setenv("T", "s3cret")
    transport.outgoing(letter(address=partner.address, **settings))
    assert partner.got[0][1]["authorization"] == wanted
    monkeypatch.delenv("T")
    with pytest.raises(Undelivered, match="no secret at env:T"):
        transport.outgoing(letter(address=partner.address, **settings))


@pytest.mark.parametrize(("status", "headers", "final", "after"), [
    (503, {"Retry-After": "7"}, False, 7.0),
    (429, {"Retry-After": "Fri, 02 Jan 1970 00:00:00 GMT"}, False, 0.0),
    (503, {"Retry-After": "999999999"}, False, 3600.0),
    (503, {"Retry-After": "soon"}, False, 0.0),
    (400, {"Retry-After": "7"}, True, 0.0),
    (302, {"Location": "http://127.0.0.1:1/"}, True, 0.0),
])  # fmt: skip
def test_an_answer_says_whether_to_try_again(
    transport: HttpTransport, partner: Partner, status: int, headers: dict[str, str], final: bool, after: float
) -> None:
    partner.answers.append((status, headers, b"why"))
    with pytest.raises(Undelivered, match=f"answered {status}: why") as caught:
        transport.outgoing(letter(address=partner.address))
    assert (caught.value.final, caught.value.after_seconds) == (final, after)


# --- row S6: canaries that must not be hit ---


@pytest.mark.parametrize(
    "host",
    ["2130706433", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "[::ffff:127.0.0.1]", "0.0.0.0", "localhost", "localhost.",
     "127.1", "[::1]", "127.0.0.1.", "user@127.0.0.1", "127.0.0.1%2f", "①②⑦.0.0.1"],
)  # fmt: skip
def test_a_property_leads_to_no_origin_that_is_not_listed(
    transport: HttpTransport, partner: Partner, host: str
) -> None:
    for recipient in (f"http://{host}:{partner.port}/", f"//{host}:{partner.port}/"):
        with pytest.raises(Undelivered) as caught:
            transport.outgoing(letter(address="http://supplier.example/", properties={"recipient": recipient}))
        assert caught.value.final
    assert partner.connections == 0


def test_a_property_may_name_a_path_or_a_listed_origin(transport: HttpTransport, partner: Partner) -> None:
    transport.outgoing(letter(address=partner.address, properties={"recipient": "/other"}))
    listed = letter(
        address="http://supplier.example/", origins=f"http://127.0.0.1:{partner.port}",
        properties={"recipient": f"http://127.0.0.1:{partner.port}/third"},
    )  # fmt: skip
    transport.outgoing(listed)
    assert [path for path, _, _ in partner.got] == ["/other", "/third"]


def test_a_name_that_leads_inside_is_refused_and_looked_up_once(partner: Partner) -> None:
    """A resolver that answers with a public address first and with loopback then is asked once per connection."""
    asked: list[str] = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) > 1 else ["192.0.2.1"]  # a public one is not reached here

    inside = HttpTransport(resolver=lambda host, port: ["127.0.0.1"])
    with pytest.raises(Undelivered, match="private=yes allows that"):
        inside.outgoing(letter(address=f"http://rebind.example:{partner.port}/"))
    assert partner.connections == 0
    inside.outgoing(letter(address=f"http://rebind.example:{partner.port}/", private="yes"))
    assert partner.connections == 1
    inside.close()
    outside = HttpTransport(resolver=rebinding)
    with pytest.raises(Undelivered):
        outside.outgoing(letter(address=f"http://rebind.example:{partner.port}/", seconds="0.2"))
    assert (asked, partner.connections) == (["rebind.example"], 1)
    outside.close()


def test_no_redirect_is_followed_and_no_proxy_is_used(
    transport: HttpTransport, partner: Partner, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = socket.create_server(("127.0.0.1", 0))
    canary.setblocking(False)
    place = f"http://127.0.0.1:{canary.getsockname()[1]}"
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, place)
    partner.answers.append((307, {"Location": place}, b""))
    with pytest.raises(Undelivered, match="307"):
        transport.outgoing(letter(address=partner.address))
    with pytest.raises(BlockingIOError):
        canary.accept()
    canary.close()


def test_a_reply_is_bounded_and_never_unpacked(transport: HttpTransport, partner: Partner) -> None:
    partner.answers.append((200, {"content-encoding": "gzip"}, b"not gzip at all"))
    reply = transport.outgoing(letter(address=partner.address)).reply
    assert reply is not None
    assert reply.body == b"not gzip at all"
    partner.answers.append((200, {}, b"x" * (REPLY_BYTES_MAX + 1)))
    with pytest.raises(Undelivered, match="the reply is larger") as caught:
        transport.outgoing(letter(address=partner.address))
    assert caught.value.final


def test_a_partner_that_trickles_is_left_after_the_time_limit(transport: HttpTransport) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def trickle() -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
            while not ended.is_set():
                try:
                    connection.sendall(b"a")
                except OSError:
                    return
                sleep(0.02)

    thread = threading.Thread(target=trickle)
    thread.start()
    began = monotonic()
    with pytest.raises(Undelivered, match="Timeout"):
        transport.outgoing(letter(address=f"http://127.0.0.1:{server.getsockname()[1]}/", seconds="0.3"))
    assert monotonic() - began < 20
    ended.set()
    thread.join()
    server.close()


@pytest.mark.parametrize("settings", [
    {}, {"address": "ftp://x/"}, {"address": "http://u:p@x/"}, {"address": "x"}, {"path": "orders"},
    {"address": "http://x/", "username": "ann"}, {"address": "smtp://x/"},
])  # fmt: skip
def test_settings_that_cannot_work_are_refused(settings: dict[str, str]) -> None:
    with pytest.raises((ValueError, Exception), match=r"\w"):
        HttpTransport().check(read_settings("g", HttpTransport.settings, settings))
