"""WS-Security 1.0 and 1.1: tokens, timestamps, signatures and encryption, as a policy requires.

A message is verified with the partner's certificate that the operator configured, never with a key from the message.
Only signed parts are used: the body is found by its position, and duplicate identifiers are refused. Every failure gets
the same answer; only the error message in the room has the reason.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import time
from typing import Any
from uuid import uuid4

from postroom.gateways.credentials import credential, line
from postroom.gateways.transport import Undelivered
from postroom.limits import WEBHOOK_AGE_SECONDS
from postroom.model.soap import ADDRESSING, RELIABLE, SECURITY, UTILITY, Envelope, EnvelopeInvalid, read_envelope
from postroom.model.ws_policy import SecurityPolicy
from postroom.model.xmltext import escaped

_WSSE, _WSU = f"{{{SECURITY}}}", f"{{{UTILITY}}}"
_DS, _XENC = "{http://www.w3.org/2000/09/xmldsig#}", "{http://www.w3.org/2001/04/xmlenc#}"
_TOKEN = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-username-token-profile-1.0#"  # noqa: S105  a name
_X509 = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-x509-token-profile-1.0#X509v3"
_BASE64 = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-soap-message-security-1.0#Base64Binary"
_THUMBPRINT = "http://docs.oasis-open.org/wss/oasis-wss-soap-message-security-1.1#ThumbprintSHA1"
_EXCLUSIVE = "http://www.w3.org/2001/10/xml-exc-c14n#"
_SIGNATURES = ("http://www.w3.org/2001/04/xmldsig-more#rsa-sha256", "http://www.w3.org/2001/04/xmldsig-more#rsa-sha512")
_DIGESTS = ("http://www.w3.org/2001/04/xmlenc#sha256", "http://www.w3.org/2001/04/xmlenc#sha512")
_CIPHERS = {
    "http://www.w3.org/2001/04/xmlenc#aes128-cbc",
    "http://www.w3.org/2001/04/xmlenc#aes256-cbc",
    "http://www.w3.org/2009/xmlenc11#aes128-gcm",
    "http://www.w3.org/2009/xmlenc11#aes256-gcm",
}
_WRAPS = ("http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p", "http://www.w3.org/2009/xmlenc11#rsa-oaep")


class Unsafe(Exception):
    """A message does not have the protection that its policy requires."""


def library() -> Any:
    """The XML signature library; raises ``Unsafe`` if it is not usable."""
    try:
        import xmlsec
    except Exception as error:  # it refuses to be beside another libxml2 than its own
        raise Unsafe(f"the library xmlsec cannot be used here: {error}") from None
    return xmlsec


# --- what we send ---


def protected(envelope: str, policy: SecurityPolicy, settings: Mapping[str, Any], *, request: bool) -> str:
    """An envelope with the protection that the policy requires; raises ``Undelivered`` if that is not possible now."""
    try:
        made = read_envelope(_with_header(envelope, _tokens(policy, settings, request)))
        if policy.sign:
            _sign(made, settings)
        if policy.encrypt:
            _encrypt(made, policy, settings)
        return made.text()
    except (OSError, Unsafe, EnvelopeInvalid, ValueError) as error:
        raise Undelivered(f"the message cannot be protected as its policy says: {error}") from None


def _tokens(policy: SecurityPolicy, settings: Mapping[str, Any], request: bool) -> str:
    parts = []
    now = datetime.now(UTC)
    created = _stamp(now)
    if policy.timestamp:
        expires = _stamp(now + timedelta(seconds=WEBHOOK_AGE_SECONDS))
        times = f"<wsu:Created>{created}</wsu:Created><wsu:Expires>{expires}</wsu:Expires>"
        parts.append(f'<wsu:Timestamp wsu:Id="{_id()}">{times}</wsu:Timestamp>')
    if policy.username and request:
        password = credential(settings, "wss-password", line)
        nonce = os.urandom(16)
        kind = "PasswordText"
        if policy.username == "digest":
            kind, password = "PasswordDigest", _digest(nonce, created, password)
        parts.append(
            f'<wsse:UsernameToken wsu:Id="{_id()}"><wsse:Username>{escaped(settings["wss-username"])}</wsse:Username>'
            f'<wsse:Password Type="{_TOKEN}{kind}">{escaped(password)}</wsse:Password>'
            f'<wsse:Nonce EncodingType="{_BASE64}">{base64.b64encode(nonce).decode()}</wsse:Nonce>'
            f"<wsu:Created>{created}</wsu:Created></wsse:UsernameToken>"
        )
    if policy.sign:
        data = _certificate(settings["wss-certificate"])
        kinds = f'EncodingType="{_BASE64}" ValueType="{_X509}"'
        parts.append(f'<wsse:BinarySecurityToken wsu:Id="{_id()}" {kinds}>{data}</wsse:BinarySecurityToken>')
    return "".join(parts)


def _certificate(file: str) -> str:
    """The first certificate of a file, in base 64."""
    lines = Path(file).read_text().partition("-----BEGIN CERTIFICATE-----")[2]
    return "".join(lines.partition("-----END CERTIFICATE-----")[0].split())


def _with_header(envelope: str, inside: str) -> str:
    """An envelope with a mandatory security header, serialised as ``written`` does."""
    block = (
        f'<wsse:Security xmlns:wsse="{SECURITY}" xmlns:wsu="{UTILITY}" soap:mustUnderstand="1">{inside}</wsse:Security>'
    )
    head, opening, rest = envelope.partition("<soap:Header>")
    if opening:
        return f"{head}{opening}{block}{rest}"
    head, opening, rest = envelope.partition("<soap:Body>")
    return f"{head}<soap:Header>{block}</soap:Header>{opening}{rest}"


def _sign(envelope: Envelope, settings: Mapping[str, Any]) -> None:
    sec = library()
    security = _security(envelope)
    header = envelope.header
    assert header is not None
    targets = [
        envelope.body,
        *(block for block in header if block.tag.startswith((f"{{{ADDRESSING}}}", f"{{{RELIABLE}}}"))),
    ]
    targets += [element for element in security if element.tag in (f"{_WSU}Timestamp", f"{_WSSE}UsernameToken")]
    token = security.find(f"{_WSSE}BinarySecurityToken")
    signature = sec.template.create(security, sec.Transform.EXCL_C14N, sec.Transform.RSA_SHA256, ns="ds")
    context = sec.SignatureContext()
    for target in targets:
        if target.get(f"{_WSU}Id") is None:
            target.set(f"{_WSU}Id", _id())
        reference = sec.template.add_reference(signature, sec.Transform.SHA256, uri=f"#{target.get(f'{_WSU}Id')}")
        sec.template.add_transform(reference, sec.Transform.EXCL_C14N)
        context.register_id(target, "Id", UTILITY)
    info = sec.template.ensure_key_info(signature)
    named = _under(info, f"{_WSSE}SecurityTokenReference")
    _under(named, f"{_WSSE}Reference", URI=f"#{token.get(f'{_WSU}Id')}", ValueType=_X509)
    security.append(signature)
    try:
        context.key = sec.Key.from_file(settings["wss-key"], sec.KeyFormat.PEM)
        context.sign(signature)
    except sec.Error as error:
        raise Unsafe(f"{settings['wss-key']} does not sign: {error}") from None


def _encrypt(envelope: Envelope, policy: SecurityPolicy, settings: Mapping[str, Any]) -> None:
    """Encrypt the content of the body for the partner. The key is in the header, encrypted with the partner's own."""
    sec = library()
    content = envelope.content()
    if content is None:
        return
    cipher = sec.Transform.AES256 if policy.bits == 256 else sec.Transform.AES128
    data = sec.template.encrypted_data_create(envelope.root, cipher, type=sec.EncryptionType.CONTENT, ns="xenc")
    sec.template.encrypted_data_ensure_cipher_value(data)
    info = sec.template.encrypted_data_ensure_key_info(data, ns="ds")
    wrapped = sec.template.add_encrypted_key(info, sec.Transform.RSA_OAEP)
    sec.template.encrypted_data_ensure_cipher_value(wrapped)
    try:
        keys = sec.KeysManager()
        keys.add_key(sec.Key.from_file(settings["wss-partner"], sec.KeyFormat.CERT_PEM))
        context = sec.EncryptionContext(keys)
        context.key = sec.Key.generate(sec.KeyData.AES, policy.bits, sec.KeyDataType.SESSION)
        context.encrypt_xml(data, envelope.body)
    except sec.Error as error:
        raise Unsafe(f"{settings['wss-partner']} does not encrypt: {error}") from None
    _read_again(envelope)
    element = _only(envelope.body, f"{_XENC}EncryptedData")
    info = element.find(f"{_DS}KeyInfo")
    wrapped = info.find(f"{_XENC}EncryptedKey")
    info.remove(wrapped)
    element.set("Id", _id())
    wrapped.set("Id", _id())
    named = _under(info, f"{_WSSE}SecurityTokenReference")
    _under(named, f"{_WSSE}Reference", URI=f"#{wrapped.get('Id')}")
    # Partners with several keys look for the one that is meant by its certificate.
    owner = wrapped.makeelement(f"{_DS}KeyInfo")
    wrapped.find(f"{_XENC}EncryptionMethod").addnext(owner)
    certificate = base64.b64decode(_certificate(settings["wss-partner"]))
    meant = _under(_under(owner, f"{_WSSE}SecurityTokenReference"), f"{_WSSE}KeyIdentifier", EncodingType=_BASE64)
    meant.set("ValueType", _THUMBPRINT)
    meant.text = base64.b64encode(hashlib.sha1(certificate).digest()).decode()  # noqa: S324  a name, no proof
    references = _under(wrapped, f"{_XENC}ReferenceList")
    _under(references, f"{_XENC}DataReference", URI=f"#{element.get('Id')}")
    _security(envelope).insert(0, wrapped)


# --- what comes ---


def verify(envelope: Envelope, policy: SecurityPolicy, settings: Mapping[str, Any], *, request: bool) -> str | None:
    """Raise ``Unsafe`` unless an envelope meets the policy; decrypts it in place.

    Returns what identifies a replay, from the signed parts; None if the policy needs no signature.
    """
    try:
        security = _security(envelope)
        if policy.encrypt and envelope.content() is not None:  # an acknowledgement has an empty body
            _decrypt(envelope, security, settings)
            security = _security(envelope)
        signed = _verify_signature(envelope, security, settings) if policy.sign else []
        if policy.timestamp:
            stamp = _only(security, f"{_WSU}Timestamp")
            if policy.sign and stamp not in signed:
                raise Unsafe("the timestamp is not signed")
            _check_times(stamp)
        if policy.username and request:
            token = _only(security, f"{_WSSE}UsernameToken")
            if policy.sign and token not in signed:
                raise Unsafe("the token is not signed")
            _check_token(token, policy, settings)
        return _once(envelope, security, signed) if policy.sign else None
    except Undelivered as error:  # a secret that cannot be read
        raise Unsafe(str(error)) from None
    except (OSError, ValueError) as error:
        raise Unsafe(f"{type(error).__name__}: {error}") from None


def _once(envelope: Envelope, security: Any, signed: list[Any]) -> str:
    """What identifies a signed message: its identifier, or else the signature."""
    if envelope.body not in signed:
        raise Unsafe("the body is not signed")
    for header in envelope.headers(RELIABLE, "*"):  # else one message could come as several
        if header not in signed:
            raise Unsafe("what is said of its sequence is not signed")
    identified = [header for header in envelope.headers(ADDRESSING, "MessageID") if header in signed]
    if identified:
        return _said(identified[0])
    return _packed(_only(_only(security, f"{_DS}Signature"), f"{_DS}SignatureValue"))


def token_of(envelope: Envelope, policy: SecurityPolicy) -> str | None:
    """The token of a verified request without a signature: it could be replayed with another body."""
    if policy.username != "digest" or policy.sign:
        return None
    return _nonce(_only(_security(envelope), f"{_WSSE}UsernameToken"))


def _nonce(token: Any) -> str:
    return _packed(_only(token, f"{_WSSE}Nonce"))


def _said(element: Any) -> str:
    """The whole text of an element, across comments: they are not signed, so anyone may insert one."""
    return str(element.xpath("string()")).strip()


def _packed(element: Any) -> str:
    """The content of an element in canonical Base64, which has several spellings."""
    return base64.b64encode(base64.b64decode("".join(_said(element).split()), validate=True)).decode()


def _security(envelope: Envelope) -> Any:
    blocks = envelope.headers(SECURITY, "Security")
    if len(blocks) != 1:
        raise Unsafe(f"there are {len(blocks)} headers of security")
    return blocks[0]


def _only(parent: Any, name: str) -> Any:
    elements = parent.findall(name)
    if len(elements) != 1:
        raise Unsafe(f"there are {len(elements)} of {name.partition('}')[2]}")
    return elements[0]


def _verify_signature(envelope: Envelope, security: Any, settings: Mapping[str, Any]) -> list[Any]:
    """The elements signed with the partner's key."""
    sec = library()
    signature = _only(security, f"{_DS}Signature")
    info = _only(signature, f"{_DS}SignedInfo")
    _algorithm(_only(info, f"{_DS}SignatureMethod"), _SIGNATURES)
    _algorithm(_only(info, f"{_DS}CanonicalizationMethod"), (_EXCLUSIVE,))
    known = _identified(envelope)
    context = sec.SignatureContext()
    signed = []
    for reference in info.findall(f"{_DS}Reference"):
        for transform in reference.iter(f"{_DS}Transform"):
            _algorithm(transform, (_EXCLUSIVE,))
        _algorithm(_only(reference, f"{_DS}DigestMethod"), _DIGESTS)
        target = known.get(str(reference.get("URI", "")).removeprefix("#"))
        if target is None:
            raise Unsafe(f"what is signed is not there: {reference.get('URI')}")
        signed.append(target)
    for target in known.values():
        context.register_id(target, "Id", UTILITY if target.get(f"{_WSU}Id") is not None else None)
    try:
        context.key = sec.Key.from_file(settings["wss-partner"], sec.KeyFormat.CERT_PEM)
        context.verify(signature)
    except sec.Error as error:
        raise Unsafe(f"the signature does not match: {error}") from None
    return signed


def _identified(envelope: Envelope) -> dict[str, Any]:
    """Elements by identifier; raises if two elements have the same one."""
    elements: dict[str, Any] = {}
    for element in envelope.root.iter():
        for name in (f"{_WSU}Id", "Id"):
            id = element.get(name) if isinstance(element.tag, str) else None
            if id is not None and elements.setdefault(id, element) is not element:
                raise Unsafe(f"two elements have the identifier {id}")
    return elements


def _algorithm(element: Any, allowed: Any) -> None:
    if element.get("Algorithm") not in allowed:
        raise Unsafe(f"the algorithm {element.get('Algorithm')} is not taken")


def _decrypt(envelope: Envelope, security: Any, settings: Mapping[str, Any]) -> None:
    sec = library()
    data = _only(envelope.body, f"{_XENC}EncryptedData")
    _algorithm(_only(data, f"{_XENC}EncryptionMethod"), _CIPHERS)
    wrapped = security.find(f"{_XENC}EncryptedKey")
    if wrapped is None:
        wrapped = data.find(f"{_DS}KeyInfo/{_XENC}EncryptedKey")
    if wrapped is None:
        raise Unsafe("there is no key for the encrypted body")
    _algorithm(_only(wrapped, f"{_XENC}EncryptionMethod"), _WRAPS)
    try:
        keys = sec.KeysManager()
        keys.add_key(sec.Key.from_file(settings["wss-key"], sec.KeyFormat.PEM))
        key = sec.EncryptionContext(keys).decrypt(wrapped)
        context = sec.EncryptionContext()
        context.key = sec.Key.from_binary_data(sec.KeyData.AES, key)
        context.decrypt(data)
    except sec.Error as error:
        raise Unsafe(f"the body cannot be decrypted: {error}") from None
    # What was hidden is looked at like everything that comes.
    _read_again(envelope)


def _read_again(envelope: Envelope) -> None:
    """Parse the tree again: lxml does not find the names of elements that xmlsec has made."""
    try:
        envelope.root = read_envelope(envelope.text()).root
    except EnvelopeInvalid as error:
        raise Unsafe(f"what was encrypted cannot be read: {error}") from None


def _check_times(stamp: Any) -> None:
    created = _moment(stamp.findtext(f"{_WSU}Created"))
    expires = stamp.findtext(f"{_WSU}Expires")
    now = time()
    if abs(now - created) > WEBHOOK_AGE_SECONDS:
        raise Unsafe("the timestamp is too old, or of another time")
    if expires is not None and _moment(expires) + 1 < now:
        raise Unsafe("the message has expired")


def _check_token(token: Any, policy: SecurityPolicy, settings: Mapping[str, Any]) -> None:
    wanted, password = str(settings["wss-username"]), credential(settings, "wss-password", line)
    name = (token.findtext(f"{_WSSE}Username") or "").strip()
    given = (token.findtext(f"{_WSSE}Password") or "").strip()
    created = (token.findtext(f"{_WSU}Created") or "").strip()
    if policy.username == "digest":
        nonce = _nonce(token)
        password = _digest(base64.b64decode(nonce), created, password)
    same = hmac.compare_digest(given.encode(), password.encode())
    if not (hmac.compare_digest(name.encode(), wanted.encode()) and same):
        raise Unsafe("the name or the password is wrong")
    if policy.username == "digest":
        if abs(time() - _moment(created)) > WEBHOOK_AGE_SECONDS:
            raise Unsafe("the token is too old")
        if not _used.first(nonce):
            raise Unsafe("the token was used before")


class _Nonces:
    """Recent tokens: each is accepted once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[str, float] = {}

    def first(self, nonce: str) -> bool:
        now = time()
        with self._lock:
            for old in [seen for seen, until in self._seen.items() if until < now]:
                del self._seen[old]
            known = nonce in self._seen
            self._seen[nonce] = now + 2 * WEBHOOK_AGE_SECONDS
            return not known


_used = _Nonces()


def _digest(nonce: bytes, created: str, password: str) -> str:
    """The password digest of the UsernameToken profile, which protects a shared password."""
    return base64.b64encode(hashlib.sha1(nonce + created.encode() + password.encode()).digest()).decode()  # noqa: S324


def _moment(text: str | None) -> float:
    moment = datetime.fromisoformat((text or "").strip())
    if moment.tzinfo is None:
        raise Unsafe("a time has no zone")
    return moment.timestamp()


def _stamp(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _id() -> str:
    return f"id-{uuid4().hex}"


def _under(parent: Any, name: str, **attributes: str) -> Any:
    made = parent.makeelement(name, attributes)
    parent.append(made)
    return made
