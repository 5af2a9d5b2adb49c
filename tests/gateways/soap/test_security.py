"""WS-Security: what a policy asks for is in a message, what it asks for and is not there is refused, without a hint."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.gateways.served import ORDER, REQUEST, bodies, listening, loaded, opened, running

from postroom.errors import ProgramInvalid
from postroom.gateways.reliable import protocol
from postroom.gateways.soap import security
from postroom.model.soap import ADDRESSING, SPACES, UTILITY, Envelope, addressed, read_envelope, written
from postroom.model.ws_policy import SecurityPolicy
from postroom.room import Postroom

FULL = SecurityPolicy(timestamp=True, username="digest", sign=True, encrypt=True)
SIGNED = SecurityPolicy(timestamp=True, sign=True)
POLICY = """<wsp:Policy xmlns:wsp="http://www.w3.org/ns/ws-policy"
    xmlns:sp="http://docs.oasis-open.org/ws-sx/ws-securitypolicy/200702"><wsp:ExactlyOne><wsp:All>
  <sp:AsymmetricBinding><wsp:Policy>
    <sp:InitiatorToken><wsp:Policy><sp:X509Token/></wsp:Policy></sp:InitiatorToken>
    <sp:RecipientToken><wsp:Policy><sp:X509Token/></wsp:Policy></sp:RecipientToken>
    <sp:AlgorithmSuite><wsp:Policy><sp:Basic256Sha256/></wsp:Policy></sp:AlgorithmSuite>
    <sp:IncludeTimestamp/>
  </wsp:Policy></sp:AsymmetricBinding>
  <sp:SignedSupportingTokens><wsp:Policy>
    <sp:UsernameToken><wsp:Policy><sp:HashPassword/></wsp:Policy></sp:UsernameToken>
  </wsp:Policy></sp:SignedSupportingTokens>
  <sp:SignedParts><sp:Body/></sp:SignedParts>
  <sp:EncryptedParts><sp:Body/></sp:EncryptedParts>
</wsp:All></wsp:ExactlyOne></wsp:Policy>"""
#: A signature over the body and the timestamp, for whoever signs.
TEMPLATE = """<ds:Signature xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:SignedInfo>
<ds:CanonicalizationMethod Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/>
<ds:SignatureMethod Algorithm="http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"/>{references}</ds:SignedInfo>
<ds:SignatureValue/></ds:Signature>"""
REFERENCE = """<ds:Reference URI="#{id}"><ds:Transforms>
<ds:Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/></ds:Transforms>
<ds:DigestMethod Algorithm="http://www.w3.org/2001/04/xmlenc#sha256"/><ds:DigestValue/></ds:Reference>"""


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """The settings of two partners, and of someone else."""
    folder = tmp_path_factory.mktemp("keys")
    (folder / "password").write_text("pässword")
    for name in ("buyer", "supplier", "other"):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", folder / f"{name}.key",
             "-out", folder / f"{name}.pem", "-days", "3", "-subj", f"/CN={name}"],
            check=True, capture_output=True,
        )  # fmt: skip

    def settings(own: str, partner: str) -> dict[str, str]:
        files = {"certificate": f"{own}.pem", "key": f"{own}.key", "partner": f"{partner}.pem"}
        found = {f"wss-{name}": str(folder / file) for name, file in files.items()}
        return {**found, "wss-username": "buyer", "wss-password": f"file:{folder / 'password'}"}

    pairs = {"buyer": "supplier", "supplier": "buyer", "other": "supplier"}
    return {own: settings(own, partner) for own, partner in pairs.items()}


def made(policy: SecurityPolicy, settings: dict[str, str], body: str = ORDER % 7) -> str:
    return security.protected(written("1.1", addressed("urn:a", "urn:m"), body), policy, settings, request=True)


def verified(text: str, policy: SecurityPolicy, settings: dict[str, str]) -> Envelope:
    envelope = read_envelope(text)
    security.verify(envelope, policy, settings, request=True)
    return envelope


@pytest.mark.parametrize("policy", [
    SecurityPolicy(timestamp=True), SecurityPolicy(username="text"), SecurityPolicy(username="digest"), SIGNED, FULL,
])  # fmt: skip
def test_what_a_policy_asks_for_is_understood_by_the_other_side(policy: SecurityPolicy, keys: Any) -> None:
    text = made(policy, keys["buyer"])
    assert verified(text, policy, keys["supplier"]).message() == ORDER % 7
    assert ("<id>7</id>" in text) != policy.encrypt
    assert "pässword" not in text or policy.username == "text"


def wrapped(text: str) -> str:
    """The signed body moved aside, and another in its place: the attack that signatures by reference invite."""
    body = re.search(r"<soap:Body.*</soap:Body>", text, re.DOTALL)
    assert body is not None
    forged = f"<soap:Body>{ORDER % 666}</soap:Body>"
    return text.replace(body[0], forged).replace("</soap:Header>", f"<x>{body[0]}</x></soap:Header>")


ALTERED: dict[str, Callable[[str], str]] = {
    "body": lambda text: text.replace("<id>7</id>", "<id>8</id>"),
    "message id": lambda text: text.replace("urn:m<", "urn:n<"),
    "time": lambda text: re.sub(r"<wsu:Expires>20", "<wsu:Expires>21", text),
    "no signature": lambda text: re.sub(r"<ds:Signature .*</ds:Signature>", "", text, flags=re.DOTALL),
    "no security": lambda text: re.sub(r"<wsse:Security .*</wsse:Security>", "", text, flags=re.DOTALL),
    "wrapped": wrapped,
    "wrapped with the same id": lambda text: wrapped(text).replace(
        "<soap:Body><order", re.search(r"<soap:Body[^>]*>", text)[0] + "<order"  # type: ignore[index]
    ),
    "weaker": lambda text: text.replace("xmldsig-more#rsa-sha256", "xmldsig-more#hmac-sha256"),
    "value": lambda text: re.sub(r"(<ds:SignatureValue>\s*.{8}).", r"\1A", text, flags=re.DOTALL),
    "twice": lambda text: re.sub(r"(<ds:Signature .*</ds:Signature>)", r"\1\1", text, flags=re.DOTALL),
}  # fmt: skip


@pytest.mark.parametrize("how", ALTERED)
def test_a_signed_message_that_was_altered_is_refused(how: str, keys: Any) -> None:
    text = made(SIGNED, keys["buyer"])
    altered = ALTERED[how](text)
    assert altered != text
    with pytest.raises(security.Unsafe):
        verified(altered, SIGNED, keys["supplier"])


def test_who_signs_must_be_the_partner(keys: Any) -> None:
    with pytest.raises(security.Unsafe, match="signature"):
        verified(made(SIGNED, keys["other"]), SIGNED, keys["supplier"])
    with pytest.raises(security.Unsafe, match="decrypted"):
        verified(made(FULL, {**keys["buyer"], "wss-partner": keys["other"]["wss-certificate"]}), FULL, keys["supplier"])


def test_times_and_tokens_are_good_once_and_for_a_while(keys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = SecurityPolicy(timestamp=True, username="digest")
    text = made(policy, keys["buyer"])
    verified(text, policy, keys["supplier"])
    with pytest.raises(security.Unsafe, match="used before"):
        verified(text, policy, keys["supplier"])
    late = made(policy, keys["buyer"])
    monkeypatch.setattr(security, "time", lambda: 4_000_000_000.0)
    with pytest.raises(security.Unsafe, match="too old"):
        verified(late, policy, keys["supplier"])
    monkeypatch.undo()
    with pytest.raises(security.Unsafe, match="password"):
        verified(made(policy, {**keys["buyer"], "wss-username": "else"}), policy, keys["supplier"])


def test_xmlsec1_verifies_our_signatures_and_we_its(keys: Any, tmp_path: Path) -> None:
    """The program of the library's authors, from Debian: another build of another version."""
    program = shutil.which("xmlsec1")
    if program is None:
        pytest.skip("xmlsec1 is not installed")
    ids = [f"--id-attr:{name}" for name in ("Id",)]
    names = [
        ("Body", SPACES["1.1"]),
        ("Timestamp", UTILITY),
        ("MessageID", ADDRESSING),
        ("Action", ADDRESSING),
    ]
    words = [word for name, space in names for word in (ids[0], f"{space}:{name}")]
    file = tmp_path / "ours.xml"
    file.write_text(made(SIGNED, keys["buyer"]))
    check = [program, "--verify", *words, "--pubkey-cert-pem", keys["buyer"]["wss-certificate"], str(file)]
    assert subprocess.run(check, capture_output=True, check=False).returncode == 0
    file.write_text(file.read_text().replace("<id>7</id>", "<id>8</id>"))
    assert subprocess.run(check, capture_output=True, check=False).returncode != 0

    text = made(SecurityPolicy(timestamp=True), keys["buyer"]).replace("<soap:Body>", '<soap:Body wsu:Id="b">')
    text = text.replace("<soap:Envelope ", f'<soap:Envelope xmlns:wsu="{UTILITY}" ')
    stamp = re.search(r'wsu:Timestamp wsu:Id="([^"]+)"', text)
    assert stamp is not None
    template = TEMPLATE.format(references="".join(REFERENCE.format(id=each) for each in ("b", stamp[1])))
    file.write_text(text.replace("</wsse:Security>", f"{template}</wsse:Security>"))
    signed = subprocess.run(
        [program, "--sign", *words[:4], "--privkey-pem", keys["buyer"]["wss-key"], str(file)],
        capture_output=True, check=True,
    ).stdout.decode()  # fmt: skip
    assert verified(signed, SIGNED, keys["supplier"]).message() == ORDER % 7
    with pytest.raises(security.Unsafe):
        verified(signed.replace("<id>7</id>", "<id>8</id>"), SIGNED, keys["supplier"])


# --- rooms ---

ENDING = "interface supplier.wsdl port CapacityRequestPort using WS-Security policy policy.xml errorqueue errs"
IN = f"""
create queue requests kind incomingGateway mode persistent {ENDING}
create queue offers kind outgoingGateway mode persistent {ENDING}
create queue errs kind basic mode persistent
create rule offer for requests if (/*:capacityRequest) then do enqueue
  <offer xmlns="urn:example:types"><item>{{string(/*/*:item)}}</item><price>1</price></offer> into offers
"""
OUT = f"""
create queue supplier kind outgoingGateway mode persistent {ENDING}
create queue replies kind incomingGateway mode persistent {ENDING}
create queue errs kind basic mode persistent
"""


@pytest.fixture(scope="module")
def supplier(tmp_path_factory: pytest.TempPathFactory, keys: Any) -> Iterator[tuple[Postroom, int]]:
    folder = tmp_path_factory.mktemp("supplier")
    with opened(str(folder / "room.db")) as it:
        it.gateways.add("CapacityRequestPort", "soap", path="/capacity", **keys["supplier"])
        loaded(it, folder, IN, policy_xml=POLICY)
        with listening(it) as port, running(it):
            yield it, port


def test_rooms_trade_as_their_policy_says(supplier: tuple[Postroom, int], keys: Any, tmp_path: Path) -> None:
    room, port = supplier
    with opened(str(tmp_path / "buyer.db")) as buyer:
        address = f"http://127.0.0.1:{port}/capacity"
        buyer.gateways.add("CapacityRequestPort", "soap", address=address, **keys["buyer"])
        loaded(buyer, tmp_path, OUT, policy_xml=POLICY)
        buyer.send("supplier", REQUEST % ("bolts", 7), format="xml")
        buyer.run_until_idle()
        assert [re.sub(r".*<item>(.*)</item>.*", r"\1", body) for body in bodies(buyer, "replies")] == ["bolts"]
        assert bodies(buyer, "errs") == []
    assert bodies(room, "requests")[-1] == REQUEST % ("bolts", 7)


def test_signed_messages_of_a_sequence_come_once_and_in_order(keys: Any, tmp_path: Path) -> None:
    """D-7: both extensions at one queue."""
    both = ("using WS-Security", "using WS-ReliableMessaging using WS-Security")
    (tmp_path / "in").mkdir()
    with opened(str(tmp_path / "in.db")) as room, opened(str(tmp_path / "out.db")) as buyer, listening(room) as port:
        room.gateways.add("CapacityRequestPort", "soap", path="/capacity", **keys["supplier"])
        loaded(room, tmp_path / "in", IN.replace(*both), policy_xml=POLICY)
        address = f"http://127.0.0.1:{port}/capacity"
        buyer.gateways.add("CapacityRequestPort", "soap", address=address, **keys["buyer"])
        loaded(buyer, tmp_path, OUT.replace(*both), policy_xml=POLICY)
        buyer.send_many("supplier", [ORDER % number for number in range(4)], format="xml")
        buyer.run_until_idle()
        assert bodies(room, "requests") == [ORDER % number for number in range(4)]
        assert bodies(room, "errs") == bodies(buyer, "errs") == []


def test_whatever_fails_the_answer_is_the_same(supplier: tuple[Postroom, int], keys: Any) -> None:
    room, port = supplier
    good = made(FULL, keys["buyer"])
    cipher = re.compile(r"(<xenc:CipherValue>\s*.{60})(.)(.*?</xenc:CipherValue>)", re.DOTALL)
    flipped = [
        good[: each.start(2)] + ("B" if each[2] == "A" else "A") + good[each.end(2) :] for each in cipher.finditer(good)
    ]
    assert len(flipped) == 2
    bad = [
        *flipped, made(FULL, keys["other"]), made(SIGNED, keys["buyer"]), written("1.1", [], ORDER % 1),
        made(FULL, {**keys["buyer"], "wss-username": "else"}),
    ]  # fmt: skip
    before, stored = len(bodies(room, "errs")), len(bodies(room, "requests"))
    answers = set()
    with httpx.Client(trust_env=False, timeout=60) as client:
        for text in bad:
            said = client.post(
                f"http://127.0.0.1:{port}/capacity", content=text.encode(), headers={"content-type": "text/xml"}
            )
            answers.add((said.status_code, re.sub(r"<soap:Header>.*</soap:Header>", "", said.text)))
    assert len(answers) == 1, "no oracle"
    assert len(bodies(room, "requests")) == stored
    told = bodies(room, "errs")[before:]
    assert len(told) == len(bad)
    assert len({re.sub(r"<initialMessage.*", "", each, flags=re.DOTALL) for each in told}) > 2, "inside it is said"


def test_a_message_that_is_replayed_is_the_same_message(keys: Any) -> None:
    policy = SecurityPolicy(timestamp=True, sign=True)
    assert (
        security.verify(read_envelope(made(policy, keys["buyer"])), policy, keys["supplier"], request=True) == "urn:m"
    )
    unnamed = security.protected(written("1.1", [], ORDER % 1), policy, keys["buyer"], request=True)
    once = security.verify(read_envelope(unnamed), policy, keys["supplier"], request=True)
    assert once is not None
    assert len(once) > 100, "the signature itself"


SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def otherwise(packed: str) -> str:
    """The same bytes in other letters: the last one before the padding has bits that mean nothing."""
    letters = packed.strip().rstrip("=")
    return f"{letters[:-1]}{SIGNS[SIGNS.index(letters[-1]) ^ 1]}=="


WRITTEN: dict[str, Callable[[str], str]] = {
    "a comment in the message id": lambda text: text.replace("urn:m<", "urn:<!-- -->m<"),
    "a comment in the signature": lambda text: re.sub(r"(SignatureValue>\s*.{20})", r"\1<!-- -->", text, count=1),
    "another letter at its end": lambda text: re.sub(
        r"(SignatureValue>)([^<]+)<", lambda found: f"{found[1]}{otherwise(found[2])}<", text, count=1
    ),
}


@pytest.mark.parametrize("how", WRITTEN)
def test_a_replay_that_is_written_otherwise_is_the_same_message(how: str, keys: Any) -> None:
    """What is changed is not signed, or means the same to the signature."""
    headers = addressed("urn:a", "urn:m") if "id" in how else []
    text = security.protected(written("1.1", headers, ORDER % 7), SIGNED, keys["buyer"], request=True)
    changed = WRITTEN[how](text)
    assert changed != text
    first, second = (
        security.verify(read_envelope(each), SIGNED, keys["supplier"], request=True) for each in (text, changed)
    )
    assert first == second


def test_a_token_that_is_written_otherwise_is_not_good_again(keys: Any) -> None:
    policy = SecurityPolicy(username="digest")
    text = made(policy, keys["buyer"])
    verified(text, policy, keys["supplier"])
    nonce = re.search(r"<wsse:Nonce [^>]*>([^<]+)<", text)
    assert nonce is not None
    again = text.replace("<id>7", "<id>8").replace(nonce[1], otherwise(nonce[1]))
    assert security.token_of(read_envelope(again), policy) == security.token_of(read_envelope(text), policy)
    with pytest.raises(security.Unsafe, match="used before"):
        verified(again, policy, keys["supplier"])


def test_headers_of_reliable_messaging_are_signed_where_a_body_is(keys: Any) -> None:
    """Else a signed message could enter a second time, as another number."""
    signed = protocol.sequence("urn:s", 1)
    text = security.protected(written("1.1", [signed], ORDER % 7), SIGNED, keys["buyer"], request=True)
    assert verified(text, SIGNED, keys["supplier"]).message() == ORDER % 7
    block = re.search(r"<wsrm:Sequence .*</wsrm:Sequence>", text)
    assert block is not None
    for moved in (
        text.replace(block[0], f"<x>{block[0]}</x>{protocol.sequence('urn:s', 2)}"),
        text.replace("</soap:Header>", f"{protocol.acknowledgement('urn:t', [(1, 9)], final=False)}</soap:Header>"),
    ):
        with pytest.raises(security.Unsafe, match="is not signed"):
            verified(moved, SIGNED, keys["supplier"])


def test_a_policy_needs_keys_of_the_operator(keys: Any, tmp_path: Path) -> None:
    with opened(str(tmp_path / "room.db")) as room:
        room.gateways.add("CapacityRequestPort", "soap", address="http://127.0.0.1:9/", wss_username="x")
        with pytest.raises(ProgramInvalid, match="needs wss-password, wss-certificate, wss-key, wss-partner of"):
            loaded(room, tmp_path, OUT, policy_xml=POLICY)
