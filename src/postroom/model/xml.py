"""Safe parsing of XML, in one place.

An expat parser refuses attacks early: DOCTYPE (and so entities and external references), deep nesting, and very many
attributes. The text itself is stored unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn
from xml.parsers import expat

from postroom.errors import StoreUnavailable, XmlForbidden, XmlMalformed
from postroom.limits import BODY_DEPTH_MAX, XML_ATTRIBUTES_MAX

if TYPE_CHECKING:
    from xml.etree import ElementTree

if expat.version_info < (2, 4, 0):  # older ones lack the amplification guard
    raise StoreUnavailable(why=f"Python's expat is {expat.EXPAT_VERSION}; 2.4.0 or newer is needed")


def check_xml(text: str) -> None:
    """Raise unless ``text`` is one well-formed, harmless document."""
    parser = expat.ParserCreate(namespace_separator=" ")
    depth = prefixes = 0

    def opened(_name: str, attributes: list[str]) -> None:
        nonlocal depth, prefixes
        depth += 1
        prefixes = 0
        if depth > BODY_DEPTH_MAX:
            raise XmlForbidden(why=f"elements nest deeper than {BODY_DEPTH_MAX} {_position(parser)}")
        if len(attributes) > 2 * XML_ATTRIBUTES_MAX:
            raise XmlForbidden(why=f"more than {XML_ATTRIBUTES_MAX} attributes on one element {_position(parser)}")

    def prefixed(_prefix: str | None, _uri: str) -> None:
        nonlocal prefixes
        prefixes += 1
        if prefixes > XML_ATTRIBUTES_MAX:
            raise XmlForbidden(why=f"more than {XML_ATTRIBUTES_MAX} namespaces on one element {_position(parser)}")

    def closed(_name: str) -> None:
        nonlocal depth
        depth -= 1

    def doctype(*_ignored: object) -> NoReturn:
        raise XmlForbidden(why=f"a DOCTYPE is not accepted {_position(parser)}; send the document without it")

    parser.ordered_attributes = True
    parser.StartElementHandler = opened
    parser.EndElementHandler = closed
    parser.StartNamespaceDeclHandler = prefixed
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise XmlMalformed(why=f"{reason} at line {error.lineno}, column {error.offset + 1}") from None


def is_harmless(text: str) -> bool:
    """Whether ``text`` certainly passes :func:`check_xml`; always False for a large one."""
    if text.count("<") > BODY_DEPTH_MAX or text.count("=") > XML_ATTRIBUTES_MAX or "<!DOCTYPE" in text:
        return False
    try:
        expat.ParserCreate(namespace_separator=" ").Parse(text, True)
    except expat.ExpatError:
        return False
    return True


def _position(parser: expat.XMLParserType) -> str:
    return f"(line {parser.CurrentLineNumber}, column {parser.CurrentColumnNumber + 1})"


def parse_xml(text: str) -> ElementTree.Element:
    """Check a document and parse it into an element tree."""
    check_xml(text)
    from xml.etree import ElementTree  # most who check a document read nothing of it

    return ElementTree.fromstring(text)
