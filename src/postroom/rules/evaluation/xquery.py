"""The only place that calls Saxon: runs an XQuery over one document, sandboxed.

Saxon calls hold the interpreter and cannot be interrupted, so untrusted rules run in a separate process with a
deadline.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from postroom.model.schema import check_schema
from postroom.rules.compilation.plan import CATCHING

if TYPE_CHECKING:
    from saxonche import PySaxonProcessor, PyXQueryProcessor

_FEATURE = "http://saxon.sf.net/feature/"
_CLOSED = (
    # doc, unparsed-text, json-doc, collection, import: an address that is its own content reaches nothing outside.
    (f"{_FEATURE}allowedProtocols", "data"),
    # Entities of what parse-xml() reads: the parser that it uses a second time has forgotten the line above.
    (f"{_FEATURE}parserFeature?uri=http://apache.org/xml/features/disallow-doctype-decl", "true"),
)
# What relative names in a query are relative to; else it would be the folder that this process stands in.
_BASE = "postroom:/rules/"
_FOLDER = re.compile(r"\bfile:/+[^\s;'`\"<>)}]*")
TOO_MUCH = "PR0005"  # the code of what takes too long or too much memory
# What a message may be is checked when it is made; Java's own limits are lower, and one message that exceeds them would
# fail all that are read together with it.
_LIFTED = tuple(
    (f"{_FEATURE}parserProperty?uri=jdk.xml.{limit}", "0")
    for limit in ("maxElementDepth", "elementAttributeLimit", "maxXMLNameLimit")
)
# Saxon 13 evaluates what does not change in a loop before the loop, even if it stands in a try: then no catch sees its
# error. A query with a try of someone's own is compiled without that.
_UNLIFTED = (f"{_FEATURE}optimizationLevel", "-l")
_PLACE = re.compile(r"on line (\d+) (?:at )?column (\d+)")
_CHARACTER = re.compile(r"at char (\d+)")
# What Saxon adds to an error: how it came there, and of the value of a variable its name.
_TRACE = re.compile(r"\s*\b(?:During lazy evaluation of|invoked by (?:global variable|unknown caller)) .*", re.DOTALL)
_VARIABLE = re.compile(r"\binvoked by global variable (?:\S*[:}])?(\S+) at ")
_MODULE = re.compile(r"\bcolumn \d+ of (data:\S+?):?\s")
_CODE = re.compile(r"^ *([A-Z]{4}[0-9]{4}) +", re.MULTILINE)


@dataclass
class QueryFailed(Exception):
    """Saxon reported an error in a query; line and column are those of the query's text, from 1."""

    code: str
    what: str
    line: int
    column: int
    variable: str = ""  # of a declared variable whose value it is, the local name
    module: str = ""  # the address of the library module that the place is in

    def __str__(self) -> str:
        return f"{self.code}: {self.what}"


class Evaluator(Protocol):
    """Runs queries: Saxon itself, or a separate process with one."""

    def run(self, query: str, document: str, parameters: Mapping[str, str] | None = None) -> str: ...

    def fits(self, schema: str, body: str | None) -> None:
        """Raise ``SchemaInvalid`` unless a message fits a schema; None stands for a body that is no XML."""


class Saxon:
    """A Saxon processor with its compiled queries. One per process: a fork cannot use its parent's."""

    def __init__(self) -> None:
        from saxonche import PySaxonProcessor  # a native library: loaded only where something is to be evaluated

        self._process = os.getpid()
        with _in_utc():
            self._quick, self._exact = PySaxonProcessor(license=False), PySaxonProcessor(license=False)
            for name, value in (*_CLOSED, *_LIFTED):
                self._quick.set_configuration_property(name, value)
                self._exact.set_configuration_property(name, value)
            self._exact.set_configuration_property(*_UNLIFTED)
            self._queries: dict[str, PyXQueryProcessor] = {}
            self.check("implicit-timezone()")  # looked up by the first query, and kept
            self.check(f"{CATCHING} implicit-timezone()")

    def fits(self, schema: str, body: str | None) -> None:
        """Validate in this process; the caller limits the time."""
        check_schema(schema, body)

    @property
    def ours(self) -> bool:
        return self._process == os.getpid()

    def run(self, query: str, document: str, parameters: Mapping[str, str] | None = None) -> str:
        """The result of a query over a document, as text. ``parameters`` are documents too, by the variable's name.

        They are parsed with the first run of a query text, so other parameters need another text.
        """
        from saxonche import PySaxonApiError

        try:
            processor = self._processor(query, parameters)
            processor.set_context(xdm_item=self._of(query).parse_xml(xml_text=document))
            return processor.run_query_to_string() or ""
        except PySaxonApiError as error:
            raise _failed(str(error)) from None

    def check(self, query: str, parameters: Sequence[str] = ()) -> None:
        """Raise unless the query compiles; evaluates nothing that depends on a message."""
        self.run(query, "<b/>", dict.fromkeys(parameters, "<c/>"))

    def _processor(self, query: str, parameters: Mapping[str, str] | None) -> PyXQueryProcessor:
        processor = self._queries.get(query)
        if processor is None:
            if len(self._queries) > 200:  # programs come and go; what a process keeps is bounded
                self._queries.clear()
            processor = self._queries[query] = self._of(query).new_xquery_processor()
            processor.set_query_base_uri(_BASE)
            processor.set_query_content(query)
            processor.set_property("!omit-xml-declaration", "yes")
            processor.set_property("!indent", "no")
            for name, document in (parameters or {}).items():
                processor.set_parameter(name, self._of(query).parse_xml(xml_text=document))
        return processor

    def _of(self, query: str) -> PySaxonProcessor:
        return self._exact if CATCHING in query else self._quick


@contextmanager
def _in_utc() -> Iterator[None]:
    """Set the implicit timezone to UTC, as in every other capability, wherever an executor runs."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    try:
        yield
    finally:
        os.environ.pop("TZ") if before is None else os.environ.update(TZ=before)


_saxon: Saxon | None = None


def saxon() -> Saxon:
    """This process's Saxon, made at its first use."""
    global _saxon
    if _saxon is None or not _saxon.ours:
        _saxon = Saxon()
    return _saxon


def _failed(text: str) -> QueryFailed:
    """Parse an error text of Saxon: code, place and message."""
    # Warnings may come before the error; the error is the last block.
    block = re.split(r"(?m)^(?=\s*(?:Static error|Type error|Error|Dynamic error|Warning)\b)", text.strip())[-1]
    code = _CODE.search(block)
    place = _PLACE.search(block)
    character = _CHARACTER.search(block)
    lines = [line.strip() for line in block.splitlines()[1:] if line.strip()] or [block.strip()]
    what = " ".join(lines)
    if code:
        what = what.removeprefix(code.group(1)).strip()
    line, column = (
        (int(place.group(1)), int(place.group(2))) if place else (1, int(character.group(1)) if character else 1)
    )
    variable = _VARIABLE.search(what)
    told = _FOLDER.sub("file:/…", _TRACE.sub("", what) or text.strip())
    module = _MODULE.search(block)
    names = (variable.group(1) if variable else "", module.group(1) if module else "")
    return QueryFailed(code.group(1) if code else "SAXON", told, line, column, *names)
