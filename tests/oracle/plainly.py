"""Rules against Saxon alone: a generated rule, its messages and its store, once through our translation, indexes and
shared documents, and once as plain XQuery with every queue a plain sequence.

A case is a tree of templates, so that one that fails can be made smaller: ``smallest`` replaces parts by their parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from types import SimpleNamespace
from typing import cast

from postroom.engine.steps.effects import Document, Effects, Enqueue, Granule
from postroom.errors import ProgramInvalid
from postroom.model.message import Stored
from postroom.rules import entries as admission
from postroom.rules.compilation.compiler import compiled
from postroom.rules.compilation.plan import Plan
from postroom.rules.entries import Candidate, Entry
from postroom.rules.evaluation.arrivals import arrivals_of
from postroom.rules.evaluation.evaluate import evaluate_chunk
from postroom.rules.evaluation.xquery import QueryFailed, saxon
from postroom.rules.language.definitions import Program
from postroom.rules.language.reader import parse
from postroom.store.kernel.transaction import Transaction

DEFINITIONS = """create queue a kind basic mode persistent create queue b kind basic mode persistent
create queue c kind basic mode persistent create queue out kind basic mode persistent
create property p as xs:string queue a value string((//p)[1]) create property n as xs:integer queue a value count(//n)
create slicing s on p
"""


@dataclass
class Node:
    """A template with its parts. ``@`` and a number stand for a part, ``%`` and a number for a primary one."""

    text: str
    parts: list[Node] = field(default_factory=list)
    sort: str = "n"  # nodes, values, actions

    def said(self, plain: bool) -> str:
        text = self.text.replace("~", " else ()" if plain else "")
        if self.sort == "a" and "do enqueue" in text and plain:
            text = text.replace("do enqueue", "qs:put((").replace(" into out", "))")
        return re.sub(r"([@%])(\d)", lambda found: self._part(found[1], int(found[2]), plain), text)

    def _part(self, mark: str, number: int, plain: bool) -> str:
        part = self.parts[number]
        said = part.said(plain)
        return f"({said})" if mark == "%" and part.parts else said

    def walk(self) -> Iterator[Node]:
        yield self
        for part in self.parts:
            yield from part.walk()


@dataclass
class Case:
    body: Node
    target: str  # of the rule: a, or the slicing s
    ordered: bool
    store: dict[str, list[str]]  # queue to bodies; the last of a is the message
    declared: tuple[Node, ...] = ()  # what the program declares

    def prolog(self, plain: bool = False) -> str:
        return "\n".join(each.said(plain) for each in self.declared)

    def rule(self, plain: bool = False) -> str:
        return f"if (true()) then ({self.body.said(plain)}){' else ()' if plain else ''}"

    def __str__(self) -> str:
        stored = "\n".join(f"{queue}: {body}" for queue, bodies in self.store.items() for body in bodies)
        return f"{self.prolog()}\ncreate rule r for {self.target} {self.rule()}\n{stored}"


# --- making them -------------------------------------------------------------------------------------------------

VALUES = ["1", "2", "n1", " 1", "é", ""]
STEPS = [
    "/r/id",
    "//n",
    "/r/@k",
    "/r",
    "/*",
    "//id/..",
    "/r/text()",
    "/r/(id|n)",
    "//*:id",
    "/descendant::n",
    "[r]/r/id",
]
PREDICATES = [
    *("[r/id = @1]", "[//id = @1]", "[@1 = r/id]", "[.//n = @1 and r]", "[r and //id = @1]", "[r/@k = @1]"),
    *(
        "[r/id = @1 or r/n = @2]",
        "[not(r/id = @1)]",
        "[r/id != @1]",
        "[every $x in r/n satisfies $x = @1 and r/id = @2]",
    ),
    *(
        "[if (r/n) then r/n else r/id and r/id = @1]",
        "[r/n, r/n and r/id = @1 and r]",
        "[some $y in r/n satisfies $y = @1]",
    ),
    *(
        "[let $z := @1 return r/id = $z]",
        "[r/id = @1]/r[n = @2]",
        "[*:r/*:id = @1]",
        "[r[n]/id = @1]",
        "[r/id = @1][r/n]",
    ),
]
PLACES = ["(%0)[1]", "(%0)[last()]", "%0[1]", "%0[r/id = @1][1]", "%0[r/id = @1 and position() = 1]"]
NAMES = ["$x", "$y", "$z"]


class Maker:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.one = self.random.random() < 0.6  # one source of nodes: then their order is said
        self.sources = [self.random.choice(["b", "c", "a"])] if self.one else ["a", "b", "b", "c"]
        self.target = self.random.choice(["a", "a", "s"])
        self.functions: list[str] = []  # that may be called
        self.variables: dict[str, str] = {}

    def case(self) -> Case:
        store = {queue: [self.document() for _ in range(self.random.randint(0, 4))] for queue in "abc"}
        store["a"].append(self.document(own=True))
        declared = tuple(self.declarations()) if self.random.random() < 0.5 else ()
        return Case(self.actions(3, dict(self.variables)), self.target, self.one, store, declared)

    def declarations(self) -> Iterator[Node]:
        """Namespaces first, then variables and functions, each of which may call those before it."""
        if self.random.random() < 0.3:
            yield Node('declare default element namespace "urn:n";', [], "d")
        yield Node('declare namespace q = "urn:n";', [], "d")
        target, self.target = self.target, "a"  # a function has no slice
        yield Node(f'declare variable $g := "{self.random.choice(VALUES)}";', [], "d")
        yield Node("declare variable $q:h := (1, 2) ! string(.);", [], "d")
        for name in self.random.sample(["local:f", "q:f", "local:g"], self.random.randint(1, 3)):
            known = {"$g": "s", "$q:h": "s", "$x": "n"}
            yield Node(f"declare function {name}($x) {{ @0 }};", [self.nodes(2, known)], "d")
            self.functions.append(name)
        self.variables = {"$g": "s", "$q:h": "s"}
        self.target = target

    def called(self, depth: int, scope: dict[str, str]) -> Node:
        """A call of a declared function, in one of the ways in which it can be written."""
        name = self.random.choice(self.functions)
        forms = [
            f"{name}(@0)",
            f"((@0) => {name}())",
            f"for-each((@0), {name}#1)",
            f"(let $f := {name}(?) return $f(@0))",
        ]
        forms += [f"apply({name}#1, [(@0)])"]
        if name.startswith("q:"):
            forms.append(f"Q{{urn:n}}{name[2:]}(@0)")
            forms.append(f'<r xmlns:w="urn:n">{{w:{name[2:]}(@0)}}</r>/node()')
        return Node(self.random.choice(forms), [self.nodes(depth - 1, scope)])

    def document(self, own: bool = False) -> str:
        choose = self.random.choice
        inside = "".join(
            f"<{name}>{choose(VALUES)}</{name}>" for name in self.random.choices(["id", "n"], k=choose([0, 1, 2, 3]))
        )
        key = f' k="{choose(VALUES)}"' if self.random.random() < 0.3 else ""
        space = ' xmlns="urn:n"' if self.random.random() < 0.2 else ""
        return f"<r{space}{key}>{inside}{'<p>' + choose(['1', 'n1']) + '</p>' if own else ''}</r>"

    def actions(self, depth: int, scope: dict[str, str]) -> Node:
        def node(text: str, *parts: Node) -> Node:
            return Node(text, list(parts), "a")

        kind = (
            self.random.choice(["put", "put", "put", "let", "for", "typeswitch", "switch", "if", "list"])
            if depth
            else "put"
        )
        if kind == "put":
            return self.put(depth + 1, scope)
        name = self.random.choice(NAMES)
        some = self.nodes(depth, scope)
        inner = self.actions(depth - 1, {**scope, name: "n"})
        outer = self.actions(depth - 1, scope)
        if kind == "let":
            return node(f"let {name} := @0 return @1", some, inner)
        if kind == "for":
            return node(f"for {name} in @0 return @1", some, inner)
        if kind == "typeswitch":
            return node(
                f"typeswitch (@0) case {name} as element()+ return @1 case item() return @2 default {name} return @1",
                *(some, inner, outer),
            )
        if kind == "switch":
            return node(
                'switch (string((@0)[1])) case "1" return @1 default return @2', some, outer, self.put(depth, scope)
            )
        if kind == "if":
            text = self.random.choice(["(if (exists(@0)) then @1~)", "(if (exists(@0)) then @1 else @2)"])
            return node(text, some, outer, self.put(depth, scope))
        return node("(@0, @1)", outer, self.put(depth, scope))

    def put(self, depth: int, scope: dict[str, str]) -> Node:
        kind = self.random.randrange(6)
        if kind == 0 and scope:
            return Node(f"do enqueue {self.random.choice(sorted(scope))} into out", [], "a")
        if kind == 1:
            name = self.random.choice(NAMES)
            return Node(
                f"let {name} := <k>{{@0}}</k> return do enqueue {name} into out", [self.items(depth, scope)], "a"
            )
        if kind == 2:
            return Node("do enqueue @0 into out", [self.nodes(depth, scope)], "a")
        if kind == 3:
            return Node(
                'do enqueue <e xmlns="urn:n" a="{count(@0)}">{@1}</e> into out',
                [self.nodes(depth, scope), self.items(depth, scope)],
                "a",
            )
        return Node("do enqueue <e>{@0}</e> into out", [self.items(depth, scope)], "a")

    def items(self, depth: int, scope: dict[str, str]) -> Node:
        """Something for the content of an element: every item apart."""
        return Node("for $i in (@0) return <i>{$i}</i>", [self.anything(depth, scope)])

    def anything(self, depth: int, scope: dict[str, str]) -> Node:
        if depth and self.random.random() < 0.25:
            return Node("(@0, @1)", [self.anything(depth - 1, scope), self.anything(depth - 1, scope)], "x")
        return self.nodes(depth, scope) if self.random.random() < 0.6 else self.values(depth, scope)

    def nodes(self, depth: int, scope: dict[str, str]) -> Node:
        choose = self.random.choice
        known = [name for name, sort in scope.items() if sort == "n"]
        if depth <= 0 or self.random.random() < 0.15:
            if known and self.random.random() < 0.5:
                return Node(choose(known))
            return self.source()
        kind = choose(["step", "where", "where", "where", "where", "bind", "bind", "bind", "place", "constructed"])
        if self.functions and self.random.random() < 0.25:
            return self.called(depth, scope)
        if kind == "step":
            base = self.nodes(depth - 1, scope) if self.random.random() < 0.5 else self.source()
            return Node(f"%0{choose(STEPS)}", [base])
        if kind == "where" or (kind == "place" and self.one):
            base = self.nodes(0, scope) if self.random.random() < 0.8 else self.nodes(depth - 1, scope)
            values = [self.values(depth - 2, scope), self.values(0, scope)]
            return Node(choose(PLACES) if kind == "place" else f"%0{choose(PREDICATES)}", [base, *values])
        if kind == "constructed" and not self.one:
            return self.constructed(depth, scope)
        return self.bound(depth, scope, "n")

    def source(self) -> Node:
        queue = self.random.choice(self.sources)
        leaves = [f'qs:queue("{queue}")', "qs:queue()" if queue == "a" else f'qs:queue("{queue}")']
        if not self.one:
            leaves += ["qs:message()", *(["qs:slice()"] if self.target == "s" else [])]
        return Node(self.random.choice(leaves))

    def constructed(self, depth: int, scope: dict[str, str]) -> Node:
        texts = [
            "<r>{@0}</r>",
            '<r xmlns="urn:n">{@0}</r>',
            '<r xmlns:q="urn:n"><q:id>{@0}</q:id></r>',
            "element r { @0 }",
        ]
        texts += ['<r xmlns="urn:n"><id xmlns="">{@0}</id></r>', '<r xmlns:xs="urn:n">{qs:property("n"), @0}</r>']
        return Node(self.random.choice(texts), [self.items(depth - 1, scope)])

    def bound(self, depth: int, scope: dict[str, str], sort: str) -> Node:
        name, other = self.random.sample(NAMES, 2)
        some = self.nodes(depth - 1, scope) if self.random.random() < 0.7 else self.source()
        value = self.values(depth - 1, scope)

        def inner(**more: str) -> Node:
            known = {**scope, **{(name if key == "name" else other): kind for key, kind in more.items()}}
            return self.nodes(depth - 1, known) if sort == "n" else self.values(depth - 1, known)

        forms = {
            f"let {name} := @0 return @1": (some, inner(name="n")),
            f"let {name} := @0, {other} := {name} return @1": (some, inner(name="n", other="n")),
            f"let {name} := @0 return @1 ": (value, inner(name="s")),
            f"for {name} in @0 return @1": (some, inner(name="n")),
            f"for {name} at {other} in @0 return @1": (some, inner(name="n", other="s")),
            f"for {name} in @0 let {other} := @1 return @2": (value, some, inner(name="s", other="n")),
            f"for {name} in @0 count {other} return @1": (some, inner(name="n", other="s")),
            f"for {name} in @0 group by {other} := string({name}) order by {other} return @1": (
                some,
                inner(name="n", other="s"),
            ),
            f"let {name} := @0 for {other} in (1, 2) group by {other} return @1": (some, inner(name="n", other="s")),
            f"for tumbling window {name} in @0 start {other} when true() return @1": (some, inner(name="n", other="n")),
            f"for sliding window {name} in @0 start at {other} when true() only end when true() return @1": (
                some,
                inner(name="n", other="s"),
            ),
            f"function({name}) {{ @1 }}(@0)": (some, inner(name="n")),
            f"(@0) ! (let {name} := . return @1)": (some, inner(name="n")),
            f"for-each(@0, function({name}) {{ @1 }})": (some, inner(name="n")),
            f"typeswitch (@0) case {name} as element()+ return @1 case node() return @2 default {name} return @1": (
                some,
                inner(name="n"),
                inner(),
            ),
            'switch (string((@0)[1])) case "1" return @1 default return @2': (some, inner(), inner()),
            "if (@0 = @1) then @2 else @3": (value, value, inner(), inner()),
            "try { @0 } catch err:FOER0000 { @1 } catch * { @1 }": (inner(), inner()),
            "try { error(xs:QName('err:XX'), 'x', @0) } catch err:XX { $err:value[. instance of node()], @1 }": (
                some,
                inner(),
            ),
        }
        if not self.one:
            forms.pop(f"for {name} at {other} in @0 return @1")
            forms.pop(f"for {name} in @0 count {other} return @1")
        text = self.random.choice(list(forms))
        return Node(f"({text})", list(forms[text]), sort)

    def values(self, depth: int, scope: dict[str, str]) -> Node:
        choose = self.random.choice
        known = [name for name, sort in scope.items() if sort == "s"]
        leaves = [f'"{choose(VALUES)}"', "qs:message()//id", "qs:message()/r/n", 'qs:property("p")', *known, *known]
        leaves += ["qs:slicekey()"] if self.target == "s" else []
        if depth <= 0 or self.random.random() < 0.4:
            return Node(choose(leaves), [], "s")
        kind = choose(["bind", "some", "count", "text", "union", "template"])
        if kind == "template":
            text = "``[a`{(@0) ! string(.)}`]]`{count(@1)}`]``"
            return Node(text, [self.nodes(depth - 1, scope), self.nodes(depth - 1, scope)], "s")
        if kind == "bind":
            return self.bound(depth, scope, "s")
        if kind == "some":
            name = choose(NAMES)
            inner = self.nodes(depth - 1, {**scope, name: "s"})
            return Node(
                f"({choose(['some', 'every'])} {name} in @0 satisfies exists(@1))", [self.values(0, scope), inner], "s"
            )
        if kind == "union":
            operator = choose(["|", "intersect", "except"])
            return Node(f"count(%0 {operator} %1)", [self.nodes(depth - 1, scope), self.nodes(depth - 1, scope)], "s")
        text = "count(@0)" if kind == "count" else "((@0) ! string(.))"
        return Node(text, [self.nodes(depth - 1, scope)], "s")


# --- both answers ------------------------------------------------------------------------------------------------


def plan_of(case: Case) -> Plan:
    text = f"{case.prolog()}\n{DEFINITIONS}create rule r for {case.target} {case.rule()}"
    return compiled(Program(parse(text, "f.demaq")), 1, "m")


def engine(case: Case) -> list[str] | None:
    """What the engine enqueues; None if the message fails."""
    plan = plan_of(case)
    stored: list[Stored] = []
    entries: dict[int, list[tuple[int, str]]] = {}
    base: dict[Granule, list[Document]] = {}
    numbers = {name: number for number, name in enumerate(plan.indexes)}
    for queue, bodies in case.store.items():
        for place, body in enumerate(bodies, 1):
            key = 100_000 + len(stored)
            candidate = Candidate(Document(0, "xml", None, body), {}, {})
            (entry,) = admission.admit(plan, plan.target(queue), [candidate])
            assert isinstance(entry, Entry), entry
            stored.append(Stored(key, queue, 0, None, None, "xml", body, b"", entry.properties, None, key, place, 0))
            entries[key] = [(numbers[name], value) for name, value in entry.entries]
            document = Document(key, "xml", None, body, place)
            granules = [Granule("queue", queue), *(Granule("index", *each) for each in entry.entries)]
            for granule in [*granules, *(Granule("slice", *each) for each in entry.slices)]:
                base.setdefault(granule, []).append(document)
    known = SimpleNamespace(ids=lambda kind: numbers, values=lambda keys: [entries[key] for key in keys])
    current = [each for each in stored if each.queue == "a"][-1]
    arrivals = arrivals_of(plan, cast(Transaction, SimpleNamespace(slices=known)), [current])
    found, unsettled = evaluate_chunk(plan, arrivals, base)
    assert not unsettled
    return _bodies(found[0])


def _bodies(effects: Effects) -> list[str] | None:
    made = [each for each in effects if isinstance(each, Enqueue)]
    if any(each.failed and "NullPointerException" in each.body for each in made):
        raise Broken
    return None if any(each.failed for each in made) else [each.body for each in made]


_PLAIN = """declare namespace qs = "urn:postroom:qs"; PROLOG
declare variable $qs:all := (/Q{}all/Q{}d ! document { node() });
declare variable $qs:b := subsequence($qs:all, 1, BBB); declare variable $qs:c := subsequence($qs:all, 1 + BBB, CCC);
declare variable $qs:a := subsequence($qs:all, 1 + BBB + CCC);
declare function qs:queue($n as xs:string) { if ($n = "a") then $qs:a else if ($n = "b") then $qs:b else $qs:c };
declare function qs:queue() { $qs:a };
declare function qs:message() { $qs:a[last()] };
declare function qs:slicekey() { string((qs:message()//p)[1]) };
declare function qs:property($n as xs:string) {
  if ($n = "p") then qs:slicekey() else count(qs:message()//n) };
declare function qs:slice() { $qs:a[string((.//p)[1]) = qs:slicekey()] };
declare function qs:put($v) {
  if ($v instance of element() or $v instance of document-node()) then element Q{}put {$v} else error() };
(try { element Q{}g { element Q{}all { qs:message() ! (RULE) } } } catch * { element Q{}g { element Q{}failed {} } })
/node()"""


def plainly(case: Case, typed: bool = False, eager: bool = False) -> list[str] | None:
    """What Saxon makes of the same rule over plain sequences.

    ``typed`` if it is told of what types properties are, ``eager`` if functions use their arguments.
    """
    counts = {queue: str(len(bodies)) for queue, bodies in case.store.items()}
    query = _PLAIN.replace("BBB", counts["b"]).replace("CCC", counts["c"]).replace("RULE", case.rule(plain=True))
    prolog = case.prolog(plain=True)
    query = query.replace("PROLOG", _FUNCTION.sub(_USES, prolog) if eager else prolog)
    if typed:
        query = query.replace('qs:property("p")', "qs:slicekey()").replace("slicekey() {", "slicekey() as xs:string {")
    documents = "".join(f"<d>{body}</d>" for queue in "bca" for body in case.store[queue])
    said = saxon().run(query, f"<all>{documents}</all>")
    if said == "<failed/>":
        return None
    return [part.removesuffix("</all>").removesuffix("</put>") for part in said.split("<put>")[1:]]


class Broken(Exception):
    """Saxon itself failed (inline functions in a typeswitch are one cause): that says nothing of us."""


@dataclass
class Differs(Exception):
    case: Case
    ours: list[str] | None
    plain: list[str] | None

    def __str__(self) -> str:
        return f"{self.case}\nours:  {self.ours}\nplain: {self.plain}"


def difference(case: Case) -> Differs | None:
    """How the two answers differ. Where the plain one is an error, an index may have kept ours from seeing it.

    Where ours is one, Saxon may have seen by the types of properties alone that an expression must fail, also one that
    nobody reads: then it sees the same in the plain rule once it is told the types. Or it has evaluated an argument
    that its function does not use, as the language allows: then the plain rule fails, too, once functions use theirs.
    """
    try:
        plain = plainly(case)
    except QueryFailed:  # not in the language
        return None
    try:
        ours = engine(case)
    except Broken:
        return None
    except (QueryFailed, ProgramInvalid) as error:
        return Differs(case, [f"not compiled: {error}"], plain)
    if plain is None or _normal(ours, case.ordered) == _normal(plain, case.ordered):
        return None
    may_fail = ours is None and (_is_mistyped(case) or _has_unused_failure(case))
    return None if may_fail else Differs(case, ours, plain)


def _is_mistyped(case: Case) -> bool:
    try:
        return plainly(case, typed=True) is None
    except QueryFailed as error:
        return error.code.startswith("XPTY")


def _has_unused_failure(case: Case) -> bool:
    try:
        return plainly(case, eager=True) is None
    except QueryFailed:
        return False


#: A declared function, which may not use what it is given.
_FUNCTION = re.compile(r"(declare function \S+\(\$x\) \{)(.*)(\};)")
_USES = r'\1 if (string-join($x ! string(.)) = "no such text") then error() else (\2) \3'


def _normal(bodies: list[str] | None, ordered: bool) -> object:
    if bodies is None or ordered:
        return bodies
    return sorted(tuple(sorted(re.split("(?=<i>)|(?<=</i>)", body))) for body in bodies)


def smallest(found: Differs) -> Differs:
    """The same fault in as little as possible."""
    while True:
        for smaller in _smaller(found.case):
            less = difference(smaller)
            if less is not None:
                found = less
                break
        else:
            return found


def _smaller(case: Case) -> Iterator[Case]:
    for queue, bodies in case.store.items():
        for number in range(len(bodies) - (queue == "a")):
            yield replace(case, store={**case.store, queue: bodies[:number] + bodies[number + 1 :]})
    for number, node in enumerate(case.body.walk()):
        for part in node.parts:
            if (part.sort == "a") == (node.sort == "a"):
                yield replace(case, body=_replaced(case.body, node, part))
        if node.parts and node.sort != "a":
            yield replace(case, body=_replaced(case.body, node, Node('"1"' if node.sort == "s" else "()")))
        assert number >= 0
    for number, each in enumerate(case.declared):
        yield replace(case, declared=case.declared[:number] + case.declared[number + 1 :])
        for node in (node for node in each.walk() if node.parts and node.sort != "d"):
            for part in (*node.parts, Node("()")):
                smaller = _replaced(each, node, part)
                yield replace(case, declared=(*case.declared[:number], smaller, *case.declared[number + 1 :]))


def _replaced(tree: Node, old: Node, new: Node) -> Node:
    if tree is old:
        return new
    return Node(tree.text, [_replaced(part, old, new) for part in tree.parts], tree.sort)


def first_difference(seeds: Sequence[int] | range) -> Differs | None:
    for seed in seeds:
        found = difference(Maker(seed).case())
        if found is not None:
            return smallest(found)
    return None
