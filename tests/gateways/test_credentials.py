"""Secrets: found, refused if they cannot be used, and told nowhere, whatever fails and whatever a partner says."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer

import pytest
from tests.gateways.served import ORDER, SOAP

import postroom
from postroom.errors import GatewayInvalid, GatewayUnreachable
from postroom.gateways.credentials import (
    ascii_line,
    credential,
    hidden,
    hidden_in_reply,
    line,
    secret,
    told,
    webhook_key,
)
from postroom.gateways.transport import Undelivered
from postroom.limits import GATEWAY_TOLD_CHARS_MAX

CANARY = "hunter2-CANARY"
TOKEN_POLICY = """<wsp:Policy xmlns:wsp="http://www.w3.org/ns/ws-policy"
    xmlns:sp="http://docs.oasis-open.org/ws-sx/ws-securitypolicy/200702"><wsp:ExactlyOne><wsp:All>
  <sp:SupportingTokens><wsp:Policy><sp:UsernameToken/></wsp:Policy></sp:SupportingTokens>
</wsp:All></wsp:ExactlyOne></wsp:Policy>"""


def test_a_secret_is_found_where_the_reference_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "key"
    file.write_text("s3cret\n")
    monkeypatch.setenv("KEY", "other\n")
    assert (secret(f"file:{file}"), secret("env:KEY")) == ("s3cret", "other"), "without the end of its line"
    for missing in ("env:NO_SUCH_VARIABLE", "file:/no/such/file"):
        with pytest.raises(Undelivered) as caught:
            secret(missing)
        assert not caught.value.final, "an operator may put it there"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(Undelivered, match="is not UTF-8"):
        secret(f"file:{file}")


@pytest.mark.parametrize(("value", "fits", "why"), [
    ("x ", line, "blanks around it"), (" x", line, "blanks around it"), ("a\nb", line, "one line"),
    ("a\x07b", line, "printable"), ("ä", ascii_line, "not ASCII"), ("whsec_!", webhook_key, "base64"),
    ("whsec_abc", webhook_key, "base64"), ("whsec_", webhook_key, "base64"),
])  # fmt: skip
def test_a_secret_that_cannot_be_sent_is_refused_by_the_name_of_its_setting(
    monkeypatch: pytest.MonkeyPatch, value: str, fits: object, why: str
) -> None:
    monkeypatch.setenv("S", value)
    with pytest.raises(Undelivered, match=why) as caught:
        credential({"token": "env:S"}, "token", fits)  # type: ignore[arg-type]
    assert str(caught.value).startswith("token=env:S: ")
    for good in ("ä b", "whsec_aGk="):
        line(good)
    webhook_key("whsec_aGk=")


def test_a_secret_that_is_there_is_looked_at_when_a_gateway_is_added(sqlite_url: str, tmp_path: Path) -> None:
    file = tmp_path / "key"
    with postroom.open(sqlite_url) as room:
        for name, transport, text, more in [
            ("token", "http", f"{CANARY} \n", {"path": "/a"}),
            ("in_secret", "http", f"whsec_{CANARY}", {"path": "/a"}),
            ("password", "smtp", f"{CANARY}é", {"recipient": "a@b.example", "username": "ann"}),
            ("wss_password", "soap", f"{CANARY}\n{CANARY}", {"path": "/a"}),
        ]:
            file.write_text(text)
            with pytest.raises(GatewayInvalid, match=name.replace("_", "-")) as caught:
                room.gateways.add("g", transport, **more, **{name: f"file:{file}"})
            assert CANARY not in str(caught.value)
        file.unlink()
        room.gateways.add("g", "http", path="/a", in_token=f"file:{file}")
        for header in ("X-A, Authorization", "cookie"):
            with pytest.raises(GatewayInvalid, match="have secrets"):
                room.gateways.add("h", "http", path="/b", headers=header)


def test_what_a_partner_says_is_told_without_our_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S", f'{CANARY}<&"é')
    settings = {"username": "ann", "password": "env:S"}
    value = os.environ["S"]
    for said in (
        value,
        base64.b64encode(f"ann:{value}".encode()).decode(),
        base64.b64encode(f"\0ann\0{value}".encode()).decode(),
        f"{CANARY}&lt;&amp;&quot;é",
        f"{CANARY}%3C%26%22%C3%A9",
        repr(value),
    ):
        assert CANARY not in hidden(f"no: {said}.", settings), said
        assert "ann:" not in hidden(said, settings)
    assert CANARY[:5] not in told(("x" * (GATEWAY_TOLD_CHARS_MAX - 6) + value).encode(), settings), "nor half of one"
    assert hidden_in_reply(f"<a>{value}</a>".encode(), settings) == "<a>…</a>".encode()
    monkeypatch.setenv("S", "hunter2")
    assert hidden_in_reply(b"<r>Bearer hunter2</r>", settings) == "<r>Bearer …</r>".encode()
    assert hidden_in_reply(b"<r>hunter22</r>", settings) == b"<r>hunter22</r>", "a part of a word is not it"
    monkeypatch.setenv("S", "a")
    assert hidden_in_reply(b"<a/>", settings) == b"<a/>", "a short word is not looked for in messages"


# --- a canary through every transport and every failure ---


class _EchoingHttp(BaseHTTPRequestHandler):
    """Sends what it got back, by the path of the request."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        given = self.headers.get("authorization", "")
        password = base64.b64decode(given.removeprefix("Basic ")).decode() if given.startswith("Basic ") else ""
        echoed = f"{given} {password}"
        if self.path == "/garbage":
            self.wfile.write(f"{echoed}\r\n\r\n".encode())
            return
        status, kind, said = {
            "/refuse": (400, "text/plain", echoed),
            "/late": (400, "text/plain", "x" * 180 + echoed),
            "/busy": (503, "text/plain", echoed),
            "/broken": (200, "application/xml", f"<offer>{echoed}"),
            "/reply": (200, "application/xml", f"<offer>{echoed}</offer>"),
            "/fault": (500, "text/xml", _fault(f"{echoed} {body}")),
        }[self.path]
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(said.encode())))
        self.end_headers()
        self.wfile.write(said.encode())

    do_OPTIONS = do_POST

    def log_message(self, *_: object) -> None:
        """Tests are silent."""


def _fault(text: str) -> str:
    said = text.replace("&", "&amp;").replace("<", "&lt;")
    return (
        '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><s:Fault><faultcode>s:Client</faultcode>'
        f"<faultstring>{said}</faultstring><detail><d>{said}</d></detail></s:Fault></s:Body></s:Envelope>"
    )


class _EchoingMail(StreamRequestHandler):
    """A mail server that refuses who logs in, and says whom."""

    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        for words in self.rfile:
            verb, _, rest = words.strip().partition(b" ")
            if verb.lower() == b"ehlo":
                self.wfile.write(b"250-here\r\n250 AUTH PLAIN\r\n")
            elif verb.lower() == b"auth":
                packed = rest.partition(b" ")[2]
                self.wfile.write(b"535 no: " + packed + b" " + base64.b64decode(packed).replace(b"\0", b" ") + b"\r\n")
            else:
                self.wfile.write(b"221 bye\r\n")


@contextmanager
def _served(server: ThreadingTCPServer | ThreadingHTTPServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield int(server.server_address[1])
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_secret_is_nowhere_whatever_fails(tmp_path: Path) -> None:
    with ExitStack() as servers:
        http = servers.enter_context(_served(ThreadingHTTPServer(("127.0.0.1", 0), _EchoingHttp)))
        mail = servers.enter_context(_served(ThreadingTCPServer(("127.0.0.1", 0), _EchoingMail)))
        told = _sent_with_canaries(tmp_path, http, mail)
    assert told.count("an error message says so") >= 14, told
    assert CANARY not in told
    packed = [base64.b64encode(f"{mark}ann{mark}{CANARY}".encode())[:24] for mark in (":", "\0")]
    for file in tmp_path.glob("room.db*"):
        stored = file.read_bytes()
        assert CANARY.encode() not in stored, file
        assert not any(form in stored for form in packed), file


def _sent_with_canaries(folder: Path, http: int, mail: int) -> str:
    """Everything that commands say while messages fail at every endpoint."""
    files = {name: folder / name for name in ("blank", "lines", "key", "bell")}
    for file in files.values():
        file.write_text("good")
    basic = {"username": "ann", "password": "env:GOOD"}
    endpoints: dict[str, dict[str, str]] = {
        "blank": {"address": "/refuse", "token": f"file:{files['blank']}"},
        "lines": {"address": "/refuse", "token": f"file:{files['lines']}"},
        "key": {"address": "/refuse", "secret": f"file:{files['key']}"},
        **{f"token-{at}": {"address": f"/{at}", "token": "env:GOOD"} for at in _PATHS},
        **{f"basic-{at}": {"address": f"/{at}", **basic} for at in _PATHS},
    }
    lines = ["create queue errs kind basic mode persistent"]
    with postroom.open(str(folder / "room.db")) as room:
        for name, settings in endpoints.items():
            settings["address"] = f"http://127.0.0.1:{http}{settings['address']}"
            room.gateways.add(name, "http", attempts="1", **settings)
            lines.append(f"create queue {name} kind outgoingGateway mode persistent errorqueue errs")
            lines.append(f"create queue back-{name} kind incomingGateway mode persistent port {name} errorqueue errs")
        given = {"address": f"smtp://127.0.0.1:{mail}", "tls": "none", "sender": "a@b.example", "to": "c@d.example"}
        for name, where in (("mail", "GOOD"), ("foreign", "FOREIGN")):
            room.gateways.add(name, "smtp", attempts="1", **given, username="ann", password=f"env:{where}")
            lines.append(f"create queue {name} kind outgoingGateway mode persistent errorqueue errs")
        room.gateways.add(
            "CapacityRequestPort", "soap", address=f"http://127.0.0.1:{http}/fault", attempts="1", token="env:GOOD",
            wss_username="ann", wss_password="env:GOOD",
        )  # fmt: skip
        room.gateways.add(
            "CapacityRequestPort12", "soap", address=f"http://127.0.0.1:{http}/fault", attempts="1",
            wss_username="ann", wss_password=f"file:{files['bell']}",
        )  # fmt: skip
        soap = []
        for at, port in enumerate(("CapacityRequestPort", "CapacityRequestPort12")):
            soap.append(f"soap{at}")
            lines.append(
                f"create queue soap{at} kind outgoingGateway mode persistent interface supplier.wsdl port {port} "
                "using WS-Security policy token.xml errorqueue errs"
            )
        for source in SOAP.glob("supplier.*"):
            (folder / source.name).write_bytes(source.read_bytes())
        (folder / "token.xml").write_text(TOKEN_POLICY)
        (folder / "p.demaq").write_text("\n".join(lines))
        room.load(folder / "p.demaq")
        for name in (*endpoints, "mail", "foreign"):
            room.send(name, "<x/>", format="xml")
        for name in soap:
            room.send(name, ORDER % 1, format="xml")
    files["blank"].write_text(f"{CANARY} \n")
    files["lines"].write_text(f"{CANARY}\n{CANARY}")
    files["key"].write_text(f"whsec_{CANARY}")
    files["bell"].write_text(f"{CANARY}\x07{CANARY}")
    said = _commanded(folder, "run", "--until-idle")
    said += _commanded(folder, "gateway", "test", "blank") + _commanded(folder, "--json", "gateway", "test", "mail")
    said += _commanded(folder, "gateway", "add", "sup", "http", f"token={CANARY}")
    said += _commanded(folder, "gateway", "add", "sup", "http", f"token={CANARY}", f"token={CANARY}")
    said += _commanded(folder, "gateway", "add", "sup", "http", CANARY)
    return said + _commanded(folder, "--json", "gateway", "add", "sup", "http", f"address=http://ann:{CANARY}")


_PATHS = ("refuse", "late", "busy", "broken", "reply", "garbage")


def _commanded(folder: Path, *words: str) -> str:
    environment = {**os.environ, "GOOD": CANARY, "FOREIGN": f"{CANARY}é", "POSTROOM_URL": str(folder / "room.db")}
    command = [sys.executable, "-m", "postroom", *words]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=folder, check=False)
    return f"{words[:2]} {ended.stdout}{ended.stderr}\n"


def test_an_attempt_at_finding_out_tells_no_secret(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with _served(ThreadingTCPServer(("127.0.0.1", 0), _EchoingMail)) as port, postroom.open(sqlite_url) as room:
        given = {"address": f"smtp://127.0.0.1:{port}", "tls": "none", "sender": "a@b.example", "to": "c@d.example"}
        monkeypatch.setenv("GOOD", CANARY)
        room.gateways.add("mail", "smtp", **given, username="ann", password="env:GOOD")
        with pytest.raises(GatewayUnreachable, match="535") as caught:
            room.gateways.test("mail")
    assert CANARY not in str(caught.value)
