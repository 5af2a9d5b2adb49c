"""SOAP envelopes, 1.1 and 1.2: parsed and written.

Input is checked like any other XML before it is parsed: no DOCTYPE, no entities, no deep nesting; XInclude and XOP are
not followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from postroom.errors import XmlForbidden, XmlMalformed
from postroom.model.body import check_text
from postroom.model.encodings import decoded
from postroom.model.schema import parser
from postroom.model.xml import check_xml
from postroom.model.xmltext import escaped, without_declaration

if TYPE_CHECKING:
    from lxml import etree

SPACES = {"1.1": "http://schemas.xmlsoap.org/soap/envelope/", "1.2": "http://www.w3.org/2003/05/soap-envelope"}
MEDIA_TYPES = {"1.1": "text/xml", "1.2": "application/soap+xml"}
ADDRESSING = "http://www.w3.org/2005/08/addressing"
SECURITY = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd"
UTILITY = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd"
RELIABLE = "http://docs.oasis-open.org/ws-rx/wsrm/200702"
_OURS = (*SPACES.values(), ADDRESSING, SECURITY, UTILITY, RELIABLE)
#: Codes of faults: as 1.1 and as 1.2 calls them.
_CODES = {
    "sender": {"1.1": "Client", "1.2": "Sender"},
    "receiver": {"1.1": "Server", "1.2": "Receiver"},
    "MustUnderstand": {"1.1": "MustUnderstand", "1.2": "MustUnderstand"},
    "VersionMismatch": {"1.1": "VersionMismatch", "1.2": "VersionMismatch"},
}
_TRUE = ("1", "true")


class EnvelopeInvalid(ValueError):
    """The input is no valid envelope; ``code`` is that of the fault."""

    def __init__(self, why: str, code: str = "sender") -> None:
        super().__init__(why)
        self.code = code


@dataclass(frozen=True, slots=True)
class Fault:
    """A partner's fault."""

    code: str
    reason: str
    detail: str  # XML, as it came
    subcode: str = ""

    def __str__(self) -> str:
        return f"{self.subcode or self.code}: {self.reason}"


class Envelope:
    """A parsed envelope. Its tree may be changed in place, as decryption does."""

    def __init__(self, root: etree._Element, version: str) -> None:
        self.root = root
        self.version = version

    @property
    def _space(self) -> str:
        return f"{{{SPACES[self.version]}}}"

    @property
    def header(self) -> etree._Element | None:
        return self.root.find(f"{self._space}Header")

    @property
    def body(self) -> etree._Element:
        body = self.root.find(f"{self._space}Body")
        assert body is not None
        return body

    def headers(self, space: str, name: str) -> list[etree._Element]:
        """The header blocks of a name."""
        header = self.header
        return [] if header is None else header.findall(f"{{{space}}}{name}")

    def addressing(self, name: str) -> str | None:
        """The text of a WS-Addressing header."""
        headers = self.headers(ADDRESSING, name)
        if not headers:
            return None
        inner = headers[0].find(f"{{{ADDRESSING}}}Address")
        return ((headers[0] if inner is None else inner).text or "").strip()

    def content(self) -> etree._Element | None:
        """The one element of the body; None if the body is empty."""
        return next((element for element in self.body if isinstance(element.tag, str)), None)

    def message(self) -> str | None:
        """The element of the body as a document of its own; None if the body is empty."""
        content = self.content()
        return None if content is None else alone(content)

    def must_understand(self, understood: Iterable[str]) -> str | None:
        """A mandatory header block for us in a namespace that is not understood; None if there is none."""
        known = tuple(f"{{{space}}}" for space in understood)
        role = "actor" if self.version == "1.1" else "role"
        for block in self.header if self.header is not None else ():
            if not isinstance(block.tag, str) or block.get(f"{self._space}mustUnderstand", "").strip() not in _TRUE:
                continue
            actor = (block.get(f"{self._space}{role}") or "").strip()
            ours = not actor or actor.endswith(("/actor/next", "/role/next", "/role/ultimateReceiver"))
            if ours and not block.tag.startswith(known):
                return str(block.tag)
        return None

    def fault(self) -> Fault | None:
        content = self.content()
        if content is None or content.tag != f"{self._space}Fault":
            return None
        if self.version == "1.1":
            detail = content.find("detail")
            code = (content.findtext("faultcode") or "").strip()
            return Fault(code, (content.findtext("faultstring") or "").strip(), inner(detail))
        space = self._space
        subcode = content.findtext(f"{space}Code/{space}Subcode/{space}Value") or ""
        return Fault(
            (content.findtext(f"{space}Code/{space}Value") or "").strip(),
            (content.findtext(f"{space}Reason/{space}Text") or "").strip(),
            inner(content.find(f"{space}Detail")),
            subcode.strip(),
        )

    def text(self) -> str:
        from lxml import etree

        return str(etree.tostring(self.root, encoding="unicode"))


def read_envelope(data: bytes | str, charset: str | None = None) -> Envelope:
    """Parse an envelope; raises ``EnvelopeInvalid``."""
    from lxml import etree

    try:
        text = decoded(data, charset, xml=True) if isinstance(data, bytes) else data
        text = text.removeprefix("\ufeff")
        check_text(text)
        check_xml(text)
        root = etree.fromstring(text.encode(), parser())
    except (XmlForbidden, XmlMalformed) as error:
        raise EnvelopeInvalid(str(error.facts["why"])) from None
    except etree.XMLSyntaxError as error:
        raise EnvelopeInvalid(" ".join(str(error).split())) from None
    except ValueError as error:
        raise EnvelopeInvalid(str(error)) from None
    for version, space in SPACES.items():
        if root.tag == f"{{{space}}}Envelope":
            if len(root.findall(f"{{{space}}}Body")) != 1 or len(root.findall(f"{{{space}}}Header")) > 1:
                raise EnvelopeInvalid("an envelope has one body, and one header at most")
            if sum(isinstance(element.tag, str) for element in root.find(f"{{{space}}}Body")) > 1:
                raise EnvelopeInvalid("the body of the envelope has more than one element")
            if any(isinstance(node, etree._ProcessingInstruction) for node in root.iter()):
                raise EnvelopeInvalid("an envelope has no processing instructions")
            return Envelope(root, version)
    raise EnvelopeInvalid("this is no envelope of SOAP 1.1 or 1.2", "VersionMismatch")


def alone(element: etree._Element) -> str:
    """An element as a document, with the namespaces it needs and without those of the envelope."""
    from lxml import etree

    copied = etree.fromstring(etree.tostring(element, with_tail=False), parser())
    kept = [prefix for prefix, space in element.nsmap.items() if prefix and space not in _OURS]
    etree.cleanup_namespaces(copied, keep_ns_prefixes=kept)
    return str(etree.tostring(copied, encoding="unicode"))


def inner(element: etree._Element | None) -> str:
    """The elements inside of one, as text; its own text if there are none."""
    if element is None:
        return ""
    inside = [child for child in element if isinstance(child.tag, str)]
    return "".join(alone(child) for child in inside) if inside else (element.text or "").strip()


def name_of(body: str) -> str:
    """The name of a document's root, as ``{namespace}name``."""
    from lxml import etree

    tag = etree.fromstring(without_declaration(body).encode(), parser()).tag
    return str(tag) if str(tag).startswith("{") else f"{{}}{tag}"


def written(version: str, headers: Sequence[str], body: str) -> str:
    """An envelope around a message, or an empty one."""
    head = f"<soap:Header>{''.join(headers)}</soap:Header>" if headers else ""
    inside = without_declaration(body) if body else ""
    return f'<soap:Envelope xmlns:soap="{SPACES[version]}">{head}<soap:Body>{inside}</soap:Body></soap:Envelope>'


def addressed(action: str, message_id: str | None = None, **others: str) -> list[str]:
    """Headers of WS-Addressing: ``to``, ``reply_to``, ``relates_to``."""
    values = {"Action": action, "MessageID": message_id, "To": others.get("to"), "RelatesTo": others.get("relates_to")}
    headers = [
        f'<wsa:{name} xmlns:wsa="{ADDRESSING}">{escaped(text)}</wsa:{name}>' for name, text in values.items() if text
    ]
    if "reply_to" in others:
        address = f"<wsa:Address>{escaped(others['reply_to'])}</wsa:Address>"
        headers.append(f'<wsa:ReplyTo xmlns:wsa="{ADDRESSING}">{address}</wsa:ReplyTo>')
    return headers


def fault_body(version: str, code: str, reason: str, detail: str = "", subcode: tuple[str, str] | None = None) -> str:
    """The body of a fault; ``subcode`` is a namespace and a name."""
    local = _CODES[code][version]
    inside = without_declaration(detail) if detail else ""
    declared = f' xmlns:sub="{subcode[0]}"' if subcode else ""
    if version == "1.1":
        named = f"sub:{subcode[1]}" if subcode else f"soap:{local}"
        more = f"<detail>{inside}</detail>" if inside else ""
        inner = f"<faultcode{declared}>{named}</faultcode><faultstring>{escaped(reason)}</faultstring>{more}"
        return f"<soap:Fault>{inner}</soap:Fault>"
    more = f"<soap:Detail>{inside}</soap:Detail>" if inside else ""
    under = f"<soap:Subcode><soap:Value>sub:{subcode[1]}</soap:Value></soap:Subcode>" if subcode else ""
    return (
        f"<soap:Fault><soap:Code{declared}><soap:Value>soap:{local}</soap:Value>{under}</soap:Code>"
        f'<soap:Reason><soap:Text xml:lang="en">{escaped(reason)}</soap:Text></soap:Reason>{more}</soap:Fault>'
    )
