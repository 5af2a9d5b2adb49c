"""The state of the lexer, and text without tokens: comments, and the content of constructors.

Inside a constructor only ``{`` … ``}`` and their content are tokens. Open brackets and elements are on one stack, so
there is no recursion.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple, NoReturn

from postroom.limits import PROGRAM_DEPTH_MAX, PROGRAM_TOKENS_MAX
from postroom.rules.language.lazy import lazy

START: Final = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
NCNAME: Final = rf"[{START}][{START}\-.0-9\u00b7\u0300-\u036f\u203f\u2040]*"
BLANK: Final = re.compile(r"[ \t\r\n]*")
_COMMENT_EDGE: Final = re.compile(r"\(:|:\)")
_CONSTRUCTOR: Final = lazy(rf"<(?:(?P<comment>!--)|(?P<instruction>\?)|(?P<tag>{NCNAME}(?::{NCNAME})?))")
_CONTENT: Final = re.compile(r"(?:[^<{}]+|\{\{|\}\})*")
_TEMPLATE: Final = re.compile(r"(?:[^\]`]+|\](?!``)|`(?!\{))*")
# Saxon 13 takes the { in a {{ of an attribute value for an expression when it looks for the end of the value. It then
# agrees with us about that end only if nothing before the }} opens a string, a comment or another brace.
_DOUBLED: Final = r"\{\{[^\"'&{}<(:`]*\}\}|\}\}"
_QUOTED: Final = {
    '"': re.compile(rf'(?:[^"<{{}}]+|""|{_DOUBLED})*'),
    "'": re.compile(rf"(?:[^'<{{}}]+|''|{_DOUBLED})*"),
}
_ATTRIBUTE: Final = lazy(rf"{NCNAME}(?::{NCNAME})?[ \t\r\n]*=[ \t\r\n]*[\"']")
_END_TAG: Final = lazy(rf"</({NCNAME}(?::{NCNAME})?)[ \t\r\n]*>")


class Unreadable(Exception):
    """A syntax error. Callers that know the file turn it into the user's error."""

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(what, offset)
        self.what = what
        self.offset = offset

    def __str__(self) -> str:
        return f"{self.what} (at {self.offset})"


class Token(NamedTuple):
    """``text`` is the source text, but for a variable ``$name`` without blanks and comments."""

    kind: str
    text: str
    start: int
    end: int


class Next(IntEnum):
    """What may come next: an operand, a type or an operator; after a type, ``*``, ``+`` and ``?`` belong to it."""

    OPERAND = 0
    TYPE = 1
    OPERATOR = 2
    TYPE_ENDED = 3


OPERAND, TYPE, OPERATOR, TYPE_ENDED = Next


@dataclass(slots=True)
class Namespace:
    """A prefix's scope, from the beginning of an element to its end: a declaration applies to its own tag, too."""

    prefix: str
    uri: str  # as written
    start: int
    end: int


@dataclass(slots=True)
class Frame:
    """Something open: a bracket, an element (in its tag or content), or a string constructor."""

    kind: str
    offset: int
    name: str = ""  # of the element, or what stands before the bracket
    quote: str = ""  # of the attribute value we are in
    type: bool = False  # parentheses of a type
    marks: int = 1
    declares: int = 0  # from which namespace on they are declared by this element
    prefix: str = ""  # the one that the attribute value we are in declares
    value: int = 0  # where it begins


class Markup:
    def __init__(self, text: str, start: int, end: int) -> None:
        self.text = text
        self.at = start + 1 if start == 0 and text.startswith("\ufeff") else start
        self.end = end
        self.found: list[Token] = []
        self.stack: list[Frame] = []
        self.namespaces: list[Namespace] = []
        self.next = OPERAND

    def _emit(self, kind: str, text: str) -> None:
        start = self.at
        self.at = end = start + len(text)
        self.found.append(Token(kind, text, start, end))

    def _push(self, frame: Frame) -> None:
        self.stack.append(frame)
        if len(self.stack) > PROGRAM_DEPTH_MAX:
            raise Unreadable(f"more than {PROGRAM_DEPTH_MAX} brackets and elements are open", self.at)

    def _refuse_length(self) -> NoReturn:
        raise Unreadable(f"a text of more than {PROGRAM_TOKENS_MAX} words and signs is not read", self.at)

    # --- comments ---

    def _comment(self, _: str) -> None:
        start, depth = self.at, 0
        for edge in _COMMENT_EDGE.finditer(self.text, start, self.end):
            depth += 1 if edge.group() == "(:" else -1
            if depth == 0:
                self.at = edge.end()
                return
        raise Unreadable("this comment has no closing :)", start)

    def _pragma(self, opening: str) -> None:
        """A token of its own: it changes the meaning of the braces after it, so it belongs to the expression."""
        start = self.at
        self._skip(opening, "#)", "pragma")
        self.found.append(Token("pragma", self.text[start : self.at], start, self.at))

    def _skip(self, opening: str, closing: str, what: str) -> None:
        at = self.text.find(closing, self.at + len(opening), self.end)
        if at < 0:
            raise Unreadable(f"this {what} has no closing {closing}", self.at)
        self.at = at + len(closing)

    # --- constructors ---

    def _less(self, _: str) -> None:
        match = _CONSTRUCTOR.match(self.text, self.at, self.end)
        lone = bool(self.found) and self.found[-1].text == "/"  # which may be all of an operand
        if self.next >= OPERATOR or (lone and match is None):
            following = self.text[self.at + 1 : min(self.at + 2, self.end)]
            self.next = OPERAND
            self._emit("symbol", "<" + following if following in ("<", "=") else "<")
            return
        if match is None:
            raise Unreadable("this < neither compares two values nor opens an element", self.at)
        self._construct(match)
        self._resume()

    def _construct(self, match: re.Match[str]) -> None:
        """Open an element, or read a whole comment or processing instruction."""
        if match["tag"]:
            self._push(Frame("element", self.at, name=match["tag"], declares=len(self.namespaces)))
            self._emit("open-constructor", match.group())
            self._tag()
            return
        start = self.at
        closing, what = ("-->", "comment") if match["comment"] else ("?>", "processing instruction")
        self._skip(match.group(), closing, what)
        if not self.stack or self.stack[-1].kind != "element":
            self.found.append(Token("open-constructor", match.group(), start, start + len(match.group())))
            self.found.append(Token("close-constructor", closing, self.at - len(closing), self.at))
            self.next = OPERATOR

    def _template(self, opening: str) -> None:
        self._push(Frame("``[", self.at))
        self._emit("open-constructor", opening)
        self._resume()

    def _resume(self) -> None:
        """Go on reading content until an enclosed expression begins or the outermost constructor is closed."""
        while self.stack and self.stack[-1].kind in ("element", "``["):
            frame = self.stack[-1]
            if len(self.found) > PROGRAM_TOKENS_MAX:
                self._refuse_length()
            if frame.kind == "``[":
                self._template_text(frame)
            elif frame.quote:
                self._attribute(frame)
            else:
                self._content(frame)

    def _enclose(self, opening: str) -> None:
        self._push(Frame(opening, self.at))
        self.next = OPERAND
        self._emit("symbol", opening)

    def _finish(self, closing: str) -> None:
        frame = self.stack.pop()
        self.next = OPERATOR
        self._emit("close-constructor", closing)
        if frame.kind == "element":
            for namespace in self.namespaces[frame.declares :]:
                namespace.end = min(namespace.end, self.at)

    def _tag(self) -> None:
        """Read a start tag up to its end or to the first attribute value."""
        frame = self.stack[-1]
        blank = BLANK.match(self.text, self.at, self.end)
        self.at = blank.end() if blank else self.at
        if self.text.startswith("/>", self.at, self.end):
            self._finish("/>")
        elif self.text.startswith(">", self.at, self.end):
            self.at += 1
        else:
            frame.quote = self._attribute_opening(frame)

    def _attribute_opening(self, frame: Frame) -> str:
        name = _ATTRIBUTE.match(self.text, self.at, self.end)
        if name is None and self.at >= self.end:
            raise Unreadable(f"the start tag of {frame.name} does not end", frame.offset)
        if name is None:
            raise Unreadable(f"in the start tag of {frame.name} an attribute with a quoted value is expected", self.at)
        self.at = frame.value = name.end()
        declared = name.group().partition("=")[0].rstrip()
        frame.prefix = declared.removeprefix("xmlns:") if declared.startswith("xmlns:") else ""
        return self.text[self.at - 1]

    def _attribute(self, frame: Frame) -> None:
        run = _QUOTED[frame.quote].match(self.text, self.at, self.end)
        self.at = run.end() if run else self.at
        if self.at >= self.end:
            raise Unreadable(f"an attribute value of {frame.name} has no closing quote", frame.offset)
        character = self.text[self.at]
        if self.text.startswith("{{", self.at, self.end):
            raise Unreadable("in this attribute value { must be written &#123; and } must be written &#125;", self.at)
        if character == "{":
            self._enclose("{")
        elif character == frame.quote:
            if frame.prefix:
                uri = self.text[frame.value : self.at]
                self.namespaces.append(Namespace(frame.prefix, uri, frame.offset, self.end))
            self.at += 1
            frame.quote = ""
            self._tag()
        else:
            raise Unreadable(f"{character} cannot stand in an attribute value", self.at)

    def _content(self, frame: Frame) -> None:
        run = _CONTENT.match(self.text, self.at, self.end)
        self.at = run.end() if run else self.at
        if self.at >= self.end:
            raise Unreadable(f"the element {frame.name} has no end tag", frame.offset)
        character = self.text[self.at]
        if character == "{":
            self._enclose("{")
        elif character == "}":
            raise Unreadable("a } in the content of an element must be doubled", self.at)
        elif self.text.startswith("</", self.at, self.end):
            self._end_tag(frame)
        elif self.text.startswith("<![CDATA[", self.at, self.end):
            self._skip("<![CDATA[", "]]>", "CDATA section")
        else:
            match = _CONSTRUCTOR.match(self.text, self.at, self.end)
            if match is None:
                raise Unreadable("this < opens nothing; in the content of an element it is written &lt;", self.at)
            self._construct(match)

    def _end_tag(self, frame: Frame) -> None:
        match = _END_TAG.match(self.text, self.at, self.end)
        if match is None:
            raise Unreadable(f"the end tag of {frame.name} is expected here", self.at)
        if match[1] != frame.name:
            raise Unreadable(f"the end tag {match[1]} does not close the element {frame.name}", self.at)
        self._finish(match.group())

    def _template_text(self, frame: Frame) -> None:
        run = _TEMPLATE.match(self.text, self.at, self.end)
        self.at = run.end() if run else self.at
        if self.at >= self.end:
            raise Unreadable("this string constructor has no closing ]``", frame.offset)
        if self.text[self.at] == "`":
            self._enclose("`{")
        else:
            self._finish("]``")
