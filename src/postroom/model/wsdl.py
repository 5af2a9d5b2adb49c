"""Interfaces of Web Services (WSDL 1.1): the messages of a port and their schema.

Files are read when a program is loaded, and stored as one text. zeep parses them; nothing here opens a file or a
connection. Messages are XML, so they are validated and not converted.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from postroom.errors import PostroomError, SchemaMalformed
from postroom.limits import SCHEMA_FILES_MAX
from postroom.model.definitions import nearest
from postroom.model.schema import beside, collected, compile_schema, is_outside, locations, root_of
from postroom.model.xmltext import attribute

if TYPE_CHECKING:
    from lxml import etree

_WSDL = "{http://schemas.xmlsoap.org/wsdl/}"
_XSD = "{http://www.w3.org/2001/XMLSchema}"
#: The extension elements of a binding for each version of SOAP.
_BINDINGS = {
    "1.1": "{http://schemas.xmlsoap.org/wsdl/soap/}",
    "1.2": "{http://schemas.xmlsoap.org/wsdl/soap12/}",
}
_BASE = "http://postroom.invalid/"  # zeep joins locations to it; nothing is opened there
_ALL = "postroom-all.xsd"


class Unusable(ValueError):
    """Why an interface cannot be used."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Input, output and faults; names of elements are ``{namespace}name``."""

    name: str
    action: str
    input: str
    output: str | None  # None if nothing comes back
    faults: frozenset[str]  # of elements in the detail of a fault


@dataclass(frozen=True, slots=True)
class Contract:
    """One port of a service."""

    port: str
    service: str
    version: str  # of SOAP: 1.1 or 1.2
    namespace: str
    operations: Mapping[str, Operation]  # by the element of their input
    schema: str  # of every element, as ``model.schema`` has it

    def sending(self, element: str) -> Operation | None:
        return self.operations.get(element)

    def answers(self) -> dict[str, bool]:
        """The elements of answers, and whether each is a fault."""
        outputs = {operation.output: False for operation in self.operations.values() if operation.output}
        faults = {name: True for operation in self.operations.values() for name in operation.faults}
        return {**faults, **outputs}


def gathered_wsdl(text: str, name: str, read: Callable[[str], str]) -> str:
    """A WSDL with all that it imports, as one text; ``read`` returns the text of a file beside it."""
    too_many = Unusable(f"{name} has more than {SCHEMA_FILES_MAX} files")
    return json.dumps([name, collected(text, name, _imported, read, too_many)], ensure_ascii=False)


def _imported(text: str, file: str) -> Iterator[str]:
    for element, location in _locations(tree_of(text, file)):
        other = beside(file, location)
        if is_outside(other, location) or element.tag in (f"{_XSD}redefine", f"{_XSD}override"):
            word = element.tag.partition("}")[2]
            raise Unusable(f"{file}, line {element.sourceline}: {word} of {location}, which is not a file beside it")
        yield other


def tree_of(text: str, file: str) -> etree._Element:
    """Parse a harmless document; raises ``Unusable``."""
    try:
        return root_of(text, file)
    except SchemaMalformed as error:
        raise Unusable(f"{file}: {error.facts['why']}") from None


def _locations(root: etree._Element) -> Iterator[tuple[etree._Element, str]]:
    for element in root.iter(f"{_WSDL}import"):
        yield element, element.get("location", "")
    yield from locations(root)


@lru_cache(maxsize=64)
def contract_of(text: str, port: str) -> Contract:
    """The contract of one port; raises ``Unusable``."""
    document = _document(text)
    ports = {name: (service, bound) for service in document.services.values() for name, bound in service.ports.items()}
    if port not in ports:
        raise Unusable(f"it has no port {port}{nearest(port, ports)}; there are {', '.join(ports) or 'none'}")
    service, bound = ports[port]
    binding = bound.binding
    version = next((version for version, space in _BINDINGS.items() if binding.nsmap.get("soap") == space[1:-1]), None)
    if version is None:
        raise Unusable(f"the port {port} has no binding of SOAP")
    _check_uses(text, binding.name.text)
    wrappers: dict[str, str] = {}
    operations: dict[str, Operation] = {}
    for operation in binding.all().values():
        made = _operation(operation, wrappers)
        if made.input in operations:
            both = f"{operations[made.input].name} and {made.name}"
            raise Unusable(f"the operations {both} have the same message, {made.input}")
        operations[made.input] = made
    if not operations:
        raise Unusable(f"the port {port} has no operation")
    schema = _schema(text, wrappers)
    try:
        compile_schema(schema, "the types of the interface")
    except PostroomError as error:
        raise Unusable(str(error)) from None
    name, files = json.loads(text)
    space = tree_of(files[name], name).get("targetNamespace", "")
    return Contract(port, service.name, version, space, operations, schema)


class _Memory:
    """Serves the files of a WSDL to zeep from memory."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files

    def load(self, url: str) -> bytes:
        text = self._files.get(url.removeprefix(_BASE))
        if text is None:
            raise Unusable(f"{url.removeprefix(_BASE)} is not there")
        return text.encode()


def _document(text: str) -> Any:
    from zeep.wsdl import Document  # half a second, only for those who have an interface

    name, files = json.loads(text)
    try:
        memory: Any = _Memory(files)
        document = Document(f"{_BASE}{name}", memory)
    except Unusable:
        raise
    except Exception as error:  # whatever zeep finds wrong, and whatever it does not expect
        raise Unusable(f"{name} cannot be read: {type(error).__name__}: {' '.join(str(error).split())}") from None
    return document


def _check_uses(text: str, binding: str) -> None:
    """Raise for encoded values and header parts, which are not supported."""
    _, files = json.loads(text)
    local = binding.partition("}")[2]
    for file, source in files.items():
        for node in tree_of(source, file).iter(f"{_WSDL}binding"):
            for element in node.iter() if node.get("name") == local else ():
                words = [space for space in _BINDINGS.values() if str(element.tag).startswith(space)]
                word = str(element.tag).partition("}")[2]
                if words and (word in ("header", "headerfault") or element.get("use") == "encoded"):
                    what = "encoded messages" if word not in ("header", "headerfault") else "headers"
                    raise Unusable(f"{file}, line {element.sourceline}: {what} are not implemented")


def _operation(operation: Any, wrappers: dict[str, str]) -> Operation:
    abstract = operation.abstract
    if abstract.input_message is None:
        raise Unusable(f"the operation {operation.name} begins with the partner, which is not implemented")
    output: str | None = None
    if operation.style == "rpc":
        input = f"{{{operation.input.body.qname.namespace or ''}}}{operation.name}"
        wrappers[input] = _wrapper(operation, operation.name, abstract.input_message)
        if operation.output is not None:
            output = f"{input}Response"
            wrappers[output] = _wrapper(operation, f"{operation.name}Response", abstract.output_message)
    else:
        input = _element(operation, abstract.input_message)
        has_output = (
            operation.output is not None and abstract.output_message is not None and abstract.output_message.parts
        )
        output = _element(operation, abstract.output_message) if has_output else None
    faults = frozenset(_element(operation, fault_message) for fault_message in abstract.fault_messages.values())
    return Operation(operation.name, operation.soapaction or "", input, output, faults)


def _element(operation: Any, message: Any) -> str:
    """The element of a message."""
    parts = list(message.parts.values())
    if len(parts) != 1 or parts[0].element is None:
        what = f"the message {message.name.localname} has {len(parts)} parts"
        if len(parts) == 1:
            what = f"the part of {message.name.localname} has a type and no element"
        raise Unusable(f"operation {operation.name}: {what}; a message is one element")
    return str(parts[0].element.qname.text)


def _wrapper(operation: Any, name: str, message: Any) -> str:
    """The wrapper element of an rpc-style message."""
    parts = []
    for part, content in message.parts.items():
        if content.type is None:
            raise Unusable(f"operation {operation.name}: part {part} has an element; in style rpc it has a type")
        kind = content.type.qname
        where = f'xmlns:p="{attribute(kind.namespace or "")}" type="p:{kind.localname}"'
        parts.append(f'<xs:element name="{attribute(part)}" form="unqualified" {where}/>')
    inside = "".join(parts)
    return (
        f'<xs:element name="{name}"><xs:complexType><xs:sequence>{inside}</xs:sequence></xs:complexType></xs:element>'
    )


def _schema(text: str, wrappers: Mapping[str, str]) -> str:
    """All types of a WSDL as one schema: its own, those of other files, and rpc wrappers."""
    from lxml import etree

    _, files = json.loads(text)
    schemas: dict[str, str] = {}
    spaces: dict[str, list[str]] = {}  # the schemas of each namespace
    for file, source in files.items():
        root = tree_of(source, file)
        if root.tag.startswith(_XSD):
            schemas[file] = source
            continue
        for number, element in enumerate(root.iter(f"{_XSD}schema")):
            name = posixpath.join(posixpath.dirname(file), f"postroom-{posixpath.basename(file)}-{number}.xsd")
            schemas[name] = etree.tostring(element, encoding="unicode", with_tail=False)
            spaces.setdefault(element.get("targetNamespace", ""), []).append(name)
    for number, (element_name, wrapper) in enumerate(wrappers.items()):
        space = element_name[1:].partition("}")[0]
        others = "".join(f'<xs:import namespace="{attribute(other)}"/>' for other in spaces if other not in ("", space))
        named = f' targetNamespace="{attribute(space)}"' if space else ""
        name = f"postroom-rpc-{number}.xsd"
        schemas[name] = f'<xs:schema xmlns:xs="{_XSD[1:-1]}"{named}>{others}{wrapper}</xs:schema>'
        spaces.setdefault(space, []).append(name)
    parts = []
    for number, (space, names) in enumerate(spaces.items()):
        named = f' targetNamespace="{attribute(space)}"' if space else ""
        includes = "".join(f'<xs:include schemaLocation="{attribute(name)}"/>' for name in names)
        file = f"postroom-space-{number}.xsd"
        schemas[file] = f'<xs:schema xmlns:xs="{_XSD[1:-1]}"{named}>{includes}</xs:schema>'
        where = f' namespace="{attribute(space)}"' if space else ""
        parts.append(f'<xs:import{where} schemaLocation="{file}"/>')
    top = f'<xs:schema xmlns:xs="{_XSD[1:-1]}" targetNamespace="urn:postroom:all">{"".join(parts)}</xs:schema>'
    return json.dumps([_ALL, {_ALL: top, **schemas}], ensure_ascii=False)


def published(text: str, port: str, address: str, part: str | None) -> str | None:
    """A file of a WSDL for partners, with our address; None if there is no such file."""
    from lxml import etree

    main, files = json.loads(text)
    name = main if part is None else part
    if name not in files:
        return None
    root = tree_of(files[name], name)
    for element, location in _locations(root):
        where = "location" if element.tag == f"{_WSDL}import" else "schemaLocation"
        element.set(where, f"{address}?wsdl={beside(name, location)}")
    for node in root.iter(f"{_WSDL}port"):
        for space in _BINDINGS.values() if node.get("name") == port else ():
            for element in node.iter(f"{space}address"):
                element.set("location", address)
    return str(etree.tostring(root, encoding="unicode"))
