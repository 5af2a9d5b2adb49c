"""Reading little of a queue: ``qs:queue("x")[path = value]`` uses an index instead of the whole queue.

It recognises an equality between a path of the queue's messages and a value of the current message, at the call or at
every use of the variable that holds it. The rule is unchanged: the index returns what its predicate would select.
Anything else reads the whole queue.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from postroom.rules.compilation.plan import Key
from postroom.rules.language.body import Binding, Body, Call, Span
from postroom.rules.language.definitions import Program
from postroom.rules.language.prolog import Prolog
from postroom.rules.language.tokens import CLOSERS, Token, decoded, tokens

_PATH = frozenset({"/", "//", "@", ".", "*", "::"})
_PLACES = frozenset({"position", "last", "fn:position", "fn:last"})
_MAKERS = frozenset({"element", "attribute", "namespace", "processing-instruction", "validate"})  # before a name, too
#: Outside of brackets these make of a predicate something else than comparisons that all must hold.
_LOOSE = frozenset(
    {"or", ",", "if", "then", "else", "for", "let", "return", "some", "every", "satisfies", "switch", "typeswitch"}
)


@dataclass(frozen=True, slots=True)
class Keyed:
    """An index over the messages of a queue, and the expression of the key."""

    expression: str
    key: Key


@dataclass(frozen=True, slots=True)
class Piece:
    """An expression with its structure: the body of a rule or function."""

    text: str
    body: Body
    target: str = ""  # of the rule
    prolog: Prolog = field(default_factory=Prolog)  # of its module


def keyed_read(piece: Piece, call: Call, program: Program) -> Keyed | None:
    """The index that can answer a call of qs:queue; None if there is none."""
    return _Finder(piece, program).keyed(call)


class _Finder:
    def __init__(self, piece: Piece, program: Program) -> None:
        self._text = piece.text
        self._tokens, self._starts = _read(self._text)
        self._target = piece.target
        self._prolog = piece.prolog
        self._body = piece.body
        self._program = program

    def keyed(self, call: Call) -> Keyed | None:
        behind = self._behind(call.end)
        steps, at = self._steps(behind)
        if self._is(at, "["):
            return self._predicate(steps, at)
        holder = self._holder(call, at)
        if holder is None or holder.regrouped or not holder.uses or self._renamed(call.start):
            return None
        keys = set()
        for use in holder.uses:
            more, at = self._steps(self._behind(use.end))
            keys.add(self._predicate(steps + more, at) if self._is(at, "[") else None)
        return keys.pop() if len(keys) == 1 else None

    def _renamed(self, offset: int) -> bool:
        """Whether names may be in the namespace of a constructor here: then they do not match an index."""
        return any(
            "xmlns" in self._text[constructor.start : constructor.end]
            for constructor in self._body.constructors
            if constructor.start < offset < constructor.end
        )

    def _named(self, path: Sequence[Token]) -> str:
        """A path independent of declarations, because an index is shared by queries with others."""
        prefixes, default = self._prolog.namespaces, self._prolog.default
        if not prefixes and not default:
            return self._text[path[0].start : path[-1].end]
        names, at = [], path[0].start
        for number, token in enumerate(path):
            names.append(self._text[at : token.start])
            at = token.end
            before = path[number - 1].text if number else ""
            owner = path[number - 2].text if number > 1 and before == "::" else before
            axis = number + 1 < len(path) and path[number + 1].text == "::"
            prefix, _, local = token.text.rpartition(":")
            if token.kind != "name" or axis or token.text.startswith("Q{"):
                names.append(token.text)
            elif prefix in prefixes:
                names.append(f"Q{{{_braced(prefixes[prefix])}}}{local}")
            elif not prefix and default and owner not in ("@", "attribute"):
                names.append(f"Q{{{_braced(default)}}}{local}")
            else:
                names.append(token.text)
        return "".join(names)

    def _holder(self, call: Call, at: int) -> Binding | None:
        """The variable that holds exactly the call."""
        end = self._tokens[at - 1].end if at else 0
        for binding in self._body.bindings:
            if binding.kind == "let" and (binding.value.start, binding.value.end) == (call.start, end):
                return binding
        return None

    def _behind(self, offset: int) -> int:
        return bisect_left(self._starts, offset)

    def _is(self, at: int, text: str) -> bool:
        return at < len(self._tokens) and self._tokens[at].text == text

    def _steps(self, at: int) -> tuple[str, int]:
        """The steps of a path from here, with predicates that are paths; and the next token."""
        begin = at
        while at < len(self._tokens):
            if self._tokens[at].kind != "symbol":
                break
            if self._tokens[at].text in ("/", "//") and self._is_step(at + 1):
                attribute = self._tokens[at + 1].text == "@"
                if attribute and not self._is_step(at + 2):
                    break
                at += 3 if attribute else 2
            elif self._tokens[at].text == "[":
                close = self._close(at)
                inner = self._tokens[at + 1 : close]
                if not inner or not _is_path(inner):
                    break
                at = close + 1
            else:
                break
        if at == begin:
            return "", at
        return self._named(self._tokens[begin:at]), at

    def _is_step(self, at: int) -> bool:
        """Whether a name or ``@`` is a step, not a call, constructor, test or axis."""
        if not 0 <= at < len(self._tokens):
            return False
        token = self._tokens[at]
        following = self._tokens[at + 1] if at + 1 < len(self._tokens) else None
        if token.kind == "name":
            return token.text not in _MAKERS and (following is None or following.text not in ("(", "{", "::", "#"))
        return token.kind == "symbol" and token.text in ("@", "*")

    def _close(self, at: int) -> int:
        depth = 0
        for number in range(at, len(self._tokens)):
            text = self._tokens[number].text
            depth += (text in "([{") - (text in ")]}") if self._tokens[number].kind == "symbol" else 0
            if depth == 0:
                return number
        return len(self._tokens)

    def _predicate(self, steps: str, at: int) -> Keyed | None:
        """The first indexable equality in a predicate or a conjunction.

        Not beside an ``or``, which selects more, nor where positions are counted.
        """
        inside = self._tokens[at + 1 : self._close(at)]
        if self._renamed(self._tokens[at].start) or not _is_conjunction(inside):
            return None
        for part in _split(inside, "and"):
            sides = _split(part, "=")
            if len(sides) != 2:
                continue
            for path, value in (sides, sides[::-1]):
                key = self._key(value) if path and value and _is_path(path) else None
                if key is not None:
                    names = self._named(path)
                    return Keyed(f".{steps} ! ({names})" if steps else names, key)
        return None

    def _key(self, value: Sequence[Token], bound: bool = False) -> Key | None:
        first = value[0]
        if len(value) == 1 and first.kind == "string":
            literal = decoded(first)
            return None if literal is None else Key("literal", literal)
        if len(value) == 1 and first.kind == "variable" and not bound:
            return self._bound(first)
        if bound and first.text in ("/", "//") and _is_path(value):
            return Key("probe", self._named(value))
        call = next((call for call in self._body.calls if call.start == first.start), None)
        if call is None:
            return None
        rest = [token for token in value if token.start >= call.end]
        if call.name == "qs:message" and rest and rest[0].text in ("/", "//") and _is_path(rest):
            return Key("probe", f".{self._named(rest)}")
        if call.name in ("qs:slicekey", "qs:property") and not rest:
            return self._by_property(call)
        return None

    def _by_property(self, call: Call) -> Key | None:
        """Only strings: numbers compare by value, and the index has texts."""
        if call.name == "qs:slicekey":
            name = self._program.slicings[self._target].property
        else:
            name = call.literals[0] or ""
        known = self._program.properties.get(name)
        return Key("property", name) if known is not None and known.type == "string" else None

    def _bound(self, variable: Token) -> Key | None:
        binding = self._body.binding_of(Span(variable.start, variable.end))
        if binding is None or binding.kind != "let" or not binding.outer or self._renamed(binding.value.start):
            return None
        if sum(other.name == binding.name for other in self._body.bindings) > 1:  # rooms may lack an index for it
            return None
        span = binding.value
        inside = self._tokens[self._behind(span.start) : self._behind(span.end)]
        return self._key(inside, bound=True) if inside else None


def _braced(uri: str) -> str:
    return uri.replace("&", "&amp;").replace("{", "&#123;").replace("}", "&#125;")


@lru_cache(maxsize=4)
def _read(text: str) -> tuple[list[Token], list[int]]:
    """The tokens of a body with offsets; cached, because every call in it needs them."""
    words = tokens(text)
    return words, [token.start for token in words]


def _is_conjunction(part: Sequence[Token]) -> bool:
    """Whether a part is a conjunction of comparisons.

    An ``or``, a comma, a condition or a quantifier may select more; positions are counted among all messages.
    """
    if any(token.text in _PLACES for token in part):
        return False
    outside = _outside(part)
    return not any(
        token.text in _LOOSE and (token.kind == "name" or token.text == ",") and not _is_step_name(part, number)
        for number, token in outside
    )


def _outside(part: Sequence[Token]) -> Iterator[tuple[int, Token]]:
    """The tokens outside of brackets and constructors, with their indices."""
    depth = 0
    for number, token in enumerate(part):
        opens = token.kind == "open-constructor" or (token.kind == "symbol" and token.text in CLOSERS)
        closes = token.kind == "close-constructor" or (token.kind == "symbol" and token.text in CLOSERS.values())
        depth -= closes
        if not depth and not opens and not closes:
            yield number, token
        depth += opens


def _is_step_name(part: Sequence[Token], number: int) -> bool:
    return number > 0 and part[number - 1].text in ("/", "//", "@", "::")


def _is_path(part: Sequence[Token]) -> bool:
    """Whether a part has only names and slashes: no function, number, variable or position.

    Two adjacent names are an operator and an operand, as in ``a or b``.
    """
    steps = [token.kind == "name" or token.text in (".", "*") for token in part]
    names = any(token.kind == "name" for token in part)
    apart = not any(before and after for before, after in pairwise(steps))
    return names and apart and all(step or token.text in _PATH for step, token in zip(steps, part, strict=True))


def _split(part: Sequence[Token], word: str) -> list[Sequence[Token]]:
    """Split a part at a word or symbol outside of brackets."""
    cuts = [number for number, token in _outside(part) if token.text == word and not _is_step_name(part, number)]
    return [part[begin + 1 : end] for begin, end in pairwise([-1, *cuts, len(part)])]
