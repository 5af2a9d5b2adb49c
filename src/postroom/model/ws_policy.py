"""Policy files of Web Services: what WS-SecurityPolicy and WS-RM Policy require, or why it is not supported.

Unknown assertions are refused, so that no message without the required protection is sent or accepted.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING

from postroom.model.wsdl import Unusable, tree_of

if TYPE_CHECKING:
    from lxml import etree

_WSP = ("http://www.w3.org/ns/ws-policy", "http://schemas.xmlsoap.org/ws/2004/09/policy")
_SP = (
    "http://docs.oasis-open.org/ws-sx/ws-securitypolicy/200702",
    "http://schemas.xmlsoap.org/ws/2005/07/securitypolicy",
)
_RMP = ("http://docs.oasis-open.org/ws-rx/wsrmp/200702",)
#: Assertions that group others: what is inside of them counts.
_GROUPS = frozenset(
    "AsymmetricBinding TransportBinding InitiatorToken RecipientToken SupportingTokens SignedSupportingTokens "
    "SignedEncryptedSupportingTokens EncryptedSupportingTokens AlgorithmSuite Layout TransportToken".split()
)
#: Those that are kept by whatever is done, and those that ask for nothing that is seen in a message.
_KEPT = frozenset(
    "X509Token WssX509V3Token10 WssX509V3Token11 RequireIssuerSerialReference MustSupportRefKeyIdentifier Lax Strict "
    "OnlySignEntireHeadersAndBody WssUsernameToken10 WssUsernameToken11 Wss10 Wss11 HttpsToken "
    "MustSupportRefIssuerSerial RequireClientCertificate".split()
)
#: Algorithm suites: the cipher of data in each.
SUITES = {"Basic256Sha256": 256, "Basic128Sha256": 128}


@dataclass(frozen=True, slots=True)
class SecurityPolicy:
    """The protection of a request, and except for the token of its answer, too."""

    timestamp: bool = False
    username: str = ""  # "text" or "digest"
    sign: bool = False  # body, timestamp and token
    encrypt: bool = False  # the body
    bits: int = 256
    https: bool = False

    def settings(self) -> list[str]:
        """The settings that an endpoint needs for it."""
        needed = ["wss-username", "wss-password"] if self.username else []
        if self.sign:
            needed += ["wss-certificate"]
        return needed + (["wss-key", "wss-partner"] if self.sign or self.encrypt else [])


@lru_cache(maxsize=64)
def security_policy(text: str, file: str) -> SecurityPolicy:
    """Parse a policy; raises ``Unusable``."""
    terms: dict[str, object] = {}
    _assertions(_policy(text, file), terms, file)
    made = SecurityPolicy(**{field.name: terms[field.name] for field in fields(SecurityPolicy) if field.name in terms})  # type: ignore[arg-type]  # as they were read
    if made.encrypt and not made.sign:
        raise Unusable(f"{file}: what is encrypted and not signed can be changed; add sp:SignedParts")
    if made == SecurityPolicy() or made == SecurityPolicy(bits=made.bits):
        raise Unusable(f"{file} asks for nothing")
    return made


def check_reliable_policy(text: str, file: str) -> None:
    """Raise for a reliable messaging policy that requires more than exactly once and in order."""
    for element in _policy(text, file).iter():
        if not isinstance(element.tag, str):
            continue
        space, _, name = element.tag[1:].partition("}")
        ours = space in _WSP or (
            space in _RMP and name in ("RMAssertion", "DeliveryAssurance", "ExactlyOnce", "InOrder")
        )
        if not ours:
            raise Unusable(f"{file}, line {element.sourceline}: {name} of {space} is not implemented")


def _policy(text: str, file: str) -> etree._Element:
    root = tree_of(text, file)
    if root.tag not in [f"{{{space}}}Policy" for space in _WSP]:
        raise Unusable(f"{file}: the root of a policy is wsp:Policy")
    return root


def _assertions(parent: etree._Element, terms: dict[str, object], file: str) -> None:
    for element in parent:
        if not isinstance(element.tag, str):
            continue
        space, _, name = element.tag[1:].partition("}")
        where = f"{file}, line {element.sourceline}"
        if space in _WSP:
            if name == "ExactlyOne" and len([child for child in element if isinstance(child.tag, str)]) > 1:
                raise Unusable(f"{where}: alternatives are not implemented; keep one of them")
            _assertions(element, terms, file)
            continue
        if space not in _SP:
            raise Unusable(f"{where}: {name} of {space} is not implemented")
        _assertion(element, name, where, terms, file)


def _assertion(element: etree._Element, name: str, where: str, terms: dict[str, object], file: str) -> None:
    if name in SUITES:
        terms["bits"] = SUITES[name]
    elif name == "IncludeTimestamp":
        terms["timestamp"] = True
    elif name == "UsernameToken":
        inside = {child.tag.partition("}")[2] for child in element.iter() if isinstance(child.tag, str)}
        if "NoPassword" in inside:
            raise Unusable(f"{where}: a token without a password is not implemented")
        terms["username"] = "digest" if "HashPassword" in inside else "text"
    elif name in ("SignedParts", "EncryptedParts"):
        _parts(element, where)
        terms["sign" if name == "SignedParts" else "encrypt"] = True
    elif name in _GROUPS:
        if name == "TransportBinding":
            terms["https"] = True
        _assertions(element, terms, file)
    elif name in _KEPT:
        return
    else:
        raise Unusable(f"{where}: {name} is not implemented")


def _parts(element: etree._Element, where: str) -> None:
    for part in element:
        if isinstance(part.tag, str) and part.tag.partition("}")[2] != "Body":
            raise Unusable(f"{where}: only sp:Body can be named here")
