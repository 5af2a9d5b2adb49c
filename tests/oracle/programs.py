"""Small programs and their inputs, drawn by hypothesis: everything that can meet in a step does meet here.

Bodies look like ``<m hop="2"><k>a</k><n>1</n></m>``. The keys ``k`` are few, so that slices collide; some ``n`` are no
numbers, so that rules and properties fail. What rules make has one hop less, so that programs come to rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hypothesis import strategies as st

from .evaluation import Value

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[T]], T]

KEYS = ("a", "b", "c")
HOP = "{xs:integer((//@hop, 1)[1]) - 1}"
ECHO = "later"
JSON = "maps"  # JSON has a queue of its own: a path over a map is an error, and an index need not find it


@dataclass(frozen=True)
class Input:
    queue: str
    body: str
    format: str
    properties: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True)
class Case:
    """A program, what is sent to it, and how it is run."""

    program: str
    inputs: tuple[Input, ...]
    before: int  # so many of the inputs are there before the first step
    size: int  # messages of a step
    split: int  # a seed for how a step is taken apart into chunks
    rounds: int  # after so many a task gives up settling

    def __repr__(self) -> str:
        lines = [f"    {each!r}" for each in self.inputs]
        how = f"before={self.before} size={self.size} split={self.split} rounds={self.rounds}"
        return "\n".join([f"{how}\n{self.program}", *lines])


@dataclass
class Property:
    name: str
    type: str
    fixed: bool
    queues: list[str] = field(default_factory=list)


@dataclass
class Names:
    """What rules may talk about."""

    queues: list[str]
    echo: bool
    json: bool
    properties: list[Property] = field(default_factory=list)
    slicings: dict[str, Property] = field(default_factory=dict)


# --- definitions -------------------------------------------------------------------------------------------------

_VALUES = {
    "string": [
        "//k",
        "(//k)[1]",
        "string((//k)[1])",
        "//@k",
        "qs:message()//k",
        'concat("x", (//k)[1])',
        "()",
        "/m/k",
        'if (//k = "b") then error() else (//k)[1]',
    ],
    "integer": ["//n", "(//n)[1]", "count(//k)", "1", "//k ! string-length(.)"],
    "boolean": ["true", "false", "exists(//b)", "(//n)[1]", '//k = "a"'],
    "decimal": ["//n", "count(//k) div 2", "(//n)[1]"],
}


def _queue(draw: Draw[str], name: str, others: list[str]) -> str:
    text = f"create queue {name} kind basic mode {draw(st.sampled_from(['persistent', 'transient']))}"
    text += draw(st.sampled_from(["", "", " priority 1", " priority 5", " priority -1"]))
    return text + _errorqueue(draw, [each for each in others if each != name])


def _errorqueue(draw: Draw[str], queues: list[str]) -> str:
    return draw(st.sampled_from(["", "", *(f" errorqueue {each}" for each in queues)]))


def _property(draw: Draw[str], number: int, names: Names) -> str:
    type = draw(st.sampled_from(["string", "string", "integer", "boolean", "decimal"]))
    flag = draw(st.sampled_from(["", " fixed", " inherited"]))
    made = Property(f"p{number}", type, flag == " fixed")
    text = f"create property {made.name} as xs:{type}{flag}"
    rest = list(names.queues)
    for _ in range(int(draw(st.sampled_from("12")))):
        count = int(draw(st.sampled_from("1234")))
        some, rest = rest[:count], rest[count:]
        if some:
            value = draw(st.sampled_from(_VALUES[type] if made.fixed else [*_VALUES[type], "", ""]))
            text += f" queue {', '.join(some)}" + (f" value {value}" if value else "")
            made.queues += some
    names.properties.append(made)
    return text


# --- what rules ask ----------------------------------------------------------------------------------------------


@dataclass
class Place:
    """The rule that is being made."""

    names: Names
    slicing: Property | None  # what its slicing is on, if it is for one
    draw: Draw[str]

    def one(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def queue(self) -> str:
        return self.one(*self.names.queues)

    def key(self) -> str:
        return self.one(*KEYS)

    def string_value(self) -> str:
        """A value that depends on the message alone; most of these an index can look for."""
        choices = [f'"{self.key()}"', "qs:message()//k", "qs:message()/m/k", "(qs:message()//k)[1]", "//k"]
        choices += [f'qs:property("{each.name}")' for each in self.names.properties if each.type == "string"]
        if self.slicing is not None and self.slicing.type == "string":
            choices += ["qs:slicekey()", "qs:slicekey()"]
        return self.one(*choices)

    def messages(self) -> str:
        """A sequence of messages, or of their parts."""
        queue = self.one("qs:queue()", *(f'qs:queue("{each}")' for each in self.names.queues))
        if self.slicing is not None and self.one("slice", "slice", "queue") == "slice":
            return f"qs:slice(){self.one('', '', '[//b]', '[1]', '[last()]', '/m', '//k')}"
        path = self.one("//k", "/m/k", "//@k", "//n")
        value = self.string_value()
        return self.one(
            queue,
            f"{queue}[{path} = {value}]",
            f"{queue}[{value} = {path}]",
            f"{queue}/m[k = {value}]",
            f"{queue}[m][{path} = {value}]",
            f"{queue}[{path} = {value}]/m",
            f"{queue}[{path} = {value} and //b]",
            f"{queue}[//b and {path} = {value}]",
            f"{queue}[{path} = {value} or //b]",
            f"{queue}[//b or {path} = {value}]",
            f'{queue}[//b and {path} = "a" or {path} = {value}]',
            f'{queue}[{path} = "a" and //b or //n = "1"]',
            f"{queue}[position() le 2 and {path} = {value}]",
            f"{queue}[{path} = {value}][last()]",
            f"{queue}[2]",
            f"{queue}[{path} = {value}]//k",
            f"({queue})[{path} = {value}]",
            f"(let $q := {queue} return $q[{path} = {value}])",
            f"(let $v := {value} return {queue}[{path} = $v])",
            f"(let $v := {value} let $q := {queue} return ($q[{path} = $v], $q[{path} = $v]))",
            f"(let $q := {queue} return ($q[{path} = {value}], $q[//b]))",
            f"(for $q in {queue} where $q{path} = {value} return $q)",
            f"({queue} ! .[{path} = {value}])",
        )

    def condition(self) -> str:
        choices = [
            "true()",
            "true()",
            f'//k = "{self.key()}"',
            "exists(//b)",
            "xs:integer((//n)[1]) gt 0",
            f'if (//k = "{self.key()}") then error() else true()',
            f'if (//k = "{self.key()}") then error(QName("urn:mine", "my:own"), "no") else true()',
            f'qs:property("queue") = "{self.queue()}"',
            'qs:property("rule") = "r0"',
            'exists(qs:property("cause"))',
            'qs:property("sender") = "sender"',
            f"exists({self.messages()})",
            f"count({self.messages()}) gt 1",
            f"count({self.messages()}) mod 2 eq 0",
            f"not({self.messages()})",
        ]
        if self.names.properties:
            name = self.one(*(each.name for each in self.names.properties))
            choices += [f'exists(qs:property("{name}"))', f'qs:property("{name}") = {self.literal(name)}']
        return self.one(*choices)

    def literal(self, name: str) -> str:
        type = next(each.type for each in self.names.properties if each.name == name)
        return {"string": '"a"', "integer": "1", "boolean": "true()", "decimal": "0.5"}[type]

    # --- what they do ---

    def element(self, inner: str = "//k") -> str:
        parts = [
            "",
            "<b/>",
            f"<k>{self.key()}</k>",
            f"{{({inner})[1] ! <k>{{string(.)}}</k>}}",
            f"{{({inner})[1] ! <k>{{string(.)}}</k>}}",
            "{//k}",
            "{//n}",
            f"<n>{{count({self.messages()})}}</n>",
            f"<n>{{count({self.messages()})}}</n>",
            f"<w>{{{self.messages()} ! string((descendant-or-self::k)[1])}}</w>",
        ]
        head = self.one("", "", ' k="{(//k)[1]}"', ' k="a"')
        return f'<m hop="{HOP}"{head}>{self.one(*parts)}{self.one(*parts)}</m>'

    def with_clauses(self, queue: str) -> str:
        settable = [each for each in self.names.properties if queue in each.queues and not each.fixed]
        text = ""
        if settable:
            name = self.one(*(each.name for each in settable))
            text = self.one(
                "", f" with {name} value {self.explicit(name)}", f" with {name} value {self.explicit(name)}"
            )
        return text + self.one("", "", "", "", " with u value 5", ' with u value "x"', " with u value //b = //b")

    def explicit(self, name: str) -> str:
        choices = [self.literal(name), "(//k)[1]", "(//n)[1]", "//k", "()"]
        choices += [f'qs:property("{each.name}")' for each in self.names.properties]
        if self.slicing is not None:
            choices.append("qs:slicekey()")
        return self.one(*choices)

    def enqueue(self, inner: str = "//k") -> str:
        queue, body = self.queue(), self.element(inner)
        body = self.one(
            body,
            body,
            body,
            body,
            f"document {{ {body} }}",
            f"({body}, //b)",
            "(//k)",
            "string((//k)[1])",
            f"count({self.messages()})",
            'text { "a" }',
        )
        if self.names.echo and self.one("echo", *"123456") == "echo":
            seconds = self.one("0", "0", "5", '"soon"')
            return f'do enqueue {body} into {ECHO} with target value "{queue}" with timeout value {seconds}'
        if self.names.json and self.one("json", *"123456") == "json":
            return f'do enqueue map {{ "k": string((//k)[1]), "n": count({self.messages()}) }} into {JSON}'
        return f"do enqueue {body} into {queue}{self.with_clauses(queue)}"

    def reset(self) -> str:
        choices = ["do reset"] if self.slicing is not None else []
        for name, on in self.names.slicings.items():
            choices += [f"do reset {name} key {self.literal(on.name)}"]
            choices += [f"do reset {name} key ({self.explicit(on.name)})[1]"]
        return self.one(*choices)

    def action(self) -> str:
        choices = ["enqueue"] * 5 + ["for", "for"]
        if self.names.slicings:
            choices += ["reset", "reset"]
        kind = self.one(*choices)
        if kind == "enqueue":
            return self.enqueue()
        if kind == "reset":
            return self.reset()
        return f"for $x in ({self.messages()}, 1 to 2)[position() le 3] return {self.enqueue()}"

    def body(self) -> str:
        then = self.action()
        for _ in self.one("", "", "1", "11"):
            then = f"{then}, {self.action()}"
        condition = f"if ({self.condition()}) then ({then})"
        if self.one("one", "two") == "two":
            condition = f"if ({self.condition()}) then ({condition}{self.one('', f' else {self.action()}')})"
        return f"if ((//@hop, 0)[1] > 0) then {condition}"

    def json_body(self) -> str:
        """A rule over maps."""
        path = self.one("//k", "/m/k", "//@k", "//n")
        count = self.one(f'count(qs:queue("{self.queue()}")[{path} = "{self.key()}"])', f'count(qs:queue("{JSON}"))')
        condition = self.one("true()", f'?k = "{self.key()}"', "xs:integer(?n) gt 0", f"{count} mod 2 eq 0")
        action = f'do enqueue <m hop="{self.one(*"01")}"><k>{{?k}}</k><n>{{{count}}}</n></m> into {self.queue()}'
        again = f'(if (?again) then do enqueue map {{ "k": ?k, "n": {count} }} into {JSON}, {action})'
        return f"if ({condition}) then {self.one(action, again)}"


# --- whole cases -------------------------------------------------------------------------------------------------


@st.composite
def programs(draw: Draw[str]) -> tuple[str, Names]:
    queues = [f"q{number}" for number in range(int(draw(st.sampled_from("2345"))))]
    names = Names(queues, draw(st.sampled_from("nny")) == "y", draw(st.sampled_from("nny")) == "y")
    lines = [f"create module made{_errorqueue(draw, queues)}"]
    lines += [f"create system{each}" for each in [_errorqueue(draw, queues)] if each]
    lines += [_queue(draw, name, queues) for name in queues]
    if names.echo:
        lines.append(f"create queue {ECHO} kind echo mode persistent{_errorqueue(draw, queues)}")
    if names.json:
        lines.append(f"create queue {JSON} kind basic mode persistent{_errorqueue(draw, queues)}")
    lines += [_property(draw, number, names) for number in range(int(draw(st.sampled_from("01223"))))]
    for number in range(int(draw(st.sampled_from("0112"))) if names.properties else 0):
        on = draw(st.sampled_from([each.name for each in names.properties]))
        names.slicings[f"s{number}"] = next(each for each in names.properties if each.name == on)
        lines.append(f"create slicing s{number} on {on}")
    for number in range(int(draw(st.sampled_from("1223456")))):
        target = draw(st.sampled_from([*queues, *names.slicings, *names.slicings]))
        place = Place(names, names.slicings.get(target), draw)
        lines.append(f"create rule r{number} for {target}{_errorqueue(draw, queues)}\n{place.body()}")
    if names.json:
        place = Place(names, None, draw)
        lines.append(f"create rule maps for {JSON}{_errorqueue(draw, queues)}\n{place.json_body()}")
    return "\n".join(lines), names


@st.composite
def inputs(draw: Draw[str], names: Names) -> Input:
    queue = draw(st.sampled_from(names.queues))
    given: list[tuple[str, Value]] = []
    for each in names.properties:
        if queue in each.queues and draw(st.sampled_from("nnnny")) == "y":
            given.append((each.name, draw(st.sampled_from(KEYS)) if each.type == "string" else 1))
    kind = draw(st.sampled_from(["xml"] * 8 + ["text"] + ["json"] * names.json))
    if kind == "text":
        return Input(queue, draw(st.sampled_from(KEYS)), "text", tuple(given))
    if kind == "json":
        more = draw(st.sampled_from(["", ', "n": 1', ', "n": "x"', ', "again": true']))
        return Input(JSON, f'{{"k": "{draw(st.sampled_from(KEYS))}"{more}}}', "json")
    head = draw(st.sampled_from(["", "", ' k="a"', ' k="b"']))
    keys = draw(st.sampled_from(["", "a", "a", "a", "b", "b", "c", "ab", "bc", "ba"]))
    content = "".join(f"<k>{key}</k>" for key in keys) + draw(
        st.sampled_from(["", "<n>1</n>", "<n>1</n>", "<n>2</n><b/>", "<n>x</n>", "<b/>"])
    )
    return Input(queue, f'<m hop="{draw(st.sampled_from("112"))}"{head}>{content}</m>', "xml", tuple(given))


@st.composite
def cases(draw: Draw[Any]) -> Case:
    program, names = draw(programs())
    sent = draw(st.lists(inputs(names), min_size=1, max_size=12))
    return Case(
        program,
        tuple(sent),
        draw(st.integers(1, len(sent))),
        draw(st.sampled_from([1, 2, 5, 100])),
        draw(st.integers(0, 1000)),
        draw(st.sampled_from([64, 64, 3, 1])),
    )
