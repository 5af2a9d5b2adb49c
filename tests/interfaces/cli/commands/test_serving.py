"""The command serve, and commands through a server."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.interfaces import shapes
from tests.interfaces.http.conftest import serving
from tests.interfaces.http.test_server import prepared, process

import postroom
from postroom.interfaces.cli.commands import serving as serving_command
from postroom.interfaces.cli.context import settings
from postroom.interfaces.http.server import Listening

from ...conftest import Run

RULES = """create queue incoming kind basic mode persistent
create queue large kind basic mode persistent
create rule sort for incoming
if (/order/id) then do enqueue <approve>{/order/id}</approve> into large
"""


def test_commands_take_the_url_of_a_server(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with postroom.open(tmp_path / "postroom.db") as room, serving(room) as served:
        monkeypatch.setenv("POSTROOM_TOKEN", served.token)
        monkeypatch.setenv("POSTROOM_URL", served.url)
        assert run("queue", "create", "orders").out == "created orders\n"
        key = run("send", "orders", "--body", "order 17").out.strip()
        assert run("count", "--json").json["queues"][0]["unprocessed"] == 1
        assert "order 17" in run("peek", "orders").out
        assert run("receive", "orders").out == "order 17\n"
        assert run("trace", key, "--json").json["events"][0]["by"] == "boss"
        assert run("locate", key).out == "orders\n"
        assert run("journal", "--last", "2").code == 0
        assert run("top", "--once").code == 0
        assert run("doctor", "--brief").code in (0, 1)
        (tmp_path / "tree.qdl").write_text('01 INPUT-QUEUE (CLAIMS) PASSWORD IS "CLAIMS"\n99\n')
        assert "1 added" in run("load", "tree.qdl").out
        assert run("backup", "copy.db").code == 0
        refused = run("restore", "copy.db")
        assert (refused.code, "not-remote" in refused.err) == (1, True)
        assert run("serve").code == 1


@pytest.mark.slow
def test_with_run_it_is_the_engine_too_and_stops_with_it(tmp_path: Path, sqlite_url: str) -> None:
    (tmp_path / "orders.demaq").write_text(RULES)
    token = prepared(sqlite_url)
    with postroom.open(sqlite_url) as room:
        room.load(tmp_path / "orders.demaq")
    with process(sqlite_url, "--port", "0", "--run") as (child, url):
        with postroom.open(url, token=token) as remote:
            remote.send("incoming", "<order><id>17</id></order>", format="xml")
            received = remote.receive("large", wait=200)
            assert received.message is not None
            assert received.message.body == "<approve><id>17</id></approve>"
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0


def test_it_says_where_it_listens(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    beside = {name: SimpleNamespace(url=f"{name}:1") for name in ("stomp", "session")}
    monkeypatch.setattr(settings, "json", True)
    for servers in ({}, beside):
        places = serving_command._Places(Listening(port=0), None, None)
        serving_command._listening(places, servers, "http://127.0.0.1:1")
        shapes.check(["serve"], json.loads(capsys.readouterr().out))
        assert places.http.port == 1
        serving_command._listening(places, servers, "http://127.0.0.1:1")
        assert capsys.readouterr().out == "", "once, also if the room is opened again"


def test_it_refuses_to_be_exposed_and_says_how_not_to_be(run: Run) -> None:
    refused = run("serve", "--host", "0.0.0.0", "--port", "0")
    assert refused.code == 1
    assert refused.err.startswith("postroom: server-exposed: 0.0.0.0 can be reached")
    assert run("serve", "--master", "local[1]").code == 1
    assert run("serve", "--tls-key", "x").code == 1
