"""SOAP coming in: operations and types of the WSDL, faults, the published interface, and attacks that touch nothing."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import httpx
import pytest
import zeep
from tests.gateways.served import ORDER, REQUEST, bodies, listening, loaded, opened, running, until
from zeep.exceptions import Fault
from zeep.transports import Transport as ZeepTransport

from postroom.model.soap import SPACES, addressed, read_envelope, written
from postroom.room import Postroom

PROGRAM = """
create queue requests kind incomingGateway mode persistent
  interface supplier.wsdl port CapacityRequestPort errorqueue errs
create queue offers kind outgoingGateway mode persistent
  interface "supplier.wsdl" port CapacityRequestPort errorqueue errs
create queue requests12 kind incomingGateway mode persistent
  interface supplier.wsdl port CapacityRequestPort12 errorqueue errs
create queue offers12 kind outgoingGateway mode persistent
  interface supplier.wsdl port CapacityRequestPort12 errorqueue errs
create queue sums kind incomingGateway mode persistent
  interface supplier.wsdl port SumPort errorqueue errs
create queue results kind outgoingGateway mode persistent
  interface supplier.wsdl port SumPort errorqueue errs
create queue errs kind basic mode persistent
create rule offer for requests
  if (/*:capacityRequest[*:count < 100]) then do enqueue
    <offer xmlns="urn:example:types"><item>{string(/*/*:item)}</item><price>{/*/*:count * 2}</price></offer> into offers
  else if (/*:capacityRequest[*:count < 1000]) then do enqueue
    <refusal xmlns="urn:example:types">too many</refusal> into offers
  else if (/*:capacityRequest) then do enqueue <odd/> into offers
create rule offer12 for requests12
  if (/*:capacityRequest) then do enqueue
    <offer xmlns="urn:example:types"><item>{string(/*/*:item)}</item><price>1.50</price></offer> into offers12
create rule add for sums
  if (/*:Sum) then do enqueue
    <s:SumResponse xmlns:s="urn:example:sums"><sum>{/*/a + /*/b}</sum></s:SumResponse> into results
"""


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postroom]:
    folder = tmp_path_factory.mktemp("soap")
    with opened(str(folder / "room.db")) as it:
        it.gateways.add("CapacityRequestPort", "soap", path="/capacity", wait="20", headers="X-Trace")
        it.gateways.add("CapacityRequestPort12", "soap", path="/capacity12", wait="20")
        it.gateways.add("SumPort", "soap", path="/sums", wait="20")
        loaded(it, folder, PROGRAM)
        with running(it):
            yield it


@pytest.fixture(scope="module")
def client(room: Postroom) -> Iterator[httpx.Client]:
    with listening(room) as port, httpx.Client(
        base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60
    ) as made:  # fmt: skip
        yield made


def post(
    client: httpx.Client, body: str, version: str = "1.1", path: str = "/capacity", **headers: str
) -> httpx.Response:
    media = {"1.1": "text/xml", "1.2": "application/soap+xml"}[version]
    said = {"content-type": f"{media}; charset=utf-8", **headers}
    return client.post(path, content=body.encode(), headers=said)


@pytest.mark.parametrize(("version", "path", "price"), [("1.1", "/capacity", "14"), ("1.2", "/capacity12", "1.50")])
def test_a_request_gets_the_answer_in_an_envelope_of_its_version(
    client: httpx.Client, room: Postroom, version: str, path: str, price: str
) -> None:
    answer = post(client, written(version, [], REQUEST % ("bolts", 7)), version, path, **{"x-trace": "t1"})
    assert answer.status_code == 200, answer.text
    envelope = read_envelope(answer.content)
    assert envelope.version == version
    message = envelope.message()
    assert message is not None
    assert f"<price>{price}</price>" in message
    stored = list(room.queues.history("requests" if version == "1.1" else "requests12"))[-1]
    assert stored.body == REQUEST % ("bolts", 7), "the message is what was in the body, and no more"


def test_zeep_calls_our_interface(client: httpx.Client) -> None:
    """The client of others: it reads the WSDL that we publish, with its types, and calls every port of it."""
    address = str(client.base_url.join("/capacity"))
    transport: Any = cast(Any, ZeepTransport)()
    transport.session.trust_env = False
    with transport.session:
        caller: Any = cast(Any, zeep.Client)(f"{address}?wsdl", transport=transport)
        service = caller.bind("Supplier", "CapacityRequestPort")
        offer = service.Ask(item="nüts", count=3)
        assert (offer.item, offer.price) == ("nüts", 6)
        assert service.Place(id=7) is None
        with pytest.raises(Fault, match="refused") as fault:
            service.Ask(item="nuts", count=500)
        assert "too many" in str(fault.value.detail[0].text)
        for port, path in (("CapacityRequestPort12", "/capacity12"), ("SumPort", "/sums")):
            binding = caller.wsdl.services["Supplier"].ports[port].binding.name.text
            other = caller.create_service(binding, str(client.base_url.join(path)))
            assert other.Sum(a=2, b=3) == 5 if port == "SumPort" else other.Ask(item="x", count=1).price == 1.5


def test_the_interface_is_published_with_our_address(client: httpx.Client) -> None:
    answer = client.get("/capacity?wsdl")
    address = str(client.base_url.join("/capacity"))
    assert f'location="{address}"' in answer.text
    assert f'schemaLocation="{address}?wsdl=supplier.xsd"' in answer.text
    assert "capacityRequest" in client.get("/capacity?wsdl=supplier.xsd").text
    assert client.get("/capacity?wsdl=../secret").status_code == 404
    assert client.get("/capacity").status_code == 405


def test_a_message_without_an_answer_is_accepted(client: httpx.Client, room: Postroom) -> None:
    answer = post(client, written("1.1", addressed("urn:example:place", "urn:uuid:1"), ORDER % 1))
    again = post(client, written("1.1", addressed("urn:example:place", "urn:uuid:1"), ORDER % 1))
    assert (answer.status_code, answer.content, again.status_code) == (202, b"", 202)
    assert bodies(room, "requests").count(ORDER % 1) == 1, "the same MessageID is the same message"


def test_an_answer_that_takes_too_long_has_a_place(client: httpx.Client) -> None:
    answer = post(client, written("1.1", [], REQUEST % ("late", 7)), prefer="wait=0")
    assert answer.status_code == 202
    until(lambda: client.get(answer.headers["location"]).status_code == 200)
    assert "late" in (read_envelope(client.get(answer.headers["location"]).content).message() or "")


BAD = {
    "malformed": ("<a", "sender"),
    "no envelope": ("<a/>", "VersionMismatch"),
    "the other version": (written("1.2", [], ORDER % 1), "VersionMismatch"),
    "two bodies": (f'<s:Envelope xmlns:s="{SPACES["1.1"]}"><s:Body/><s:Body/></s:Envelope>', "sender"),
    "empty": (written("1.1", [], ""), "sender"),
    "two messages": (written("1.1", [], ORDER % 1 + ORDER % 2), "sender"),
    "no operation": (written("1.1", [], '<nothing xmlns="urn:example:types"/>'), "sender"),
    "against the schema": (written("1.1", [], REQUEST % ("x", 7) + "").replace(">7<", ">seven<"), "sender"),
    "not understood": (
        written("1.1", ['<x:y xmlns:x="urn:x" soap:mustUnderstand="1"/>'], ORDER % 1),
        "MustUnderstand",
    ),
    "answers elsewhere": (written("1.1", addressed("a", "b", reply_to="http://127.0.0.1:9/"), ORDER % 1), "sender"),
}


@pytest.mark.parametrize("bad", BAD)
def test_what_is_wrong_is_a_fault_and_an_error_message(client: httpx.Client, room: Postroom, bad: str) -> None:
    text, code = BAD[bad]
    before, stored = len(bodies(room, "errs")), len(bodies(room, "requests"))
    answer = post(client, text)
    fault = read_envelope(answer.content).fault()
    assert fault is not None
    assert answer.status_code == 500
    said = fault.code.rpartition(":")[2]
    assert said == {"sender": "Client"}.get(code, code) or (bad == "answers elsewhere" and "Anonymous" in said)
    assert len(bodies(room, "requests")) == stored
    assert len(bodies(room, "errs")) == before + 1


def test_an_answer_that_the_interface_does_not_know_is_an_error_message(client: httpx.Client, room: Postroom) -> None:
    answer = post(client, written("1.1", [], REQUEST % ("x", 5000)), prefer="wait=0")
    assert answer.status_code == 202
    until(lambda: any("is no answer of CapacityRequestPort" in body for body in bodies(room, "errs")))
    assert client.get(answer.headers["location"]).status_code == 202


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path, list[str]]]:
    """A place on the network and a file that nothing may touch."""
    hits: list[str] = []
    secret = tmp_path_factory.mktemp("canary") / "secret.txt"
    secret.write_text("c4nary")
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(0.2)
    ended = threading.Event()

    def listen() -> None:
        while not ended.is_set():
            try:
                connection, peer = server.accept()
            except TimeoutError:
                continue
            hits.append(str(peer))
            connection.close()

    thread = threading.Thread(target=listen)
    thread.start()
    yield f"http://127.0.0.1:{server.getsockname()[1]}/x", secret, hits
    ended.set()
    thread.join()
    server.close()


ATTACKS = [
    '<!DOCTYPE e [<!ENTITY x SYSTEM "{url}">]>{open}<order xmlns="urn:example:types"><id>1</id></order>{close}',
    '<!DOCTYPE e SYSTEM "{url}">{open}<order xmlns="urn:example:types"><id>1</id></order>{close}',
    '<!DOCTYPE e [<!ENTITY % p SYSTEM "{file}"> %p;]>{open}<order xmlns="urn:example:types"><id>1</id></order>{close}',
    '<?xml-stylesheet href="{url}"?>{open}<order xmlns="urn:example:types"><id>1</id></order>{close}',
    '{open}<order xmlns="urn:example:types" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    'xsi:schemaLocation="urn:example:types {url} urn:other {file}"><id>1</id><o xmlns="urn:other"/></order>{close}',
    '{open}<order xmlns="urn:example:types"><id>1</id>'
    '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" parse="text" href="{file}"/></order>{close}',
    '{open}<order xmlns="urn:example:types"><id>1</id>'
    '<xop:Include xmlns:xop="http://www.w3.org/2004/08/xop/include" href="{url}"/></order>{close}',
    '{open}<order xmlns="urn:example:types"><id>'
    '<xop:Include xmlns:xop="http://www.w3.org/2004/08/xop/include" href="cid:1"/></id></order>{close}',
    '{open}<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:import namespace="u" schemaLocation="{url}"/>'
    "</xs:schema>{close}",
]


@pytest.mark.parametrize("attack", range(len(ATTACKS)))
def test_no_attack_touches_a_file_or_the_network(
    client: httpx.Client, room: Postroom, canary: tuple[str, Path, list[str]], attack: int
) -> None:
    url, secret, hits = canary
    opening = f'<s:Envelope xmlns:s="{SPACES["1.1"]}"><s:Body>'
    text = ATTACKS[attack].replace("{url}", url).replace("{file}", secret.as_uri())
    read = secret.stat().st_atime_ns
    answer = post(client, text.replace("{open}", opening).replace("{close}", "</s:Body></s:Envelope>"))
    assert answer.status_code in (202, 500)
    assert "c4nary" not in answer.text
    assert not any("c4nary" in body for queue in ("requests", "errs") for body in bodies(room, queue))
    assert (hits, secret.stat().st_atime_ns) == ([], read)


def test_packages_of_xop_are_refused(client: httpx.Client, canary: tuple[str, Path, list[str]]) -> None:
    body = "--b\r\ncontent-type: application/xop+xml\r\n\r\n" + written("1.1", [], ORDER % 1) + "\r\n--b--"
    answer = client.post("/capacity", content=body, headers={"content-type": 'multipart/related; boundary="b"'})
    assert answer.status_code == 415
    assert canary[2] == []


def test_a_bomb_costs_nothing(client: httpx.Client) -> None:
    deep = "<a>" * 100_000 + "</a>" * 100_000
    assert post(client, written("1.1", [], deep)).status_code == 500
    many = " ".join(f'a{n}=""' for n in range(100_000))
    assert post(client, written("1.1", [], f"<a {many}/>")).status_code == 500
    assert urlsplit(str(client.base_url)).hostname == "127.0.0.1"
