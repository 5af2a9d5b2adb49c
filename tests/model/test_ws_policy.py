"""Policies: what is understood, and that all else is refused by its name and line."""

from __future__ import annotations

import pytest

from postroom.model.ws_policy import SecurityPolicy, check_reliable_policy, security_policy
from postroom.model.wsdl import Unusable

HEAD = (
    '<wsp:Policy xmlns:wsp="http://www.w3.org/ns/ws-policy" '
    'xmlns:sp="http://docs.oasis-open.org/ws-sx/ws-securitypolicy/200702" '
    'xmlns:rm="http://docs.oasis-open.org/ws-rx/wsrmp/200702">\n'
)


def policy(inside: str) -> SecurityPolicy:
    return security_policy(f"{HEAD}{inside}</wsp:Policy>", "p.xml")


def test_assertions_are_understood() -> None:
    assert policy("<sp:IncludeTimestamp/>") == SecurityPolicy(timestamp=True)
    token = (
        "<sp:SupportingTokens><wsp:Policy><sp:UsernameToken>{}</sp:UsernameToken></wsp:Policy></sp:SupportingTokens>"
    )
    assert policy(token.format("")) == SecurityPolicy(username="text")
    assert policy(token.format("<wsp:Policy><sp:HashPassword/></wsp:Policy>")) == SecurityPolicy(username="digest")
    signed = "<sp:SignedParts><sp:Body/></sp:SignedParts>"
    suite = "<sp:AlgorithmSuite><wsp:Policy><sp:Basic128Sha256/></wsp:Policy></sp:AlgorithmSuite>"
    assert policy(signed + suite) == SecurityPolicy(sign=True, bits=128)
    assert policy(signed).settings() == ["wss-certificate", "wss-key", "wss-partner"]


@pytest.mark.parametrize(("inside", "why"), [
    ("", "asks for nothing"), ("<sp:SymmetricBinding/>", "p.xml, line 2: SymmetricBinding is not implemented"),
    ("<x:y xmlns:x='urn:x'/>", "y of urn:x is not implemented"),
    ("<sp:EncryptedParts><sp:Body/></sp:EncryptedParts>", "not signed can be changed"),
    ("<sp:SignedParts><sp:Header Name='x'/></sp:SignedParts>", "only sp:Body"),
    ("<wsp:ExactlyOne><wsp:All/><wsp:All/></wsp:ExactlyOne>", "alternatives are not implemented"),
    ("<sp:UsernameToken><wsp:Policy><sp:NoPassword/></wsp:Policy></sp:UsernameToken>", "without a password"),
    ("<sp:AlgorithmSuite><wsp:Policy><sp:TripleDes/></wsp:Policy></sp:AlgorithmSuite>", "TripleDes is not implemented"),
])  # fmt: skip
def test_what_is_not_understood_is_refused(inside: str, why: str) -> None:
    with pytest.raises(Unusable, match=why):
        policy(inside)


def test_a_policy_of_reliable_messaging_asks_for_once_and_in_order() -> None:
    assured = "<wsp:Policy><rm:ExactlyOnce/><rm:InOrder/></wsp:Policy>"
    good = f"<wsp:Policy><rm:DeliveryAssurance>{assured}</rm:DeliveryAssurance></wsp:Policy>"
    good = f"<rm:RMAssertion>{good}</rm:RMAssertion>"
    check_reliable_policy(f"{HEAD}{good}</wsp:Policy>", "p.xml")
    for inside in ("<rm:RMAssertion><wsp:Policy><rm:SequenceSTR/></wsp:Policy></rm:RMAssertion>", "<sp:Body/>"):
        with pytest.raises(Unusable, match="is not implemented"):
            check_reliable_policy(f"{HEAD}{inside}</wsp:Policy>", "p.xml")
    with pytest.raises(Unusable, match="root of a policy"):
        check_reliable_policy("<x/>", "p.xml")
