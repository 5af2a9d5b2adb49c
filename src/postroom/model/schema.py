"""Schemas of queues (XSD): compiled once per text, without opening other files.

Included and imported schemas are read when the definition is loaded, and stored with it as one text.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from postroom.errors import SchemaInvalid, SchemaMalformed, XmlForbidden, XmlMalformed
from postroom.limits import SCHEMA_FILES_MAX
from postroom.model.body import check_text
from postroom.model.xml import check_xml

if TYPE_CHECKING:
    from lxml import etree

_XSD = "{http://www.w3.org/2001/XMLSchema}"
_FETCHING = ("include", "import", "redefine", "override")
_BASE = "postroom:/schema/"  # where the files of a schema are, to its compiler
#: Neither patterns nor keys, and nothing that is made of others of its kind: those can double with every step.
_LINEAR = frozenset(
    "schema include import annotation documentation appinfo element attribute complexType simpleType sequence choice "
    "all complexContent simpleContent extension restriction any anyAttribute list enumeration length minLength "
    "maxLength minInclusive maxInclusive minExclusive maxExclusive totalDigits fractionDigits whiteSpace".split()
)
_OCCURRENCES = frozenset(["0", "1", "unbounded"])


def gathered(text: str, name: str, read: Callable[[str], str]) -> str:
    """A schema with all that it includes, as one text; ``read`` returns the text of a file beside it."""
    too_many = SchemaMalformed(file=name, why=f"it has more than {SCHEMA_FILES_MAX} files")
    files = collected(text, name, _needed, read, too_many)
    return text if len(files) == 1 else json.dumps([name, files], ensure_ascii=False)


def collected(
    text: str,
    name: str,
    needed: Callable[[str, str], Iterator[str]],
    read: Callable[[str], str],
    too_many: Exception,
) -> dict[str, str]:
    """The texts of a file and of all that it needs, at any depth, by name."""
    files: dict[str, str] = {}
    todo = {name: text}
    while todo:
        file, source = todo.popitem()
        files[file] = source
        for other in needed(source, file):
            if other not in files and other not in todo:
                if len(files) + len(todo) >= SCHEMA_FILES_MAX:
                    raise too_many
                todo[other] = read(other)
    return files


def parted(text: str) -> tuple[str, Mapping[str, str]]:
    """Split the stored text: the schema itself, and its includes by name."""
    if not text.startswith("["):
        return text, {}
    name, files = json.loads(text)
    return files[name], {file: source for file, source in files.items() if file != name}


def renamed(text: str, prefix: str, name: str) -> dict[str, str]:
    """The files of a schema for a folder with others: ``name``, and includes with a prefix."""
    if not text.startswith("["):
        return {name: text}
    main, files = json.loads(text)
    names = {file: name if file == main else f"{prefix}-{file.replace('/', '-')}" for file in files}

    def places(file: str, text: str) -> str:
        def place(match: re.Match[str]) -> str:
            other = names.get(beside(file, match[2]))
            return match[0] if other is None else f"{match[1]}{other}{match[3]}"

        return re.sub(r"""(\b(?:schemaLocation|location)\s*=\s*["'])([^"']*)(["'])""", place, text)

    return {names[file]: places(file, source) for file, source in files.items()}


def beside(file: str, location: str) -> str:
    """The name of a file that another one refers to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(file), location))


def is_outside(file: str, location: str) -> bool:
    """Whether a location leaves the folder of the file that refers to it."""
    return ":" in location or "\\" in location or file.startswith(("/", "..")) or not location.strip()


def _needed(text: str, name: str) -> Iterator[str]:
    """The files that a schema includes or imports; raises for one outside its folder."""
    for element, location in locations(root_of(text, name)):
        word = element.tag.removeprefix(_XSD)
        other = beside(name, location)
        outside = is_outside(other, location)
        if word not in ("include", "import") or outside:
            raise SchemaMalformed(file=name, why=f"line {element.sourceline}: xs:{word} of another file")
        yield other


def root_of(text: str, name: str) -> etree._Element:
    """Parse a harmless document; raises ``SchemaMalformed``."""
    from lxml import etree  # a tenth of a second, only for those who have a schema

    try:
        check_text(text)
        check_xml(text)  # no DOCTYPE, and with it no entities; nothing bottomless
    except (XmlForbidden, XmlMalformed) as error:
        raise SchemaMalformed(file=name, why=str(error.facts["why"])) from None
    try:
        return etree.fromstring(text.encode(), parser())
    except etree.XMLSyntaxError as error:
        raise SchemaMalformed(file=name, why=" ".join(str(error).split())) from None


def locations(root: etree._Element) -> list[tuple[etree._Element, str]]:
    """The elements of a schema that refer to another file, with the locations."""
    elements = [element for word in _FETCHING for element in root.iter(_XSD + word)]
    return [(element, location) for element in elements if (location := element.get("schemaLocation")) is not None]


def compile_schema(text: str, name: str) -> etree.XMLSchema:
    """Compile a schema; raises unless it has everything that it includes."""
    from lxml import etree

    main, others = parted(text)
    top = json.loads(text)[0] if others else name
    for file, source in ((top, main), *others.items()):
        for other in _needed(source, file) if others else ():
            if other not in others and other != top:
                raise SchemaMalformed(file=name, why=f"{file} includes {other}, which is not there")
    if not others:
        for element, _ in locations(root_of(main, name)):
            word = element.tag.removeprefix(_XSD)
            raise SchemaMalformed(file=name, why=f"line {element.sourceline}: xs:{word} of another file")
    try:
        return etree.XMLSchema(etree.fromstring(main.encode(), parser(others), base_url=f"{_BASE}{top}"))
    except (etree.XMLSyntaxError, etree.XMLSchemaParseError) as error:
        raise SchemaMalformed(file=name, why=" ".join(str(error).replace(_BASE, "").split())) from None


def is_linear(text: str) -> bool:
    """Whether compiling it and validating against it take linear time."""
    main, others = parted(text)
    parts = [part for source in (main, *others.values()) for part in root_of(source, "schema").iter(f"{_XSD}*")]
    return all(
        part.tag.removeprefix(_XSD) in _LINEAR
        and {part.get("minOccurs", "1"), part.get("maxOccurs", "1")} <= _OCCURRENCES
        for part in parts
    )


def check_schema(text: str, body: str | None) -> None:
    """Raise unless the body is an XML document valid for the schema; None stands for a body that is no XML."""
    if body is None:
        raise SchemaInvalid(why="only XML messages fit a schema")
    from lxml import etree

    schema = _compiled(text)
    try:
        fits = schema.validate(etree.fromstring(body.encode(), parser()))
    except (etree.XMLSyntaxError, etree.XMLSchemaValidateError) as error:
        raise SchemaInvalid(why=" ".join(str(error).split())) from None
    if not fits:
        first = schema.error_log[0]
        raise SchemaInvalid(why=f"line {first.line}: {first.message}")


@lru_cache(maxsize=64)
def _compiled(text: str) -> etree.XMLSchema:
    return compile_schema(text, "schema")


def parser(others: Mapping[str, str] | None = None) -> etree.XMLParser:
    """An XML parser that opens no files or connections."""
    from lxml import etree

    # What we give it is UTF-8, whatever the declaration of the document says.
    made = etree.XMLParser(encoding="utf-8", resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    if others:
        made.resolvers.add(_from_memory(others))
    return made


def _from_memory(others: Mapping[str, str]) -> etree.Resolver:
    """Resolves the files of a schema from memory."""
    from lxml import etree

    class Beside(etree.Resolver):  # type: ignore[misc]  # lxml has no types
        def resolve(self, system_url: str, public_id: str, context: object) -> object:
            text = others.get(system_url.removeprefix(_BASE), "")
            return self.resolve_string(text.encode(), context, base_url=system_url)

    return Beside()
