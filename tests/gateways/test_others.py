"""Servers that others wrote: nginx before our own, and OpenSMTPD with a box that is read back."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from pathlib import Path

import httpx
import pytest
from tests.gateways.served import bodies, listening, listens, opened, running, until
from tests.programs import installed

from postroom.gateways.smtp_server import free_port
from postroom.room import Postroom

pytestmark = pytest.mark.slow
ANSWERING = """
create queue asked kind incomingGateway mode persistent interface http port ask
create queue answers kind outgoingGateway mode persistent interface http port ask
create rule answer for asked if (/n) then do enqueue <double>{/n * 2}</double> into answers
"""
MAILING = "create queue mail kind outgoingGateway mode persistent interface smtp port post\n"
NGINX = """
daemon off; pid {folder}/nginx.pid; error_log stderr; worker_processes 1;
events {{}}
http {{
  access_log off; client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  upstream room {{ server 127.0.0.1:{behind}; keepalive 4; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass http://room; proxy_http_version 1.1; proxy_set_header Connection ""; }}
  }}
}}
"""


@contextmanager
def started(command: list[str], port: int) -> Iterator[None]:
    """A server that listens at a port, until the end."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        try:
            until(lambda: listens(port))
            yield
        finally:
            child.terminate()


@pytest.fixture
def room(sqlite_url: str) -> Iterator[Postroom]:
    with opened(sqlite_url) as it:
        yield it


def test_a_synchronous_answer_comes_through_nginx(room: Postroom, tmp_path: Path) -> None:
    nginx = installed("nginx", "nginx-light")
    room.gateways.add("ask", "http", path="/ask", wait="30")
    (tmp_path / "p.demaq").write_text(ANSWERING)
    room.load(tmp_path / "p.demaq")
    xml = {"content-type": "application/xml"}
    with listening(room) as behind, httpx.Client(trust_env=False, timeout=60) as client:
        port = free_port("127.0.0.1")
        (tmp_path / "nginx.conf").write_text(NGINX.format(folder=tmp_path, behind=behind, port=port))
        with started([nginx, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")], port):
            address = f"http://127.0.0.1:{port}/ask"
            late = client.post(address, content="<n>4</n>", headers={**xml, "prefer": "wait=0"})
            assert late.status_code == 202
            with running(room):
                for number in range(5, 10):
                    answer = client.post(address, content=f"<n>{number}</n>", headers=xml)
                    assert (answer.status_code, answer.text) == (200, f"<double>{number * 2}</double>")
                place = f"http://127.0.0.1:{port}{late.headers['location']}"
                until(lambda: client.get(place).status_code == 200)
                assert client.get(place).text == "<double>8</double>"
            assert client.post(f"{address}/none", content="x").status_code == 404
            assert client.post(address, content="<n>", headers=xml).status_code == 400


def test_a_mail_is_in_the_box_of_its_recipient(room: Postroom, tmp_path: Path) -> None:
    smtpd = installed("smtpd", "opensmtpd")
    if os.geteuid() != 0 or Path("/var/run/smtpd.sock").exists():
        pytest.skip("OpenSMTPD runs as root, and once on a machine")
    boxes = Path("/tmp") / f"postroom-boxes-{os.getpid()}"  # nobody can enter the folder of a test
    boxes.mkdir(mode=0o777)
    boxes.chmod(0o777)
    port = free_port("127.0.0.1")
    keep = f'action "keep" maildir "{boxes}/%{{rcpt.user}}" virtual {{ "@" = nobody }}'
    text = f'listen on 127.0.0.1 port {port}\n{keep}\nmatch from any for any action "keep"\n'
    (tmp_path / "smtpd.conf").write_text(text)
    settings = {"tls": "none", "sender": "room@a.example", "to": "ann@b.example", "recipients": "@b.example"}
    room.gateways.add("post", "smtp", address=f"smtp://127.0.0.1:{port}", subject="order $id", **settings)
    (tmp_path / "p.demaq").write_text(MAILING)
    room.load(tmp_path / "p.demaq")
    room.send("mail", "<order>nüts</order>", format="xml", properties={"id": 7})
    room.send("mail", "for Bob", properties={"id": 8, "recipient": "bob@b.example"})
    try:
        with started([smtpd, "-d", "-f", str(tmp_path / "smtpd.conf")], port):
            room.run_until_idle()
            until(lambda: len(list(boxes.glob("*/new/*"))) == 2)
        read = {
            file.parent.parent.name: message_from_bytes(file.read_bytes(), policy=policy.default)
            for file in boxes.glob("*/new/*")
        }
    finally:
        subprocess.run(["rm", "-r", str(boxes)], check=False)
    assert {name: (mail["Subject"], mail.get_content().strip()) for name, mail in read.items()} == {
        "ann": ("order 7", "<order>nüts</order>"),
        "bob": ("order 8", "for Bob"),
    }
    assert len({mail["Message-ID"] for mail in read.values()}) == 2
    assert bodies(room, "mail") == ["<order>nüts</order>", "for Bob"]
