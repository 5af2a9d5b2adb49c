"""What rules may call: nothing that reaches outside, under whatever name; and what runs all the same finds no way."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from postroom.errors import ProgramInvalid
from postroom.rules.compilation.checks import check
from postroom.rules.evaluation.verification import verify
from postroom.rules.evaluation.xquery import QueryFailed, Saxon, saxon
from postroom.rules.language import functions
from postroom.rules.language.definitions import Program
from postroom.rules.language.reader import parse

FN = "http://www.w3.org/2005/xpath-functions"
#: Every function of XPath, XQuery and XSLT that reaches what is not its argument, with its number of arguments.
OUTSIDE = {
    "available-environment-variables": 0,
    "collection": 0,
    "doc": 1,
    "doc-available": 1,
    "document": 1,
    "environment-variable": 1,
    "function-lookup": 2,
    "json-doc": 1,
    "load-xquery-module": 1,
    "put": 2,
    "stream-available": 1,
    "trace": 1,
    "transform": 1,
    "unparsed-text": 1,
    "unparsed-text-available": 1,
    "unparsed-text-lines": 1,
    "uri-collection": 0,
}
ARGUMENTS = ["", "'x'", "'x', 1"]
QUEUES = "create queue a kind basic mode persistent create queue b kind basic mode persistent\n"


def forms(name: str) -> dict[str, str]:
    """A function's call in every way that XQuery has for it."""
    number = OUTSIDE[name]
    given = ARGUMENTS[number]
    first, _, more = given.partition(", ")
    said = {
        "plain": f"{name}({given})",
        "blanks": f"{name} (: a comment :) ({given})",
        "prefix": f"fn:{name}({given})",
        "name": f"Q{{{FN}}}{name}({given})",
        "reference": f"{name}#{number}",
        "prefixed reference": f"fn:{name}#{number}",
        "named reference": f"Q{{{FN}}}{name}#{number}",
        "partial": f"{name}({', '.join('?' * number)})",
        "applied": f"apply(fn:{name}#{number}, [{given}])",
        "inside a text": f"<t>{{{name}({given})}}</t>",
        "inside an attribute": f"<t a='{{{name}({ARGUMENTS[0]})}}'/>",
        "inside a template": f"``[`{{{name}({given})}}`]``",
    }
    for prefix in ("math", "map", "array", "xs", "fn", "mine", "err", "local"):
        said[f"{prefix} bound anew"] = f'<t xmlns:{prefix}="{FN}">{{{prefix}:{name}({given})}}</t>'
        said[f"{prefix} bound anew, reference"] = f'<t xmlns:{prefix}="{FN}">{{{prefix}:{name}#{number}}}</t>'
    if number:
        said["arrow"] = f"{first} => {name}({more})"
        said["arrow to a reference"] = f"{first} => (fn:{name}#{number})({more})"
    return said


def refused(text: str) -> bool:
    """Whether a program with this expression is refused by the names it calls, before anything compiles it."""
    try:
        verify(check(Program(parse(QUEUES + text, "f.demaq")), frozenset()))
    except ProgramInvalid as error:
        wanted = {"function-allowed", "function-arguments", "property-value"}
        return not wanted.isdisjoint(each.rule for each in error.facts["problems"])
    return False


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_reaches_outside_is_refused_in_rules_under_every_name(name: str) -> None:
    for how, expression in forms(name).items():
        assert refused(f"create rule r for a if (/x) then do enqueue {expression} into b"), how


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_reaches_outside_is_refused_in_values_of_properties(name: str) -> None:
    for how, expression in forms(name).items():
        assert refused(f"create property p as xs:string queue a value {expression}"), how


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_reaches_outside_is_refused_in_conditions_keys_and_values_set(name: str) -> None:
    call = forms(name)["plain"]
    assert refused(f"create rule r for a if ({call}) then do enqueue . into b")
    assert refused(f"create rule r for a if (/x) then do enqueue . into b with p value {call}")
    assert refused(
        "create property p as xs:string queue a create slicing s on p "
        f"create rule r for a if (/x) then do reset s key {call}"
    )
    assert refused(f"create rule r for a if (/x) then let $f := {call} return do enqueue $f into b")


@pytest.mark.parametrize("prefix", ["fn:", "math:", "map:", "array:", "xs:", ""])
def test_a_name_is_on_no_list_that_fits_what_reaches_outside(prefix: str) -> None:
    allowed = {name for name in OUTSIDE if functions.refusal(functions.canonical(prefix + name, {})) is None}
    ours = {"collection"} if prefix in ("", "fn:") else {"put"} if prefix in ("map:", "array:") else set()
    assert allowed == ours


@pytest.mark.parametrize(
    "call",
    [
        "xs:integer('1')",
        "xs:untypedAtomic('1')",
        "xs:dayTimeDuration('PT1S')",
        "map:put(map{}, 1, 2)",
        "array:head([1])",
        "math:pi()",
        "fn:abs(1)",
        "abs#1(1)",
        "(1, 2) => sum()",
        "parse-xml('<a/>')",
        "sort((2, 1), (), function($x) { -$x })",
    ],
)
def test_what_only_looks_at_its_arguments_is_allowed(call: str) -> None:
    assert not refused(f"create rule r for a if (/x) then do enqueue {call} into b")


#: Names on the list, each under the prefix that it has there.
LISTED = [f"{prefix}:{local}" for prefix, names in functions._BY_PREFIX.items() if prefix for local in sorted(names)]
LISTED += [f"fn:{local}" for local in sorted(functions._FN)] + [name for name in functions.OURS if ":" in name]
#: Of some namespaces, what rules may call there.
THERE = {
    FN: functions._FN,
    f"{FN}/map": functions._MAP,
    "urn:postroom:qs": {name.partition(":")[2] for name in functions.OURS},
}
ELSEWHERE = [*THERE, "http://saxon.sf.net/", "http://exslt.org/common", "", "&#102;n", " "]


@pytest.mark.parametrize("uri", ELSEWHERE)
@pytest.mark.parametrize("shape", ["after", "before", "outside", "reference"])
def test_a_name_on_the_list_is_refused_where_its_prefix_means_something_else(uri: str, shape: str) -> None:
    """A declaration holds for its whole element: also for what stands before it in the tag, and for what is inside."""
    names = [name for name in LISTED if name.partition(":")[2] not in THERE.get(uri, ())]
    said = []
    for name in names:
        prefix = name.partition(":")[0]
        forms = {
            "after": f'<t xmlns:{prefix}="{uri}">{{{name}()}}</t>',
            "before": f"<t a='{{{name}()}}' xmlns:{prefix} = '{uri}'/>",
            "outside": f'<o xmlns:{prefix}="{uri}"><t a="1">{{<u>{{{name}(1)}}</u>}}</t></o>',
            "reference": f'<t xmlns:{prefix}="{uri}">{{{name}#1}}</t>',
        }
        said.append(forms[shape])
    text = f"create rule r for a if (/x) then do enqueue ({', '.join(said)}) into b"
    with pytest.raises(ProgramInvalid) as caught:
        check(Program(parse(QUEUES + text, "f.demaq")), frozenset())
    assert [each.rule for each in caught.value.facts["problems"]] == ["function-allowed"] * len(names)


@pytest.mark.parametrize(
    "expression",
    [
        f'<t xmlns:f="{FN}">{{f:abs(1)}}</t>',
        f'<t xmlns:fn="urn:finance"><fn:x>{{abs(1), Q{{{FN}}}abs(2)}}</fn:x></t>',
        f'<t xmlns:fn="urn:finance"><u xmlns:fn="{FN}">{{fn:abs(1)}}</u></t>',
        '(<t xmlns:fn="urn:finance"/>, fn:abs(1))[2]',
        f"Q{{{FN}/map}}size(map {{}})",
    ],
)
def test_a_function_is_known_by_what_its_name_means(expression: str) -> None:
    assert not refused(f"create rule r for a if (/x) then do enqueue {expression} into b")


def test_every_name_on_the_list_is_a_function_that_saxon_has() -> None:
    missing = [name for name in sorted(functions._FN) if not _known(f"Q{{{FN}}}{name}")]
    for prefix, names in (("map", functions._MAP), ("array", functions._ARRAY), ("math", functions._MATH)):
        missing += [f"{prefix}:{name}" for name in sorted(names) if not _known(f"Q{{{FN}/{prefix}}}{name}")]
    missing += [
        f"xs:{name}" for name in sorted(functions._XS) if not _known(f"Q{{http://www.w3.org/2001/XMLSchema}}{name}")
    ]
    assert missing == []


def _known(name: str) -> bool:
    """Whether Saxon has a function of this name with some number of arguments."""
    uri, _, local = name[2:].partition("}")
    found = " or ".join(f"exists(function-lookup(QName('{uri}', '{local}'), {number}))" for number in range(6))
    return saxon().run(f"{found} or '{local}' = 'concat'", "<b/>").strip() == "true"


# --- at run time -------------------------------------------------------------------------------------------------


def ways(file: Path) -> dict[str, str]:
    uri, folder = file.as_uri(), file.parent.as_uri()
    include = '<a xmlns:x="http://www.w3.org/2001/XInclude"><x:include href="URI"/></a>'
    return {
        "doc": f"string(doc('{uri}'))",
        "doc-available": f"doc-available('{uri}')",
        "unparsed-text": f"unparsed-text('{uri}')",
        "unparsed-text, a path": f"unparsed-text('{file}')",
        "unparsed-text-lines": f"unparsed-text-lines('{uri}')",
        "unparsed-text-available": f"unparsed-text-available('{uri}')",
        "json-doc": f"json-doc('{uri}')",
        "collection": f"collection('{folder}') ! string(.)",
        "collection with a pattern": f"collection('{folder}?select=*') ! string(.)",
        "uri-collection": f"uri-collection('{folder}')",
        "function-lookup": f"function-lookup(QName('{FN}', 'unparsed-text'), 1)('{uri}')",
        "reference": f"unparsed-text#1('{uri}')",
        "transform": f"transform(map {{ 'stylesheet-location': '{uri}', 'source-node': / }})",
        "load-xquery-module": f"load-xquery-module('urn:x', map {{ 'location-hints': '{uri}' }})",
        "an entity": f"parse-xml('<!DOCTYPE a [<!ENTITY e SYSTEM \"{uri}\">]><a>&amp;e;</a>') ! string(.)",
        "XInclude": f"parse-xml('{include.replace('URI', uri)}') ! string(.)",
    }


WAYS = list(ways(Path("/x")))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("suffix", ["xml", "json", "txt"])
def test_a_query_past_all_checks_reads_no_file(
    way: str, suffix: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said = {"xml": "<a>canary</a>", "json": '{"a": "canary"}', "txt": "canary"}[suffix]
    file = tmp_path / f"file.{suffix}"
    file.write_text(said)
    try:
        saxon().run("parse-xml('<a/>')", "<b/>")  # a parser that has been used is used again, and may have forgotten
        answer = saxon().run(ways(file)[way], "<b/>")
    except QueryFailed:
        answer = ""
    assert "canary" not in answer
    assert file.name not in answer
    assert answer.strip() in ("", "false", '<?xml version="1.0" encoding="UTF-8"?>')


#: Whatever in XQuery tells what relative names are relative to, or where a query comes from.
FOLDERS = [
    "static-base-uri()",
    "resolve-uri('x')",
    "resolve-uri('../../x')",
    "base-uri(/)",
    "base-uri(<a/>)",
    "base-uri(document { <a/> })",
    "<a xml:base='x'>{()}</a> ! base-uri(.)",
    "document-uri(/)",
    "parse-xml('<a/>') ! (base-uri(.), document-uri(.))",
    "parse-xml-fragment('<a/>') ! base-uri(.)",
    "json-to-xml('{}') ! base-uri(.)",
    "analyze-string('a', 'a') ! base-uri(.)",
    "try { error() } catch * { $err:module, $err:description, $err:value, $err:additional }",
    "try { parse-xml('<a') } catch * { $err:module, $err:description, $err:additional }",
    "try { doc('x') } catch * { $err:module, $err:description }",
    "parse-xml('<a')",
    "parse-xml-fragment('<a')",
    "doc('x')",
    "doc('../x')",
    "unparsed-text('x')",
    "json-doc('x')",
    "collection('x')",
    "compare('a', 'b', 'x')",
    "sort((2, 1), 'x')",
    "1 +",
    "$nothing",
    "import module 'x' at 'y'; 1",
    "transform(map { 'stylesheet-location': 'x' })",
]


@pytest.mark.parametrize("query", FOLDERS)
def test_no_query_learns_in_which_folder_it_runs(query: str) -> None:
    try:
        said = saxon().run(query, "<b/>")
    except QueryFailed as error:
        said = f"{error} {error.what}"
    assert "file:" not in said.replace("file:/…", "")
    for folder in {os.getcwd(), str(Path.home()), os.path.dirname(functions.__file__), str(Path(sys.prefix))}:
        assert folder not in said


def test_a_failed_query_says_where() -> None:
    with pytest.raises(QueryFailed) as caught:
        saxon().run("1 +\n  $nothing", "<b/>")
    assert (caught.value.code, caught.value.line) == ("XPST0008", 2)
    assert str(caught.value).startswith("XPST0008: ")


def test_a_process_has_one_saxon_and_knows_its_own() -> None:
    assert saxon() is saxon()
    assert saxon().ours
    other = Saxon()
    other._process = os.getppid()
    assert not other.ours


def test_what_a_process_keeps_of_queries_is_bounded() -> None:
    mine = Saxon()
    for number in range(203):
        assert mine.run(f"{number} + 0", "<b/>").endswith(str(number))
    assert len(mine._queries) <= 201
