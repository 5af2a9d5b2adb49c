"""The functions that a rule may call: an allow-list. It has nothing that reads outside of the message store.

Functions are identified by namespace and local name, because constructors can rebind prefixes.
"""

from __future__ import annotations

from collections.abc import Mapping

#: XQuery's own functions (namespace fn) that only look at their arguments.
_FN = frozenset(
    """
    abs adjust-date-to-timezone adjust-dateTime-to-timezone adjust-time-to-timezone analyze-string apply avg
    base-uri boolean ceiling codepoint-equal codepoints-to-string compare concat contains contains-token count
    current-date current-dateTime current-time data dateTime day-from-date day-from-dateTime days-from-duration
    deep-equal default-collation distinct-values document-uri element-with-id empty encode-for-uri ends-with error
    escape-html-uri exactly-one exists false filter floor fold-left fold-right for-each for-each-pair format-date
    format-dateTime format-integer format-number format-time function-arity function-name generate-id has-children head
    hours-from-dateTime hours-from-duration hours-from-time id idref implicit-timezone in-scope-prefixes index-of
    innermost insert-before iri-to-uri json-to-xml lang last local-name local-name-from-QName lower-case matches max
    min minutes-from-dateTime minutes-from-duration minutes-from-time month-from-date month-from-dateTime
    months-from-duration name namespace-uri namespace-uri-for-prefix namespace-uri-from-QName nilled node-name
    normalize-space normalize-unicode not number one-or-more outermost parse-ietf-date parse-json parse-xml
    parse-xml-fragment path position prefix-from-QName QName random-number-generator remove replace resolve-QName
    resolve-uri reverse root round round-half-to-even seconds-from-dateTime seconds-from-duration seconds-from-time
    serialize sort starts-with static-base-uri string string-join string-length string-to-codepoints subsequence
    substring substring-after substring-before sum tail timezone-from-date timezone-from-dateTime timezone-from-time
    tokenize translate true unordered upper-case xml-to-json year-from-date year-from-dateTime years-from-duration
    zero-or-one
    """.split()
)
_MAP = frozenset("merge size keys contains get find put entry remove for-each".split())
_ARRAY = frozenset(
    """
    size get put append subarray remove insert-before head tail reverse join for-each filter fold-left fold-right
    for-each-pair sort flatten
    """.split()
)
_MATH = frozenset("pi exp exp10 log log10 pow sqrt sin cos tan asin acos atan atan2".split())
#: Constructors of atomic values.
_XS = frozenset(
    """
    anyURI base64Binary boolean byte date dateTime dateTimeStamp dayTimeDuration decimal double duration float gDay
    gMonth gMonthDay gYear gYearMonth hexBinary int integer language long Name NCName negativeInteger NMTOKEN
    nonNegativeInteger nonPositiveInteger normalizedString positiveInteger QName short string time token unsignedByte
    unsignedInt unsignedLong unsignedShort untypedAtomic yearMonthDuration
    """.split()
)
#: Our own, with the numbers of arguments they take.
OURS = {
    "qs:message": (0,),
    "qs:queue": (0, 1),
    "qs:property": (1,),
    "qs:slice": (0,),
    "qs:slicekey": (0,),
    "collection": (1,),
}
_XPATH = "http://www.w3.org/2005/xpath-functions"
NAMESPACE = "urn:postroom:qs"
#: What prefixes mean where no constructor says otherwise; a name without one is a function of XPath.
_PREFIXES = {
    "": _XPATH,
    "fn": _XPATH,
    "map": f"{_XPATH}/map",
    "array": f"{_XPATH}/array",
    "math": f"{_XPATH}/math",
    "xs": "http://www.w3.org/2001/XMLSchema",
    "qs": NAMESPACE,
}
_CANONICAL = {uri: prefix for prefix, uri in _PREFIXES.items() if prefix != "fn"}
#: The namespace of what a catch tells of an error, in its variables and codes.
ERRORS = "http://www.w3.org/2005/xqt-errors"
LOCAL = "http://www.w3.org/2005/xquery-local-functions"
#: Prefixes that mean the same in every program; "" is the one for names of functions without a prefix.
PREFIXES = {
    **_PREFIXES,
    "local": LOCAL,
    "err": ERRORS,
    "xml": "http://www.w3.org/XML/1998/namespace",
    "xsi": "http://www.w3.org/2001/XMLSchema-instance",
}
#: Namespaces in which a program can declare nothing: those of XQuery and its kin, of Saxon and of ours.
_TAKEN = (
    "http://www.w3.org/",
    "http://saxon.sf.net/",
    "http://exslt.org/",
    "http://expath.org/",
    "java:",
    "urn:postroom:",
)
_BY_PREFIX = {"": _FN, "map": _MAP, "array": _ARRAY, "math": _MATH, "xs": _XS}
_OUTSIDE = frozenset(
    """
    doc doc-available document unparsed-text unparsed-text-lines unparsed-text-available json-doc uri-collection
    environment-variable available-environment-variables transform load-xquery-module put function-lookup trace
    stream-available
    """.split()
)


def canonical(name: str, declared: Mapping[str, str]) -> str:
    """The one way that a function is written here: by the usual prefix of its namespace, or with the namespace itself.

    >>> canonical("fn:abs", {}), canonical("m:get", {"m": "http://www.w3.org/2005/xpath-functions/map"})
    ('abs', 'map:get')
    >>> canonical("Q{http://www.w3.org/2001/XMLSchema}int", {}), canonical("map:get", {"map": "urn:x"})
    ('xs:int', 'Q{urn:x}get')
    """
    name_expanded = expanded(name, declared)
    if name_expanded is None:
        return name
    uri, local = name_expanded
    usual = _CANONICAL.get(uri)
    if usual is None:
        return f"Q{{{uri}}}{local}"
    return f"{usual}:{local}" if usual else local


def expanded(name: str, declared: Mapping[str, str]) -> tuple[str, str] | None:
    """The namespace and the local name of a function; None if nothing declares its prefix.

    >>> expanded("Q{ urn:x }f", {}), expanded("p:f", {"p": "urn:p"}), expanded("p:f", {})
    (('urn:x', 'f'), ('urn:p', 'f'), None)
    """
    if name.startswith("Q{"):
        uri, _, local = name[2:].partition("}")
        return collapsed(uri), local
    prefix, _, local = name.rpartition(":")
    meant = declared.get(prefix, PREFIXES.get(prefix)) if prefix else _XPATH
    return None if meant is None else (meant, local)


def collapsed(uri: str) -> str:
    """A namespace URI with normalised white space, as XQuery reads it."""
    return " ".join(uri.split())


def is_taken(uri: str) -> bool:
    """Whether programs may not declare functions and variables in a namespace."""
    return uri != LOCAL and uri.startswith(_TAKEN)


def refusal(name: str) -> str | None:
    """Why a rule may not call a function, by its canonical name; None if it may."""
    if name in OURS:
        return None
    prefix, _, local = name.rpartition(":")
    known = _BY_PREFIX.get(prefix)
    if known is not None and local in known:
        return None
    if not prefix and local in _OUTSIDE:
        return f"{name}() reaches outside of the room, and rules may not"
    if prefix == "qs":
        return f"there is no function {name}(); ours are {', '.join(sorted(OURS))}"
    return f"{name}() is not a function that rules may call"
