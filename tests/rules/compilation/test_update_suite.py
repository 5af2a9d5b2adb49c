"""The XQuery Update Test Suite of the W3C (XQUTS 1.0) over our rewriting, and what BaseX makes of the same updates.

The suite is not ours to keep: ``POSTROOM_XQUTS=FOLDER pytest -m slow`` runs it where it is, for example in a clone of
github.com/LeoWoerteler/XQUTS. Its queries update documents; here they update a copy of the document.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from lxml import etree

from postroom.engine.steps.effects import Arrival, Enqueue
from postroom.errors import PostroomError
from postroom.rules.compilation.compiler import compiled
from postroom.rules.evaluation.evaluate import evaluate_alone
from postroom.rules.language.definitions import Program
from postroom.rules.language.reader import parse
from postroom.rules.language.tokens import Unreadable

pytestmark = pytest.mark.slow

QUEUES = "create queue a kind basic mode persistent create queue b kind basic mode persistent\n"
CODE = re.compile(r"\b[A-Z]{4}[0-9]{4}\b")
#: Declarations that programs do not have, functions that update, files, and what other features of the suite need.
UNFIT = re.compile(r"import schema|validate|external|updating|revalidation|copy-namespaces|construction|put\s*\(")
#: They need a processor that knows types before it evaluates; a second document; or a document that is updated itself.
ELSEWHERE = re.compile(
    "stf-.*|relational-data-q7|complex-deletes-q14|id-insert-expr-044|id-rename-expr-018|id-transform-expr-0(28|29|30|31)"
)


def made(expression: str, document: str, prolog: str = "") -> str:
    """What a rule makes of an expression; of an error its code."""
    rule = f"create rule r for a if (true()) then do enqueue element Q{{}}o {{{expression}\n}} into b"
    try:
        plan = compiled(Program(parse(f"{prolog}\n{QUEUES}{rule}", "f.demaq")), 1, "m")
    except (Unreadable, PostroomError) as error:
        return next(iter(CODE.findall(str(error))), str(error))
    arrival = Arrival(0, "a", 100_000, "xml", None, document, "{}", 0, None, ())
    (action,) = evaluate_alone(plan, [arrival], {})[0]
    assert isinstance(action, Enqueue)
    if action.failed:
        return action.body.partition("<code>")[2].partition("</code>")[0]
    return canonical(action.body.partition(">")[2].removesuffix("</o>") if "</o>" in action.body else "")


def canonical(inside: str) -> str:
    """XML without what no reader sees: where a namespace is declared, and blanks at the ends of the whole."""
    try:
        root = etree.fromstring(f"<o>{inside.strip()}</o>")
        return re.sub(r"\s+", " ", etree.tostring(root, method="c14n", exclusive=True).decode())
    except etree.XMLSyntaxError:
        return inside


# --- the suite ---


def cases() -> list[tuple[str, str, str, str, list[str], list[str]]]:
    """Name, expression, document, prolog, results, and codes of errors, of every case that a rule can be."""
    folder = Path(os.environ.get("POSTROOM_XQUTS", "/nowhere"))
    if not (folder / "XQUTSCatalog.xml").exists():
        return []
    catalog = etree.parse(folder / "XQUTSCatalog.xml")
    space = {"c": "http://www.w3.org/2005/02/query-test-update"}
    sources = {source.get("ID"): folder / source.get("FileName") for source in catalog.iterfind(".//c:source", space)}
    found = []
    for case in catalog.iterfind(".//c:test-case", space):
        states, group = case.findall("c:state", space), case.get("FilePath")
        inputs = states[0].findall("c:input-file", space)
        if len(inputs) != 1 or len(states) > 2 or ELSEWHERE.fullmatch(case.get("name")):
            continue
        variable = inputs[0].get("variable")
        queries = [state.find("c:query", space).get("name") for state in states]
        texts = [query_of(folder / "Queries/XQuery" / group / f"{query}.xq", variable) for query in queries]
        prolog, update = parted(texts[0])
        errors = [error.text for error in case.iterfind(".//c:expected-error", space)]
        copies = re.search(r"\bcopy\s+\$", update)
        if UNFIT.search(texts[0]) or (len(states) == 2 and parted(texts[1])[0]) or not (copies or errors or texts[1:]):
            continue
        asked = texts[1] if len(texts) == 2 else f"${variable}"
        expression = (
            f"let ${variable} := (/) return ({update})"
            if copies
            else f"copy ${variable} := (/) modify ({update}) return ({asked})"
        )
        document = re.sub(r"<\?xml.*?\?>|<!DOCTYPE[^\[>]*(\[.*?\])?\s*>", "",
                          sources[inputs[0].text.strip()].read_text(errors="replace"), flags=re.DOTALL)  # fmt: skip
        files = [
            folder / "ExpectedTestResults" / group / file.text for file in case.iterfind(".//c:output-file", space)
        ]
        results = [canonical(re.sub(r"<\?xml.*?\?>", "", file.read_text(errors="replace"))) for file in files]
        found.append((case.get("name"), expression, document.strip(), prolog, results, errors))
    return found


def query_of(file: Path, variable: str) -> str:
    text = re.sub(r"\(:(?:[^:]|:(?!\)))*:\)", " ", file.read_text(errors="replace"), flags=re.DOTALL)
    return re.sub(rf"declare\s+variable\s+\${re.escape(variable)}(\s+as\s+[^;]*?)?\s+external\s*;", "", text).strip()


def parted(text: str) -> tuple[str, str]:
    """The declarations of a query, and the query."""
    body = r"(?:\{(?:[^{}]|\{[^{}]*\})*\}[^;]*)?"
    match = re.match(rf"((?:\s*(?:declare|import|xquery)\b[^;{{]*{body};)*)(.*)$", text, re.DOTALL)
    assert match is not None
    return match.group(1).strip(), match.group(2).strip()


def test_every_case_of_the_suite_that_a_rule_can_be_has_its_result() -> None:
    every = cases()
    if not every:
        pytest.skip("the XQuery Update Test Suite is not here: POSTROOM_XQUTS names its folder")
    different = []
    for name, expression, document, prolog, results, errors in every:
        told = made(expression, document, prolog)
        if told not in results + errors:
            different.append((name, told[:200], errors or results))
    assert len(every) > 450
    assert not different, "\n".join(map(str, different))


# --- BaseX ---

MESSAGE = (
    '<r k="1"><a>one</a><b x="2" y="3">two<c/></b>tail<!--note--><?go there?>'
    '<d xmlns="urn:d" xmlns:p="urn:p" p:z="4"/></r>'
)
TARGETS = ["$c", "$c/a", "$c/b", "$c/b/@x", "$c/@k", "$c//c", "$c/text()", "$c/comment()", "$c/*:d", "$c/*:d/@*", "()"]
NAMES = ['"n"', '"x"', 'QName("urn:p", "p:n")', 'QName("urn:other", "p:n")', 'QName("urn:d", "n")', '"1 2"', "()"]
SOURCES = [
    "<n/>",
    '"t"',
    "(1, 2)",
    "()",
    "(<n>5</n>, 'u')",
    "attribute z {9}",
    "attribute x {9}",
    "$c/a",
    "(<n/>, attribute z {1})",
]


#: Ours and theirs where an update has two errors: either may be told.
EITHER = {
    ("XUTY0010", "XUTY0004"),
    ("XUTY0011", "XUTY0004"),
    ("XPTY0004", "XUTY0012"),
    ("XQDY0074", "XUTY0012"),
    ("XQDY0074", "XUDY0023"),
}


def update(chance: random.Random) -> str:
    target, source = chance.choice(TARGETS), chance.choice(SOURCES)
    where = chance.choice(["into", "as first into", "as last into", "before", "after"])
    return chance.choice([
        f"delete node {target}",
        f"insert node {source} {where} {target}",
        f"replace node {target} with {source}",
        f"replace value of node {target} with {chance.choice(['5', '()', '(1, 2)', '<v>x</v>'])}",
        f"rename node {target} as {chance.choice(NAMES)}",
        f"if ($c/a) then delete node {target} else ()",
    ])  # fmt: skip


@pytest.mark.skipif(shutil.which("basex") is None, reason="BaseX is not installed (Debian: basex)")
def test_basex_makes_the_same_of_generated_updates(tmp_path: Path) -> None:
    chance = random.Random(25)
    updates = [", ".join(update(chance) for _ in range(chance.choice([1, 1, 2, 3]))) for _ in range(200)]
    queries = [f"copy $c := /r modify ({some}) return $c" for some in updates]
    caught = "\n,'\n=====\n',\n".join(
        f"try {{ serialize(document {{ <m>{MESSAGE}</m>/node() }} ! ({query}), map {{ 'indent': false() }}) }} "
        "catch * { string(local-name-from-QName($err:code)) }"
        for query in queries
    )
    (tmp_path / "all.xq").write_text(caught)
    words = ["basex", "-sindent=no", "-sitem-separator=", str(tmp_path / "all.xq")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    different = []
    for query, theirs in zip(queries, done.stdout.split("\n=====\n"), strict=True):
        ours = made(query, MESSAGE)
        told = theirs.strip() if CODE.fullmatch(theirs.strip()) else canonical(theirs)
        if ours != told and (ours, told) not in EITHER:
            different.append((query, ours, told))
    assert not different, "\n".join(map(str, different))
