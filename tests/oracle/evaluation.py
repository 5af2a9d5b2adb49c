"""One expression over one message: the oracle's own way from QML to XQuery, as plain as it can be.

Our functions become functions of XQuery over one small document, made for this one evaluation. An action becomes an
element. Nothing is shared with the compiler but the reader of rule bodies and the door to Saxon.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

from postroom.rules.evaluation.xquery import saxon
from postroom.rules.language.definitions import Program, RuleDefinition
from postroom.rules.language.expression import read

Value = str | int | bool

_FAILED = "<failed code='{local-name-from-QName($err:code)}'/>"
# Each part of an action by itself, so that all errors of a rule are known. The step makes Saxon finish a part before it
# writes it: what is written it cannot take back.
_TRY, _CATCH = "(try {", f"}} catch * {{ {_FAILED} }})/."
_OURS = frozenset({"PR0001", "PR0002"})
_OF_PARTS = _OURS | {"FORG0001"}  # what can go wrong in a part of an action of a generated program
_PROLOG = """
declare namespace qs = "urn:oracle";
declare variable $qs:c := /c;
declare variable $qs:m := qs:read($qs:c/message/d);
declare function qs:read($d as element()) as item()? {
  if ($d/@format = "json") then parse-json(string($d))
  else if ($d/@format = "text") then document { text { string($d) } }
  else document { $d/node() }
};
declare function qs:message() as item()? { $qs:m };
declare function qs:queue() as item()* { qs:queue($qs:c/message/@queue) };
declare function qs:queue($name as xs:string) as item()* { $qs:c/queue[@name = $name]/d ! qs:read(.) };
declare function qs:slice() as item()* { $qs:c/slice/d ! qs:read(.) };
declare function qs:slicekey() as item()? { qs:typed($qs:c/slice) };
declare function qs:property($name as xs:string) as item()? { qs:typed($qs:c/property[@name = $name]) };
declare function qs:typed($p as element()?) as item()? {
  if (empty($p)) then () else
  let $said := string(($p/@key, $p)[1]) return
  switch ($p/@type)
    case "integer" return xs:integer($said)
    case "boolean" return xs:boolean($said)
    case "decimal" return xs:decimal($said)
    case "date" return xs:date($said)
    default return $said
};
declare function qs:wrong($code as xs:string) as item()* { error(QName("urn:oracle", $code)) };
declare function qs:one($values as item()*) as item()? {
  let $found := distinct-values(data($values)) return if (count($found) gt 1) then qs:wrong("PR0002") else $found
};
declare function qs:given($name as xs:string, $values as item()*) as element()? {
  qs:one($values) ! (typeswitch (.)
    case xs:boolean return <with name="{$name}" type="boolean">{string(.)}</with>
    case xs:integer return <with name="{$name}" type="integer">{string(.)}</with>
    default return <with name="{$name}" type="string">{string(.)}</with>)
};
declare function qs:body($b as item()*) as element() {
  if (count($b) ne 1) then qs:wrong("PR0001")
  else if ($b instance of map(*) or $b instance of array(*))
    then <body format="json">{serialize($b, map { "method": "json" })}</body>
  else if ($b instance of element() or $b instance of document-node(element()))
    then <body format="xml">{serialize($b, map { "method": "xml", "omit-xml-declaration": true() })}</body>
  else if ($b instance of text() or $b instance of xs:anyAtomicType or $b instance of document-node() and empty($b/*))
    then <body format="text">{string($b)}</body>
  else qs:wrong("PR0001")
};
"""


@dataclass(frozen=True)
class Letter:
    """A message as an expression sees it."""

    body: str
    format: str


@dataclass
class Surroundings:
    """What an expression may ask for."""

    message: Letter
    queue: str
    properties: Mapping[str, tuple[str, Value]] = field(default_factory=dict)  # type and value
    queues: Mapping[str, Sequence[Letter]] = field(default_factory=dict)
    slice: Sequence[Letter] = ()
    slicekey: tuple[str, Value] | None = None

    def document(self) -> str:
        parts = [f"<message queue={quoteattr(self.queue)}>{_letter(self.message)}</message>"]
        for name, (type, value) in self.properties.items():
            parts.append(f"<property name={quoteattr(name)} type={quoteattr(type)}>{escape(text_of(value))}</property>")
        for name, letters in self.queues.items():
            parts.append(f"<queue name={quoteattr(name)}>{_letters(letters)}</queue>")
        if self.slicekey is not None:
            type, value = self.slicekey
            key = f"type={quoteattr(type)} key={quoteattr(text_of(value))}"
            parts.append(f"<slice {key}>{_letters(self.slice)}</slice>")
        return f"<c>{''.join(parts)}</c>"


def _letters(letters: Iterable[Letter]) -> str:
    return "".join(map(_letter, letters))


def _letter(letter: Letter) -> str:
    inside = letter.body if letter.format == "xml" else escape(letter.body, {"\r": "&#13;"})
    return f'<d format="{letter.format}">{inside}</d>'


def text_of(value: Value) -> str:
    """The canonical text of a property."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def value_of(type: str, text: str) -> Value:
    """What is stored of a property."""
    if type == "boolean":
        return text == "true"
    return int(text) if type == "integer" else text


@dataclass
class Failed(Exception):
    """A rule or a property went wrong, perhaps in several actions; any of their codes may be the one that is told."""

    codes: frozenset[str]


@dataclass(frozen=True)
class Reset:
    slicing: str
    key: str


@dataclass(frozen=True)
class Enqueue:
    """A new message with what was set on it by hand."""

    queue: str
    letter: Letter
    explicit: Mapping[str, Value]
    failed: frozenset[str] = frozenset()  # the codes of what went wrong


def actions(rule: str, around: Surroundings) -> list[Enqueue | Reset]:
    """The pending actions of one rule, as it was translated, for one message."""
    found: list[Enqueue | Reset] = []
    try:
        answer = _answer(rule, around)
    except Failed as failed:
        # Saxon may move a part out of its try. Then what went wrong in the other parts is not known.
        raise Failed(failed.codes | _OF_PARTS if failed.codes & _OURS else failed.codes) from None
    for element in answer:
        if element.tag == "reset":
            found.append(Reset(element.get("slicing", ""), element.text or ""))
            continue
        body = element.find("body")
        if body is None:
            body = ElementTree.Element("body")  # it has failed
        made = Letter(body.text or "", body.get("format", ""))
        found.append(Enqueue(element.get("queue", ""), made, _with(element), _codes(element)))
    wrong = frozenset(code for element in answer if element.tag == "reset" for code in _codes(element))
    if wrong:
        raise Failed(wrong | {code for each in found if isinstance(each, Enqueue) for code in each.failed})
    return found


def _codes(element: ElementTree.Element) -> frozenset[str]:
    return frozenset(each.get("code", "") for each in element.iterfind("failed"))


def value(name: str, type: str, expression: str, letter: Letter, queue: str) -> Value | None:
    """A property's value, worked out from a body."""
    said = f"{expression.strip()}()" if type == "boolean" and expression.strip() in ("true", "false") else expression
    query = f"qs:one($qs:m ! (\n{said}\n)) ! {_cast(name, type)}"
    return _with(_answer(query, Surroundings(letter, queue))).get(name)


def converted(name: str, type: str, given: Value) -> Value:
    """What a sender has set, in the property's type."""
    found = value(name, type, "string(.)", Letter(text_of(given), "text"), "")
    assert found is not None
    return found


def _with(parent: ElementTree.Element) -> dict[str, Value]:
    return {each.get("name", ""): value_of(each.get("type", ""), each.text or "") for each in parent.iterfind("with")}


def _cast(name: str, type: str) -> str:
    return f'<with name="{name}" type="{type}">{{string(. cast as xs:{type})}}</with>'


def _answer(expression: str, around: Surroundings) -> Any:
    # The answer is used twice, so that Saxon holds it back until all is well: what it has written it cannot take back.
    query = (
        f"{_PROLOG} let $answer := try {{ <r>{{\n{expression}\n}}</r> }} "
        f"catch * {{ {_FAILED} }} return <o n='{{count($answer)}}'>{{$answer}}</o>"
    )
    answer = ElementTree.fromstring(saxon().run(query, around.document()))[0]
    if answer.tag == "failed":
        raise Failed(frozenset({answer.get("code", "")}))
    return answer


def translated(rule: RuleDefinition, program: Program) -> str:
    """The rule with elements in the place of its actions.

    Where several pieces meet at one place, what closes an action comes before an ``else`` that was left out: an if
    inside of an action's own values has to have its else.
    """
    text = rule.body.text
    body = read(text, 0, len(text))
    pieces: list[tuple[int, int, int, str]] = []  # from, rank, to, new text

    def put(span: tuple[int, int], new: str, rank: int = 0) -> None:
        pieces.append((span[0], rank, span[1], new))

    for enqueue in body.enqueues:
        put(enqueue.keyword, f'<enqueue queue="{enqueue.queue}">{{{_TRY} qs:body((')
        put(enqueue.into, f")) {_CATCH}}}")
        for each in enqueue.properties:
            known = program.properties.get(each.name)
            put(each.keyword, f"{{{_TRY} qs:one((" if known else f'{{{_TRY} qs:given("{each.name}", (')
            cast = f" ! {_cast(each.name, known.type)}" if known else ""
            put((each.value.end,) * 2, f")){cast} {_CATCH}}}", 1)
        put((enqueue.span.end,) * 2, "</enqueue>", 2)
    for reset in body.resets:
        slicing = program.slicings[reset.slicing or rule.target]
        type = program.properties[slicing.property].type
        if reset.key is None:
            put(reset.span, f'<reset slicing="{slicing.name}">{{string(qs:slicekey())}}</reset>')
        else:
            put(reset.keyword, f'<reset slicing="{slicing.name}">{{{_TRY} text {{ string(xs:{type}((')
            put((reset.span.end,) * 2, f"))) }} {_CATCH}}}</reset>", 2)
    for at in body.missing_else:
        put((at, at), " else ()", 3)
    made, here = [], 0
    for start, _, end, new in sorted(pieces):
        made += [text[here:start], new]
        here = end
    return f"$qs:m ! (\n{''.join(made)}{text[here:]}\n)"
