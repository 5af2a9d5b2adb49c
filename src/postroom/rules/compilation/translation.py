"""From QML to XQuery: a rule's body becomes an expression that answers with its pending actions as elements.

Lines stay where they are, so that an error of the XQuery compiler can be told with its place in the user's file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from postroom.limits import INDEXED_CHARS_MAX
from postroom.rules.compilation.plan import SAME, Index, Key, Read, Template
from postroom.rules.compilation.reads import keyed_read
from postroom.rules.language.body import ELSE, Body, Call, Enqueue, Reset, Span
from postroom.rules.language.definitions import Expression, Program, PropertyDefinition, RuleDefinition
from postroom.rules.language.edits import Edit, Edited, edited
from postroom.rules.language.expression import read
from postroom.rules.language.functions import NAMESPACE
from postroom.rules.language.tokens import Token, decoded, tokens

#: What the system knows about every message, and the XQuery type of each.
SYSTEM = {
    "key": "string",
    "queue": "string",
    "rule": "string",
    "cause": "string",
    "sender": "string",
    "connection": "string",
    "created": "dateTime",
    "size": "integer",
}


@dataclass
class Surroundings:
    """What the rules of one queue share: the sets they read, the properties they must be shown."""

    program: Program
    queue: str
    mark: str
    indexed: frozenset[str] = frozenset()  # queues with an index
    filled: frozenset[str] | None = None  # the indexes there are; None if those that are missing will be made
    reads: list[Read] = field(default_factory=list)
    properties: dict[str, None] = field(default_factory=dict)
    system: dict[str, None] = field(default_factory=dict)
    indexes: dict[str, Index] = field(default_factory=dict)
    into: dict[str, int] = field(default_factory=dict)  # a number for each target's function
    slicings: dict[str, int] = field(default_factory=dict)  # a number for each slicing with a rule here
    templates: dict[Template, int] = field(default_factory=dict)

    def number(self, read: Read) -> int:
        if read not in self.reads:
            self.reads.append(read)
        return self.reads.index(read)

    def index(self, queue: str, expression: str) -> str:
        found = Index(f"{queue} {expression}", queue, expression)
        self.indexes[found.name] = found
        return found.name

    def has_index(self, queue: str, expression: str) -> bool:
        return self.filled is None or f"{queue} {expression}" in self.filled

    def unworked(self, queue: str) -> bool:
        """Whether nothing has to be computed for the messages of a queue."""
        return queue not in self.indexed and not any(
            each.value_for(queue) for each in self.program.properties_of(queue)
        )

    def slicing(self, name: str) -> int:
        return self.slicings.setdefault(name, len(self.slicings))

    def template(self, template: Template) -> str:
        """The variable that stands before a message made by a template."""
        return f"$qs:t{self.templates.setdefault(template, len(self.templates))}"

    def function(self, queue: str) -> str:
        return f"qs:into-{self.into.setdefault(queue, len(self.into))}"


def translated(rule: RuleDefinition, around: Surroundings, number: int = 0, body: Body | None = None) -> Edited:
    """The rule's body as XQuery over ``$qs:message``, ``$qs:m`` and ``$qs:sets``; its actions carry ``number``."""
    text = rule.body.text
    body = body or read(text, 0, len(text))
    inner = [at for span in _values(body) for at in read(text, *span).missing_else]
    edits = [Edit(at, at, ELSE) for at in inner]  # edits at one place keep their order: the innermost comes first
    for enqueue in body.enqueues:
        edits += _enqueue_edits(enqueue, number, around, body, text)
    for reset in body.resets:
        edits += _reset_edits(reset, number, rule, around)
    edits += [Edit(each.start, each.start, "(") for each in body.lists]
    done = Counter(inner)
    for at, closing in body.closings:
        if closing == ELSE and done[at]:
            done[at] -= 1
        else:
            edits.append(Edit(at, at, closing))
    for call in body.calls:
        replacement = _call(call, rule, around, body)
        if replacement is not None:
            edits.append(Edit(call.start, call.end, replacement))
    return edited(text, 0, len(text), edits)


def _values(body: Body) -> Iterator[Span]:
    """The expressions inside of actions."""
    for enqueue in body.enqueues:
        yield enqueue.value
        yield from (each.value for each in enqueue.properties)
        if enqueue.compensation is not None:
            yield enqueue.compensation.value
    yield from (reset.key for reset in body.resets if reset.key is not None)


def _enqueue_edits(enqueue: Enqueue, number: int, around: Surroundings, body: Body, text: str) -> list[Edit]:
    element = around.unworked(enqueue.queue) and _is_element(enqueue.value, body, text)
    literals: list[tuple[str, str | None, str]] = []
    edits: list[Edit] = []
    for each in enqueue.properties:
        known = around.program.properties.get(each.name)
        maker = f"qs:as-{known.type}" if known else "qs:as-given"
        comma = ", " if element or edits else ""
        literal = _literal(text, each.value)
        if element and literal is not None and (known is None or known.type == "string"):
            literals.append((each.name, "string" if known is None else None, literal))
            edits.append(Edit(each.keyword.start, each.value.end, ""))
            continue
        edits.append(Edit(*each.keyword, f'{comma}{maker}("{each.name}", ('))
        edits.append(Edit(each.value[1], each.value[1], "))"))
    undo = enqueue.compensation
    outer = "" if undo is None else "("
    if element:  # one for certain, and nothing to be worked out: it goes from the rule to the answer uncopied
        made = around.template(Template(number, enqueue.queue, tuple(literals)))
        edits += [Edit(*enqueue.keyword, f"{outer}({made}, "), Edit(*enqueue.into, "")]
    else:
        same = SAME if _is_message(enqueue.value, body, text) else ""
        begin = f'{around.function(enqueue.queue)}("{number}{same}", ('
        edits += [Edit(*enqueue.keyword, f"{outer}{begin}"), Edit(*enqueue.into, "), (")]
    end = ")" if element else "), $qs:h)"
    if undo is None:
        edits.append(Edit(enqueue.span[1], enqueue.span[1], end))
    else:
        edits.append(Edit(*undo.keyword, f'{end}, qs:undo("{undo.queue}", "{number}", ('))
        edits.append(Edit(*undo.into, ")))"))
    return edits


def _literal(text: str, span: Span) -> str | None:
    """The value of an expression that is one string literal on one line."""
    found = tokens(text, span.start, span.end)
    value = decoded(found[0]) if len(found) == 1 and found[0].kind == "string" else None
    return value if value is not None and value.isprintable() else None


def _is_element(span: Span, body: Body, text: str) -> bool:
    """Whether an expression is one direct constructor, or a variable that holds one."""
    said = text[span.start : span.end].strip()
    if said.startswith("$"):
        found = body.binding_of(span)
        return found is not None and found.kind == "let" and _is_element(found.value, body, text)
    return said.startswith("<") and _is_constructor(tokens(text, span.start, span.end))


def _is_message(span: Span, body: Body, text: str) -> bool:
    """Whether an expression is the current message and nothing else. Where an action stands it is the context, too."""
    said = text[span.start : span.end].strip()
    if said.startswith("$"):
        found = body.binding_of(span)
        return found is not None and found.kind == "let" and found.outer and _is_message(found.value, body, text)
    return said in (".", "/") or "".join(said.split()) == "qs:message()"


def _is_constructor(found: Sequence[Token]) -> bool:
    """Whether the element that begins first ends last."""
    depth = 0
    for number, token in enumerate(found):
        depth += (token.kind == "open-constructor") - (token.kind == "close-constructor")
        if depth == 0:
            return number == len(found) - 1 and found[0].text[1:2] not in "!?"
    return False


def _reset_edits(reset: Reset, number: int, rule: RuleDefinition, around: Surroundings) -> list[Edit]:
    program = around.program
    name = reset.slicing or rule.target
    type = _slicing_type(program, name)
    begin = f'qs:reset("{name}", "{number}", '
    if reset.key is None:
        return [Edit(*reset.span, f"{begin}{_slicekey(rule, around)})")]
    return [
        Edit(*reset.keyword, f"{begin}qs:to-{type}(("),
        Edit(reset.span[1], reset.span[1], ")))"),
    ]


def _call(call: Call, rule: RuleDefinition, around: Surroundings, body: Body) -> str | None:
    """What stands for a call of one of our own functions; None for XQuery's."""
    name = call.name
    if name == "qs:message":
        return "$qs:message"
    if name == "qs:slice":
        return _set(around, _slice_read(rule.target, around.program))
    if name == "qs:slicekey":
        return _slicekey(rule, around)
    if name == "qs:queue":
        queue = call.literals[0] if call.literals else around.queue
        return _queue(call, queue or around.queue, rule, around, body)
    if name == "qs:property":
        return property_access(call.literals[0] or "", around)
    if name == "collection":
        return f"$qs:{collection_variable(call.literals[0] or '')}"
    return None


def _slice_read(slicing: str, program: Program) -> Read:
    return Read("slice", slicing, Key("property", program.slicings[slicing].property))


def _slicekey(rule: RuleDefinition, around: Surroundings) -> str:
    return f"qs:to-{_slicing_type(around.program, rule.target)}($qs:m/@k{around.slicing(rule.target)})"


def _slicing_type(program: Program, slicing: str) -> str:
    return property_type(program, program.slicings[slicing].property)


def property_type(program: Program, name: str) -> str:
    known = program.properties.get(name)
    return known.type if known else SYSTEM.get(name, "string")


def _queue(call: Call, queue: str, rule: RuleDefinition, around: Surroundings, body: Body) -> str:
    keyed = keyed_read(rule, call, body, around.program)
    if keyed is None or not around.has_index(queue, keyed.expression):
        return _set(around, Read("queue", queue))
    key = keyed.key
    if key.source == "probe":
        if not around.has_index(around.queue, key.name):
            return _set(around, Read("queue", queue))
        key = Key("probe", around.index(around.queue, key.name))
    return _set(around, Read("index", around.index(queue, keyed.expression), key))


def _set(around: Surroundings, read: Read) -> str:
    return f"$qs:sets(string($qs:m/@s{around.number(read)}))"


def property_access(name: str, around: Surroundings) -> str:
    known = around.program.properties.get(name)
    if known is None and name in SYSTEM:
        around.system[name] = None
        return f"qs:to-{SYSTEM[name]}($qs:m/@{name})"
    around.properties[name] = None
    access = f'$qs:m/Q{{}}p[@n = "{name}"]'  # wherever it stands: a constructor may give names without a prefix another
    return f"qs:to-{known.type}({access})" if known else f"qs:given({access})"


# --- the text around the rules -----------------------------------------------------------------------------------


def collection_variable(name: str) -> str:
    """The variable of a collection; a name with a prefix is none for a variable.

    >>> collection_variable("prices"), collection_variable("chem:price_list")
    ('collection-prices', 'collection-chem_-price__list')
    """
    return "collection-" + name.replace("_", "__").replace(":", "_-")


def prolog(mark: str, collections: Sequence[str]) -> str:
    """Declarations that every query begins with, on one line."""
    declared = [
        f'declare namespace qs = "{NAMESPACE}";',
        'declare namespace map = "http://www.w3.org/2005/xpath-functions/map";',
        'declare namespace array = "http://www.w3.org/2005/xpath-functions/array";',
        'declare namespace math = "http://www.w3.org/2005/xpath-functions/math";',
        'declare variable $qs:r := processing-instruction { "r-MARK" } { "" };',  # made once, not for every message
        *_FUNCTIONS,
    ]
    for name in collections:
        variable = collection_variable(name)
        declared.append(f"declare variable ${variable} external;")
        declared.append(f"declare variable $qs:{variable} := ${variable}/c/d ! document {{ node() }};")
    return " ".join(declared).replace("-MARK", f"-{mark}")


_FUNCTIONS = (
    'declare function qs:doc($d as element()) as item()? { if ($d/@f = "j") then parse-json(string($d)) '
    'else if ($d/@f = "t") then document { text { string($d) } } else document { $d/node() } };',
    # Messages by where they stand among all: runs, each its first place and its length.
    "declare function qs:some($all as item()*, $runs as xs:string) as item()* { for $run in tokenize($runs) return "
    'subsequence($all, xs:integer(substring-before($run, "+")), xs:integer(substring-after($run, "+"))) };',
    # What becomes of the value of an enqueue: its format, and itself or its text.
    "declare function qs:form($b as item()*) as xs:string { "
    'if (count($b) ne 1) then error(QName("urn:postroom:qs", "qs:PR0001"), '
    'concat("a message is one document, not ", count($b), " items")) else typeswitch ($b) '
    'case element() return "x" case document-node() return '
    'if (count($b/*) eq 1 and empty($b/text()[normalize-space()])) then "x" else if (empty($b/*)) then "t" else '
    'error(QName("urn:postroom:qs", "qs:PR0001"), "a document has one element and no text beside it") '
    'case map(*) return "j" case array(*) return "j" case text() return "t" case xs:anyAtomicType return "t" '
    'default return error(QName("urn:postroom:qs", "qs:PR0001"), "a message is a document, a value or a map") };',
    "declare function qs:content($b as item()) as node() { typeswitch ($b) case node() return $b "
    'case map(*) return text { serialize($b, map { "method": "json" }) } '
    'case array(*) return text { serialize($b, map { "method": "json" }) } default return text { string($b) } };',
    "declare function qs:made($b as item()) as item() { typeswitch ($b) case document-node() return $b "
    "case node() return document { $b } case map(*) return $b case array(*) return $b "
    "default return document { text { string($b) } } };",
    "declare function qs:single($n as xs:string, $v as item()*) as xs:anyAtomicType? { "
    "let $a := distinct-values(data($v)) return if (count($a) gt 1) "
    'then error(QName("urn:postroom:qs", "qs:PR0002"), '
    'concat("property ", $n, " would have ", count($a), " values")) else $a };',
    "declare function qs:as-given($n as xs:string, $v as item()*) as element()? { "
    'let $a := qs:single($n, $v) return if (empty($a)) then () else <p-MARK n="{$n}" v="{string($a)}" k="{'
    'if ($a instance of xs:boolean) then "boolean" else if ($a instance of xs:integer) then "integer" else "string"'
    '}"/> };',
    # What undoes the message before it.
    "declare function qs:undo($q as xs:string, $r as xs:string, $b as item()*) as node()* { "
    'let $f := qs:form($b) return (<u-MARK q="{$q}" r="{$r}" f="{$f}"/>, qs:content($b)) };',
    # A function, and not an attribute in the rule: there Saxon would tell errors without their line.
    "declare function qs:reset($s as xs:string, $r as xs:string, $v as xs:anyAtomicType?) as element() { "
    '<z-MARK s="{$s}" r="{$r}" v="{$v}"/> };',
    "declare function qs:given($p as element()*) as xs:anyAtomicType? { "
    'if ($p/@k = "boolean") then xs:boolean($p) else if ($p/@k = "integer") then xs:integer($p) else '
    "if ($p) then string($p) else () };",
)


def casts(types: Mapping[str, None], mark: str) -> str:
    """Two functions for each type of a property: what is read, and what is set.

    Functions, and not casts in the rule: there a constructor may make the prefix ``xs`` mean something else.
    """
    return " ".join(
        f"declare function qs:to-{type}($v as item()*) as xs:{type}? {{ xs:{type}($v) }}; "
        f"declare function qs:as-{type}($n as xs:string, $v as item()*) as element()? {{ "
        f"let $a := qs:single($n, $v) return if (empty($a)) then () else "
        f'<p-{mark} n="{{$n}}" v="{{string($a cast as xs:{type})}}"/> }};'
        for type in dict.fromkeys([*SYSTEM.values(), *types])
    )


def computed(definition: PropertyDefinition, value: Expression, mark: str) -> str:
    """The element of a computed property of ``$qs:message``."""
    said = value.text
    if definition.type == "boolean" and said.strip() in ("true", "false"):
        said = f"{said.strip()}()"  # as the paper writes it; to XQuery this would be an element's name
    made = (
        f'(let $qs:v := qs:single("{definition.name}", $qs:message ! ({said})) return if (empty($qs:v)) then () '
        f'else <p-{mark} n="{definition.name}" v="{{string($qs:v cast as xs:{definition.type})}}"/>)'
    )
    if definition.fixed:
        return made
    return f'(if ($qs:p/@n = "{definition.name}" or $qs:h = "{definition.name}") then () else {made})'


def indexed(index: Index, mark: str) -> str:
    """The elements of an index's values; a message that the expression does not fit has none."""
    return (
        f"(try {{ for $qs:v in distinct-values(data($qs:message ! ({index.expression})) "
        f"! substring(string(.), 1, {INDEXED_CHARS_MAX})) "
        f'return <k-{mark} n="{escaped(index.name)}" v="{{$qs:v}}"/> }} catch * {{ () }})'
    )


def escaped(text: str) -> str:
    """Text inside an attribute of a constructor, in an XQuery."""
    for character, word in (("&", "&amp;"), ("<", "&lt;"), ('"', "&quot;"), ("{", "{{"), ("}", "}}")):
        text = text.replace(character, word)
    return text
