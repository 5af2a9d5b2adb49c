"""gSOAP and we: programs in C, made from the interface that we publish, call us, serve us, and send reliably."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random

import pytest
from tests.gateways.killed import Process, killed_until
from tests.gateways.lossy import lossy
from tests.gateways.served import ORDER, REQUEST, SOAP, bodies, listening, loaded, opened, running
from tests.gateways.test_soap_server import PROGRAM as SERVED
from tests.programs import installed

from postroom.gateways.smtp_server import free_port
from postroom.room import Postroom

pytestmark = pytest.mark.slow
SOURCES = Path(__file__).parent / "gsoap"
GSOAP = Path("/usr/share/gsoap")
PLUGIN = [
    *(GSOAP / "plugin" / name for name in ("wsrmapi.c", "wsaapi.c", "threads.c")),
    GSOAP / "custom" / "duration.c",
    "-DRELIABLE",
    "-lpthread",
]
CALLING = """
create queue supplier kind outgoingGateway mode persistent interface supplier.wsdl port CapacityRequestPort
  {using} errorqueue errs
create queue replies kind incomingGateway mode persistent interface supplier.wsdl port CapacityRequestPort
  {using} errorqueue errs
create queue errs kind basic mode persistent
"""
RELIABLE = """
create queue requests kind incomingGateway mode persistent interface supplier.wsdl port CapacityRequestPort
  using WS-ReliableMessaging errorqueue errs
create queue errs kind basic mode persistent
"""


def run(*words: object, folder: Path) -> str:
    ran = subprocess.run([*map(str, words)], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert (ran.returncode, "fault" in ran.stderr) == (0, False), ran.stderr + ran.stdout
    return ran.stdout


def made(folder: Path, wsdl: str, program: str, *more: object) -> Path:
    """A program of ours with what gSOAP makes of an interface; with more, it has the plug-in for reliable messaging."""
    for name, packages in (("wsdl2h", ["gsoap", "libgsoap-dev"]), ("gcc", ["gcc", "libc6-dev"])):
        installed(name, *packages)
    if not Path("/usr/include/stdsoap2.h").exists():
        pytest.skip("libgsoap-dev is not installed: apt-get install libgsoap-dev")
    folder.mkdir(parents=True, exist_ok=True)
    run("wsdl2h", "-c", "-o", "plain.h", wsdl, folder=folder)
    imports = '#import "wsrm.h"\n' if more else ""
    (folder / "all.h").write_text(imports + (folder / "plain.h").read_text())
    run("soapcpp2", "-1", "-c", "-L", f"-I{GSOAP / 'import'}:{GSOAP}", "all.h", folder=folder)
    serves = program in ("service", "kept")
    sides = ["soapServer.c", *(["soapClient.c"] if more else [])] if serves else ["soapClient.c"]
    options = ["-w", "-DWITH_IPV6", "-DWITH_DOM", "-I.", f"-I{GSOAP / 'plugin'}", f"-I{GSOAP}"]
    run("gcc", *options, "-o", program, SOURCES / f"{program}.c", "soapC.c", *sides, *more, "-lgsoap", folder=folder)
    return folder / program


@contextmanager
def serving(program: Path) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    with subprocess.Popen([program], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            yield int(child.stdout.readline()), child
        finally:
            child.kill()


@pytest.fixture
def room(sqlite_url: str) -> Iterator[Postroom]:
    with opened(sqlite_url) as it:
        yield it


def test_a_client_made_from_the_interface_that_we_publish_calls_us(room: Postroom, tmp_path: Path) -> None:
    for name, path in (("CapacityRequestPort", "/capacity"), ("CapacityRequestPort12", "/12"), ("SumPort", "/sums")):
        room.gateways.add(name, "soap", path=path, wait="30")
    loaded(room, tmp_path, SERVED)
    with running(room), listening(room) as port:
        address = f"http://127.0.0.1:{port}"
        client = made(tmp_path / "client", f"{address}/capacity?wsdl", "client")
        said = run(client, f"{address}/capacity", f"{address}/sums", folder=tmp_path)
    assert said.splitlines() == ["offer nüts 6", "fault too many", "placed", "sum 5"]
    assert any(":id>7<" in body for body in bodies(room, "requests"))
    assert bodies(room, "errs") == []


def test_we_call_a_service_of_theirs(room: Postroom, tmp_path: Path) -> None:
    service = made(tmp_path / "service", str(SOAP / "supplier.wsdl"), "service")
    with serving(service) as (port, child):
        room.gateways.add(
            "CapacityRequestPort", "soap", address=f"http://127.0.0.1:{port}/", attempts="3", backoff="0.1"
        )
        loaded(room, tmp_path, CALLING.format(using=""))
        for body in (REQUEST % ("nüts", 3), REQUEST % ("nuts", 500), ORDER % 8, ORDER % 9):
            room.send("supplier", body, format="xml")
        room.run_until_idle()
        child.kill()
        assert child.stdout is not None
        assert child.stdout.read().split("\n") == ["order 8", "order 9", ""]
    (reply,) = bodies(room, "replies")
    assert re.findall(r">([^<]+)</", reply) == ["nüts", "6"]
    (error,) = bodies(room, "errs")
    assert "too many" in error


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_their_reliable_messages_come_once_and_in_order(room: Postroom, tmp_path: Path, rate: float) -> None:
    """Over a line that loses, doubles and delays."""
    room.gateways.add("CapacityRequestPort", "soap", path="/capacity")
    loaded(room, tmp_path, RELIABLE)
    program = made(tmp_path / "reliable", str(SOAP / "supplier.wsdl"), "reliable", *PLUGIN)
    with listening(room) as port, lossy(port, rate, seed=5) as line:
        said = run(program, f"http://127.0.0.1:{line.port}/capacity", 60, folder=tmp_path)
    assert said == "0 not acknowledged\n"
    found = [int(number) for body in bodies(room, "requests") for number in re.findall(r"<(?:\w+:)?id>(\d+)<", body)]
    assert found == list(range(60))
    assert bodies(room, "errs") == []
    assert (line.lost > 5) == bool(rate)


def test_we_send_reliably_to_a_service_of_theirs(room: Postroom, tmp_path: Path) -> None:
    service = made(tmp_path / "service", str(SOAP / "supplier.wsdl"), "service", *PLUGIN)
    with serving(service) as (port, child):
        room.gateways.add("CapacityRequestPort", "soap", address=f"http://127.0.0.1:{port}/", attempts="3")
        loaded(room, tmp_path, CALLING.format(using="using WS-ReliableMessaging"))
        for number in range(1, 11):
            room.send("supplier", REQUEST % (f"i{number}", number), format="xml")
        room.run_until_idle()
        child.kill()
        assert child.stdout is not None
        assert child.stdout.read().split() == [word for number in range(1, 11) for word in ("asked", f"i{number}")]
    assert bodies(room, "errs") == []
    replies = [re.findall(r">([^<]+)</", body) for body in bodies(room, "replies")]
    assert replies == [[f"i{number}", f"{2 * number}"] for number in range(1, 11)]


# --- a thousand messages, over a line that loses, doubles and delays, with kills of either side ---


def orders(room: Postroom, queue: str) -> list[int]:
    return [int(number) for body in bodies(room, queue) for number in re.findall(r"<(?:\w+:)?id>(\d+)<", body)]


@pytest.mark.parametrize(("count", "kills"), [(1_000, 12)])
def test_a_thousand_of_their_messages_come_once_and_in_order_with_kills(
    tmp_path: Path, sqlite_url: str, count: int, kills: int
) -> None:
    with opened(sqlite_url) as room:
        room.gateways.add("CapacityRequestPort", "soap", path="/capacity")
        loaded(room, tmp_path, RELIABLE)
    program = made(tmp_path / "reliable", str(SOAP / "supplier.wsdl"), "reliable", *PLUGIN)
    port, state = free_port("127.0.0.1"), tmp_path / "state"
    with lossy(port, seed=7) as line:
        listener = Process.of_ours("--room", sqlite_url, "gateway", "listen", "--http", f"127.0.0.1:{port}")
        sender = Process(program, f"http://127.0.0.1:{line.port}/capacity", count, state)
        killed_until([listener, sender], partial(_has_sent, state, count), kills, Random(7), 120 + count)
    print(f"{line.lost} lost, {line.doubled} doubled, {line.delayed} delayed; kills {listener.kills}, {sender.kills}")
    with opened(sqlite_url) as room:
        assert orders(room, "requests") == list(range(count))
        assert bodies(room, "errs") == []
        assert room.journal.verify().differences == ()


def _has_sent(state: Path, count: int) -> bool:
    return state.exists() and state.read_text().split()[:1] == [str(count)]


@pytest.mark.parametrize(("count", "kills"), [(1_000, 12)])
def test_a_thousand_of_our_messages_come_to_them_once_and_in_order_with_kills(
    tmp_path: Path, sqlite_url: str, count: int, kills: int
) -> None:
    program = made(tmp_path / "kept", str(SOAP / "supplier.wsdl"), "kept", *PLUGIN[1:])
    port, state = free_port("127.0.0.1"), tmp_path / "state"
    with lossy(port, seed=9) as line:
        with opened(sqlite_url) as room:
            address = f"http://127.0.0.1:{line.port}/"
            room.gateways.add("CapacityRequestPort", "soap", address=address, attempts="100", backoff="0")
            loaded(room, tmp_path, CALLING.format(using="using WS-ReliableMessaging"))
            room.send_many("supplier", [ORDER % number for number in range(count)], format="xml")
        service = Process(program, port, state)
        sender = Process.of_ours("--room", sqlite_url, "run", "--until-idle")
        killed_until([service, sender], partial(_is_sent, sqlite_url), kills, Random(9), 120 + count)
    print(f"{line.lost} lost, {line.doubled} doubled, {line.delayed} delayed; kills {service.kills}, {sender.kills}")
    came = [int(words[1]) for words in map(str.split, state.read_text().splitlines()) if words[0] == "order"]
    assert came == list(range(count))
    with opened(sqlite_url) as room:
        assert bodies(room, "errs") == []
        assert room.journal.verify().differences == ()


def _is_sent(url: str) -> bool:
    with opened(url) as room:
        return not room.engine.outbox()
