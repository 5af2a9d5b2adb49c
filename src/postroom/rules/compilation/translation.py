"""From QML to XQuery: a rule's body becomes an expression that returns its pending actions as elements.

Line numbers are kept, so that errors of the XQuery compiler have places in the user's file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from postroom.limits import INDEXED_CHARS_MAX
from postroom.rules.compilation.caught import caught_edits
from postroom.rules.compilation.environment import (
    Environment,
    call_edits,
    called,
    framed,
    import_edits,
    named,
    parameters,
    usual_namespaces,
)
from postroom.rules.compilation.plan import SAME, Index, Key, Read, Template
from postroom.rules.compilation.reads import Piece, keyed_read
from postroom.rules.compilation.updates import PLACE, RAISE, update_edits
from postroom.rules.language.body import Body, Call, Enqueue, Reset, Span
from postroom.rules.language.definitions import Expression, Program, PropertyDefinition, RuleDefinition
from postroom.rules.language.edits import Edit, Edited, edited
from postroom.rules.language.expression import read
from postroom.rules.language.functions import OURS, PREFIXES
from postroom.rules.language.prolog import Function
from postroom.rules.language.tokens import CLOSERS, Token, decoded, tokens

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


#: In the place of what is read by a function that nobody calls: anything, as far as Saxon can tell.
_UNREAD = '$qs:sets("")'


@dataclass
class Surroundings:
    """What the rules of one queue share: the sets that they read, and the properties that they need."""

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
    environment: Environment = field(default_factory=Environment)  # of the rules of one query

    def within(self, environment: Environment) -> Surroundings:
        """The part for rules whose module has these declarations, which are a query of their own."""
        return replace(self, environment=environment, into={})

    def number(self, read: Read) -> int:
        if read not in self.reads:
            self.reads.append(read)
        return self.reads.index(read)

    def index(self, queue: str, expression: str) -> str:
        wanted = Index(f"{queue} {expression}", queue, expression)
        self.indexes[wanted.name] = wanted
        return wanted.name

    def has_index(self, queue: str, expression: str) -> bool:
        return self.filled is None or f"{queue} {expression}" in self.filled

    def unworked(self, queue: str) -> bool:
        """Whether nothing is computed for messages of a queue."""
        return queue not in self.indexed and not any(
            definition.value_for(queue) for definition in self.program.properties_of(queue)
        )

    def slicing(self, name: str) -> int:
        return self.slicings.setdefault(name, len(self.slicings))

    def template(self, template: Template) -> str:
        """The variable for messages of a template."""
        return f"$qs:t{self.templates.setdefault(template, len(self.templates))}"

    def function(self, queue: str) -> str:
        return f"qs:into-{self.into.setdefault(queue, len(self.into))}"


def translated(rule: RuleDefinition, around: Surroundings, number: int = 0, body: Body | None = None) -> Edited:
    """The rule's body as XQuery over ``$qs:message``, ``$qs:m`` and ``$qs:sets``; its actions carry ``number``."""
    return edited(rule.body.text, 0, len(rule.body.text), _edits(rule, around, number, body))


@dataclass(frozen=True)
class Composed:
    """A rule in a query, with its user-written pieces, each on its own lines."""

    text: str
    pieces: tuple[tuple[Edited, Expression], ...]


def composed(rule: RuleDefinition, around: Surroundings, number: int, body: Body | None = None) -> Composed:
    """A rule for the messages of a queue.

    A rule with a timeout has two parts: for the first message it starts to wait; when the time is over, it fires unless
    the expected message has arrived.
    """
    text, unless, deadline = rule.body.text, rule.unless, rule.deadline
    if unless is None or deadline is None:
        made = translated(rule, around, number, body)
        return Composed(made.text, ((made, rule.body),))
    condition, then = _condition(text)
    edits = _edits(rule, around, number, body)
    if rule.fires_at(around.queue):
        if rule.target in around.program.slicings:
            around.number(_slice_read(rule.target, around.program))  # whether it was reset is told by it
        outside = [edit for edit in edits if edit.end <= condition.start or edit.start >= condition.end]
        done = edited(text, 0, len(text), [*outside, Edit(*condition, "true()")])
        asked = _value(unless, rule, around)
        return Composed(f"if (\n{asked.text}\n) then () else (\n{done.text}\n)", ((asked, unless), (done, rule.body)))
    begun = edited(text, 0, then, [edit for edit in edits if edit.end <= then])
    moment = _value(deadline, rule, around, f"{RAISE}, (", ")")
    kept = [f'qs:wait(\n{moment.text}\n, {property_access("created", around)}, "{rule.due}", '
            f"{property_access('key', around)})"]  # fmt: skip
    if rule.target in around.program.slicings:
        name = around.program.slicings[rule.target].property
        kept.append(f'qs:as-given({RAISE}, "{name}", {_slicekey(rule.target, around)})')
    action = f'{around.function(rule.waiting)}({RAISE}, "{number}{SAME}", ($qs:message), ({", ".join(kept)}), $qs:h)'
    return Composed(f"{begun.text}\n{action} else ()", ((begun, rule.body), (moment, deadline)))


def _condition(text: str) -> tuple[Span, int]:
    """The condition in the parentheses of an if, and the end of its then."""
    words, depth = tokens(text), 0
    for number, token in enumerate(words):
        if token.kind == "symbol":
            depth += (token.text in CLOSERS) - (token.text in CLOSERS.values())
            if not depth:
                return Span(words[1].end, token.start), words[number + 1].end
    raise ValueError(text)  # it was checked


def _value(value: Expression, rule: RuleDefinition, around: Surroundings, before: str = "", behind: str = "") -> Edited:
    """Another expression of a rule, with text before and after it on the same lines."""
    prolog = around.environment.prolog
    body = read(value.text, 0, len(value.text), prolog.namespaces, "in a condition")
    piece = Piece(value.text, body, rule.target, prolog)
    edits = [*closing_edits(body), *update_edits(body), *caught_edits(value.text, 0, len(value.text))]
    for call in body.calls:
        edits += _call_edits(call, piece, around)
    end = len(value.text)
    return edited(value.text, 0, end, [Edit(0, 0, before), *edits, Edit(end, end, behind)])


def _edits(rule: RuleDefinition, around: Surroundings, number: int, body: Body | None) -> list[Edit]:
    text, prolog = rule.body.text, around.environment.prolog
    body = body or read(text, 0, len(text), prolog.namespaces)
    inner = [pair for span in _values(body) for pair in read(text, *span).closings]
    edits = [Edit(at, at, more) for at, more in inner]  # edits at one place keep their order: the innermost comes first
    for enqueue in body.enqueues:
        edits += _enqueue_edits(enqueue, number, around, body, text)
    for reset in body.resets:
        edits += _reset_edits(reset, number, rule, around)
    edits += [Edit(span.start, span.start, "(") for span in body.lists]
    done = Counter(inner)
    for at, closing in body.closings:
        if done[at, closing]:
            done[at, closing] -= 1
        else:
            edits.append(Edit(at, at, closing))
    edits += [*update_edits(body), *caught_edits(text, 0, len(text))]
    piece = Piece(text, body, rule.target, prolog)
    for call in body.calls:
        edits += _call_edits(call, piece, around)
    return edits


def declared(around: Surroundings, bodies: Sequence[Body] = ()) -> Edited | None:
    """The declarations of a module in a query; None if it has none.

    Sets that only unused functions read are not read.
    """
    environment = around.environment
    if environment.where is None:
        return None
    prolog, reached = environment.prolog, environment.reached(bodies)
    edits = import_edits(prolog.imports, environment.libraries)
    for declaration, body in prolog.bodies.items():
        span = declaration.body if isinstance(declaration, Function) else declaration.value
        edits += [*closing_edits(body), *update_edits(body), *caught_edits(prolog.text, *span)]
        used = isinstance(declaration, Function) and named(declaration) in reached
        piece = Piece(prolog.text, body, prolog=prolog)
        for call in body.calls:
            unused = call.name in OURS and not used
            edits += [Edit(call.start, call.end, _UNREAD)] if unused else _call_edits(call, piece, around)
    edits += framed(prolog.variables)
    edits += [parameters(function) for function in prolog.functions if named(function) in environment.seeing]
    return edited(prolog.text, 0, len(prolog.text), edits)


def closing_edits(body: Body) -> list[Edit]:
    return [Edit(at, at, text) for at, text in body.closings]


def _call_edits(call: Call, piece: Piece, around: Surroundings) -> list[Edit]:
    if called(call) in around.environment.seeing:
        return call_edits(call, piece.text)
    replacement = _call(call, piece, around)
    return [] if replacement is None else [Edit(call.start, call.end, replacement)]


def _values(body: Body) -> Iterator[Span]:
    """The expressions inside of actions."""
    for enqueue in body.enqueues:
        yield enqueue.value
        yield from (setting.value for setting in enqueue.properties)
        if enqueue.compensation is not None:
            yield enqueue.compensation.value
    yield from (reset.key for reset in body.resets if reset.key is not None)


def _enqueue_edits(enqueue: Enqueue, number: int, around: Surroundings, body: Body, text: str) -> list[Edit]:
    element = around.unworked(enqueue.queue) and _is_element(enqueue.value, body, text)
    literals: list[tuple[str, str | None, str]] = []
    edits: list[Edit] = []
    for setting in enqueue.properties:
        known = around.program.properties.get(setting.name)
        maker = f"qs:as-{known.type}({RAISE}, {cast(known.type)}, " if known else f"qs:as-given({RAISE}, "
        comma = ", " if element or edits else ""
        literal = _literal(text, setting.value)
        if element and literal is not None and (known is None or known.type == "string"):
            literals.append((setting.name, "string" if known is None else None, literal))
            edits.append(Edit(setting.keyword.start, setting.value.end, ""))
            continue
        edits.append(Edit(*setting.keyword, f'{comma}{maker}"{setting.name}", ('))
        edits.append(Edit(setting.value[1], setting.value[1], "))"))
    undo = enqueue.compensation
    outer = "" if undo is None else "("
    if element:  # one for certain, and nothing to be worked out: it goes from the rule to the answer uncopied
        made = around.template(Template(number, enqueue.queue, tuple(literals), enqueue.keyword.start))
        edits += [Edit(*enqueue.keyword, f"{outer}({made}, "), Edit(*enqueue.into, "")]
    else:
        same = SAME if _is_message(enqueue.value, body, text) else ""
        begin = f'{around.function(enqueue.queue)}({RAISE}, "{number}.{enqueue.keyword.start}{same}", ('
        edits += [Edit(*enqueue.keyword, f"{outer}{begin}"), Edit(*enqueue.into, "), (")]
    end = ")" if element else "), $qs:h)"
    if undo is None:
        edits.append(Edit(enqueue.span[1], enqueue.span[1], end))
    else:
        edits.append(Edit(*undo.keyword, f'{end}, qs:undo({RAISE}, "{undo.queue}", "{number}.{undo.keyword.start}", ('))
        edits.append(Edit(*undo.into, ")))"))
    return edits


def _literal(text: str, span: Span) -> str | None:
    """The value of an expression that is one string literal on one line."""
    words = tokens(text, span.start, span.end)
    value = decoded(words[0]) if len(words) == 1 and words[0].kind == "string" else None
    return value if value is not None and value.isprintable() else None


def _is_element(span: Span, body: Body, text: str) -> bool:
    """Whether an expression is one direct constructor, or a variable with one."""
    inside = text[span.start : span.end].strip()
    if inside.startswith("$"):
        binding = body.binding_of(span)
        return binding is not None and binding.kind == "let" and _is_element(binding.value, body, text)
    return inside.startswith("<") and _is_constructor(tokens(text, span.start, span.end))


def _is_message(span: Span, body: Body, text: str) -> bool:
    """Whether an expression is just the current message, which is also the context of an action."""
    inside = text[span.start : span.end].strip()
    if inside.startswith("$"):
        bound = body.binding_of(span)
        return bound is not None and bound.kind == "let" and bound.outer and _is_message(bound.value, body, text)
    return inside in (".", "/") or "".join(inside.split()) == "qs:message()"


def _is_constructor(words: Sequence[Token]) -> bool:
    """Whether the first element spans the whole expression."""
    depth = 0
    for number, token in enumerate(words):
        depth += (token.kind == "open-constructor") - (token.kind == "close-constructor")
        if depth == 0:
            return number == len(words) - 1 and words[0].text[1:2] not in "!?"
    return False


def _reset_edits(reset: Reset, number: int, rule: RuleDefinition, around: Surroundings) -> list[Edit]:
    program = around.program
    name = reset.slicing or rule.target
    type = _slicing_type(program, name)
    begin = f'qs:reset("{name}", "{number}", '
    if reset.key is None:
        return [Edit(*reset.span, f"{begin}{_slicekey(rule.target, around)})")]
    return [
        Edit(*reset.keyword, f"{begin}qs:to-{type}(("),
        Edit(reset.span[1], reset.span[1], ")))"),
    ]


def _call(call: Call, piece: Piece, around: Surroundings) -> str | None:
    """The replacement for a call of our own functions; None for XQuery's."""
    name = call.name
    if name == "qs:message":
        return "$qs:message"
    if name == "qs:slice":
        return _set(around, _slice_read(piece.target, around.program))
    if name == "qs:slicekey":
        return _slicekey(piece.target, around)
    if name == "qs:queue":
        queue = call.literals[0] if call.literals else around.queue
        return _queue(call, queue or around.queue, piece, around)
    if name == "qs:property":
        return property_access(call.literals[0] or "", around)
    if name == "collection":
        return f"$qs:{collection_variable(call.literals[0] or '')}"
    return None


def _slice_read(slicing: str, program: Program) -> Read:
    return Read("slice", slicing, Key("property", program.slicings[slicing].property))


def _slicekey(slicing: str, around: Surroundings) -> str:
    return f"qs:to-{_slicing_type(around.program, slicing)}($qs:m/@k{around.slicing(slicing)})"


def _slicing_type(program: Program, slicing: str) -> str:
    return property_type(program, program.slicings[slicing].property)


def property_type(program: Program, name: str) -> str:
    known = program.properties.get(name)
    return known.type if known else SYSTEM.get(name, "string")


def _queue(call: Call, queue: str, piece: Piece, around: Surroundings) -> str:
    keyed = keyed_read(piece, call, around.program)
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
    """The variable of a collection; prefixes are escaped.

    >>> collection_variable("prices"), collection_variable("chem:price_list")
    ('collection-prices', 'collection-chem_-price__list')
    """
    return "collection-" + name.replace("_", "__").replace(":", "_-")


def prolog(
    mark: str, collections: Sequence[str], within: Surroundings | None = None, bodies: Sequence[Body] = ()
) -> str:
    """The declarations at the start of every query: default prefixes, those of the module, and ours."""
    environment = Environment() if within is None else within.environment
    written = None if within is None else declared(within, bodies)
    own = "" if written is None else f"\n{written.text}\n"
    return f"{usual_namespaces(environment)}{own} {_declarations(mark, collections)}"


def _declarations(mark: str, collections: Sequence[str]) -> str:
    declared = [
        'declare variable $qs:r := processing-instruction { "r-MARK" } { "" };',  # made once, not for every message
        *_FUNCTIONS,
        PLACE,
    ]
    for name in collections:
        variable = collection_variable(name)
        declared.append(f"declare variable ${variable} external;")
        declared.append(f"declare variable $qs:{variable} := ${variable}/Q{{}}c/Q{{}}d ! document {{ node() }};")
    return " ".join(declared).replace("-MARK", f"-{mark}")


_FUNCTIONS = (
    'declare function qs:doc($d as element()) as item()? { if ($d/@f = "j") then parse-json(string($d)) '
    'else if ($d/@f = "t") then document { text { string($d) } } else document { $d/node() } };',
    # Messages by where they stand among all: runs, each its first place and its length.
    "declare function qs:some($all as item()*, $runs as xs:string) as item()* { for $run in tokenize($runs) return "
    'subsequence($all, xs:integer(substring-before($run, "+")), xs:integer(substring-after($run, "+"))) };',
    # What becomes of the value of an enqueue: its format, and itself or its text.
    "declare function qs:form($e as function(*), $b as item()*) as xs:string { "
    'if (count($b) ne 1) then $e(QName("urn:postroom:qs", "qs:PR0001"), '
    'concat("a message is one document, not ", count($b), " items")) else typeswitch ($b) '
    'case element() return "x" case document-node() return '
    'if (count($b/*) eq 1 and empty($b/text()[normalize-space()])) then "x" '
    'else if (empty($b/(* | comment() | processing-instruction()))) then "t" else '
    '$e(QName("urn:postroom:qs", "qs:PR0001"), "a document has one element and no text beside it") '
    'case map(*) return "j" case array(*) return "j" case text() return "t" case xs:anyAtomicType return "t" '
    'default return $e(QName("urn:postroom:qs", "qs:PR0001"), "a message is a document, a value or a map") };',
    "declare function qs:content($b as item()) as node() { typeswitch ($b) case node() return $b "
    'case map(*) return text { serialize($b, map { "method": "json" }) } '
    'case array(*) return text { serialize($b, map { "method": "json" }) } default return text { string($b) } };',
    "declare function qs:made($b as item()) as item() { typeswitch ($b) case document-node() return $b "
    "case node() return document { $b } case map(*) return $b case array(*) return $b "
    "default return document { text { string($b) } } };",
    "declare function qs:single($e as function(*), $n as xs:string, $v as item()*) as xs:anyAtomicType? { "
    "let $a := distinct-values(data($v)) return if (count($a) gt 1) "
    'then $e(QName("urn:postroom:qs", "qs:PR0002"), '
    'concat("property ", $n, " would have ", count($a), " values")) else $a };',
    "declare function qs:as-given($e as function(*), $n as xs:string, $v as item()*) as element()? { "
    'let $a := qs:single($e, $n, $v) return if (empty($a)) then () else <p-MARK n="{$n}" v="{string($a)}" k="{'
    'if ($a instance of xs:boolean) then "boolean" else if ($a instance of xs:integer) then "integer" else "string"'
    '}"/> };',
    # A property that is computed: its value, made one of its type.
    "declare function qs:computed($n as xs:string, $e as function(*), $c as function(*), $v as item()*) "
    "as element()? { let $a := qs:single($e, $n, $v) return if (empty($a)) then () "
    'else <p-MARK n="{$n}" v="{string($c($a))}"/> };',
    # What undoes the message before it.
    "declare function qs:undo($e as function(*), $q as xs:string, $r as xs:string, $b as item()*) as node()* { "
    'let $f := qs:form($e, $b) return (<u-MARK q="{$q}" r="{$r}" f="{$f}"/>, qs:content($b)) };',
    # How long a message waits for another, from when it came, or until a moment.
    "declare function qs:wait($e as function(*), $d as item()*, $c as xs:dateTime, $q as xs:string, $k as xs:string) "
    "as element()* { "
    "let $a := data($d) let $m := if (count($a) ne 1) then "
    '$e(QName("urn:postroom:qs", "qs:PR0008"), "a deadline is one duration or one moment") '
    "else if ($a instance of xs:dateTime) then $a else if ($a instance of xs:numeric) "
    'then $c + $a * xs:dayTimeDuration("PT1S") else if (string($a) castable as xs:dayTimeDuration) '
    "then $c + xs:dayTimeDuration(string($a)) else if (string($a) castable as xs:dateTime) "
    'then xs:dateTime(string($a)) else $e(QName("urn:postroom:qs", "qs:PR0008"), '
    'concat("a deadline is a duration such as P14D or a moment; it is ", string($a))) '
    'return (qs:as-given($e, "target", $q), qs:as-given($e, "absence-origin", $k), '
    'qs:as-given($e, "absence-due", xs:integer(round(($m - xs:dateTime("1970-01-01T00:00:00Z")) '
    'div xs:dayTimeDuration("PT0.000001S"))))) };',
    # A function, and not an attribute in the rule: there Saxon would tell errors without their line.
    "declare function qs:reset($s as xs:string, $r as xs:string, $v as xs:anyAtomicType?) as element() { "
    '<z-MARK s="{$s}" r="{$r}" v="{$v}"/> };',
    "declare function qs:given($p as element()*) as xs:anyAtomicType? { "
    'if ($p/@k = "boolean") then xs:boolean($p) else if ($p/@k = "integer") then xs:integer($p) else '
    "if ($p) then string($p) else () };",
)


def casts(types: Mapping[str, None], mark: str) -> str:
    """Two functions for each property type, for reading and setting.

    They are functions instead of casts because a constructor may rebind the prefix ``xs``.
    """
    return " ".join(
        f"declare function qs:to-{type}($v as item()*) as xs:{type}? {{ xs:{type}($v) }}; "
        f"declare function qs:as-{type}($e as function(*), $c as function(*), $n as xs:string, $v as item()*) "
        f"as element()? {{ let $a := qs:single($e, $n, $v) return if (empty($a)) then () else "
        f'<p-{mark} n="{{$n}}" v="{{string($c($a))}}"/> }};'
        for type in dict.fromkeys([*SYSTEM.values(), *types])
    )


def cast(type: str) -> str:
    """A function that casts a value to a type and raises in place, whatever ``xs`` is bound to there."""
    return f"function($qs:v) {{ $qs:v cast as Q{{{PREFIXES['xs']}}}{type} }}"


def computed(definition: PropertyDefinition, text: str) -> str:
    """The element of a computed property of ``$qs:message``; its value is on its own lines."""
    made = f'qs:computed("{definition.name}", \n{text}\n)'
    if definition.fixed:
        return made
    return f'(if ($qs:p/@n = "{definition.name}" or $qs:h = "{definition.name}") then () else {made})'


def indexed(index: Index, mark: str) -> str:
    """The elements of an index's values; none for a message to which the expression does not apply."""
    return (
        f"(try {{ for $qs:v in distinct-values(data($qs:message ! ({index.expression})) "
        f"! substring(string(.), 1, {INDEXED_CHARS_MAX})) "
        f'return <k-{mark} n="{escaped(index.name)}" v="{{$qs:v}}"/> }} catch * {{ () }})'
    )


def escaped(text: str) -> str:
    """Text escaped for an attribute constructor in XQuery."""
    for character, word in (("&", "&amp;"), ("<", "&lt;"), ('"', "&quot;"), ("{", "{{"), ("}", "}}")):
        text = text.replace(character, word)
    return text
