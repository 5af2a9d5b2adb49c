"""Schemas of queues (XSD): compiled once per text, and never a reason to open another file."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from postroom.errors import SchemaInvalid, SchemaMalformed, XmlForbidden, XmlMalformed
from postroom.model.body import check_text
from postroom.model.xml import check_xml

if TYPE_CHECKING:
    from lxml import etree

_XSD = "{http://www.w3.org/2001/XMLSchema}"


def compile_schema(text: str, name: str) -> etree.XMLSchema:
    """The schema of a text, or a refusal: it must stand on its own."""
    from lxml import etree  # a tenth of a second, only for those who have a schema

    try:
        check_text(text)
        check_xml(text)  # no DOCTYPE, and with it no entities; nothing bottomless
    except (XmlForbidden, XmlMalformed) as error:
        raise SchemaMalformed(file=name, why=str(error.facts["why"])) from None
    try:
        root = etree.fromstring(text.encode(), _parser())
        for word in ("include", "import", "redefine", "override"):
            for found in root.iter(_XSD + word):
                if found.get("schemaLocation") is not None:
                    raise SchemaMalformed(file=name, why=f"line {found.sourceline}: xs:{word} of another file")
        return etree.XMLSchema(root)
    except (etree.XMLSyntaxError, etree.XMLSchemaParseError) as error:
        raise SchemaMalformed(file=name, why=" ".join(str(error).split())) from None


def check_schema(text: str, body: str | None) -> None:
    """Raise unless the body is an XML document that fits the schema; None stands for a body that is no XML."""
    if body is None:
        raise SchemaInvalid(why="only XML messages fit a schema")
    from lxml import etree

    schema = _compiled(text)
    try:
        fits = schema.validate(etree.fromstring(body.encode(), _parser()))
    except (etree.XMLSyntaxError, etree.XMLSchemaValidateError) as error:
        raise SchemaInvalid(why=" ".join(str(error).split())) from None
    if not fits:
        first = schema.error_log[0]
        raise SchemaInvalid(why=f"line {first.line}: {first.message}")


@lru_cache(maxsize=64)
def _compiled(text: str) -> etree.XMLSchema:
    return compile_schema(text, "schema")


def _parser() -> etree.XMLParser:
    from lxml import etree

    # What we give it is UTF-8, whatever the declaration of the document says.
    return etree.XMLParser(encoding="utf-8", resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
