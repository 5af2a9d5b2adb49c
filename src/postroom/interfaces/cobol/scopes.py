"""Finds where statements begin and end, for the phrases of a RECEIVE.

A RECEIVE with ``NO DATA`` or ``WITH DATA`` becomes an IF. The compiler ends an IF by itself wherever COBOL ends the
RECEIVE, but for two words: an ``ELSE`` or ``END-IF`` that belongs to an IF around it. Before those the translation
inserts the END-IF, so it tracks open IFs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field

from postroom.interfaces.cobol.tokens import Token

RECEIVE = "RECEIVE"
_IFS = frozenset({"IF", RECEIVE})  # what the compiler sees as an IF
_NESTING = {"IF", "EVALUATE", "PERFORM", "SEARCH"}  # have statements within them from their beginning
#: Which statements may have a phrase, by its word.
_PHRASES = {
    "END": frozenset({"READ", "RETURN", "SEARCH"}),
    "INVALID": frozenset({"READ", "WRITE", "REWRITE", "DELETE", "START"}),
    "SIZE": frozenset({"ADD", "SUBTRACT", "MULTIPLY", "DIVIDE", "COMPUTE"}),
    "OVERFLOW": frozenset({"STRING", "UNSTRING", "CALL"}),
    "EXCEPTION": frozenset({"CALL", "ACCEPT", "DISPLAY", "XML", "JSON"}),
    "EOP": frozenset({"WRITE"}),
    "END-OF-PAGE": frozenset({"WRITE"}),
    "WHEN": frozenset({"EVALUATE", "SEARCH"}),
}
_VERBS = frozenset(
    "ACCEPT ADD ALLOCATE ALTER CALL CANCEL CLOSE COMPUTE CONTINUE DELETE DISABLE DISPLAY DIVIDE ENABLE ENTRY EVALUATE "
    "EXIT FREE GENERATE GO GOBACK IF INITIALIZE INITIATE INSPECT JSON MERGE MOVE MULTIPLY OPEN PERFORM PURGE READ "
    "RECEIVE RELEASE RETURN REWRITE SEARCH SEND SET SORT START STOP STRING SUBTRACT SUPPRESS TERMINATE UNLOCK UNSTRING "
    "WRITE XML "
    # of some compilers
    "COMMIT DESTROY EXAMINE EXHIBIT INQUIRE MODIFY RAISE READY RESET RESUME ROLLBACK TRANSFORM VALIDATE".split()
)
#: Words beside verbs and ends of statements that may come where a statement has ended.
_FOLLOWING = {"ELSE", "AT", "DATA", "NEXT", "NO", "NOT", "ON", "WITH", *_PHRASES}
_NO_VERBS = {("EXIT", "PERFORM"), ("XML", "GENERATE"), ("JSON", "GENERATE")}


@dataclass(slots=True)
class _Statement:
    verb: str
    nesting: bool  # it has statements within it, and is open until something ends it
    alternative: bool = False  # it has its ELSE, or its second phrase
    phrases: set[str] = field(default_factory=set)  # that it has and can have once


class Scopes:
    """The open statements at a position of a sentence, innermost last."""

    def __init__(self) -> None:
        self._open: list[_Statement] = []

    def go_past(self, tokens: Sequence[Token], at: int) -> str:
        """Advance over a token; returns what to insert before it."""
        word, before = tokens[at].word, tokens[at - 1].word if at else ""
        if tokens[at].kind == "period":
            self._open.clear()
        elif word == "ELSE":
            return self._go_past_else()
        elif word in _PHRASES:
            if self._begins_phrase(tokens, at):
                self._go_past_phrase(word, negated=_is_negated(tokens, at))
        elif word.startswith("END-"):
            return self._go_past_end(word.removeprefix("END-"))
        elif word in _VERBS and (before, word) not in _NO_VERBS:
            self._begin(word, nesting=word in _NESTING and (word != "PERFORM" or _is_inline(tokens, at)))
        return ""

    def begin_statement(self) -> None:
        """Note that a translated statement begins; it becomes a call."""
        self._begin("", nesting=False)

    def begin_receive(self, *, whole: bool) -> None:
        """Note that a RECEIVE with phrases begins; ``whole`` if no second phrase follows."""
        self._begin(RECEIVE, nesting=True)
        self._open[-1].alternative = whole

    def second_phrase(self) -> str | None:
        """For WITH DATA after NO DATA: what to insert before it; None if no RECEIVE waits for one."""
        place = self._find({RECEIVE}, lacking=True)
        if place is None:
            return None
        self._open[place].alternative = True
        return _ended(self._drop_within(place))

    def end_receive(self) -> str | None:
        """For END-RECEIVE: what to insert before the end of the innermost one; None if none is open."""
        place = self._find({RECEIVE})
        if place is None:
            return None
        within = self._drop_within(place)
        self._open.pop()
        return _ended(within)

    def _begin(self, verb: str, *, nesting: bool) -> None:
        if self._open and not self._open[-1].nesting:
            self._open.pop()  # a statement without phrases ends where the next one begins
        self._open.append(_Statement(verb, nesting))

    def _begins_phrase(self, tokens: Sequence[Token], at: int) -> bool:
        """Whether a word starts its phrase here; ``DELIMITED BY SIZE`` and ``END PROGRAM`` do not."""
        word, before = tokens[at].word, tokens[at - 1].word if at else ""
        if word == "SIZE":
            return at + 1 < len(tokens) and tokens[at + 1].word == "ERROR"
        statement = self._open[-1].verb if self._open else ""
        return word != "END" or before in ("AT", "NOT") or statement in _PHRASES[word]

    def _go_past_else(self) -> str:
        place = self._find({"IF"}, lacking=True)
        if place is None:
            return ""  # the compiler will say it
        self._open[place].alternative = True
        within = self._drop_within(place)
        return _ended(within) if RECEIVE in within else ""

    def _go_past_end(self, verb: str) -> str:
        place = self._find({verb})
        if place is None:
            return ""
        within = self._drop_within(place)
        self._open.pop()
        return _ended(within) if verb == "IF" else ""

    def _go_past_phrase(self, word: str, *, negated: bool) -> None:
        """Advance over a phrase.

        It belongs to the innermost statement without such a phrase: one that has it ends here.
        """
        phrase = f"NOT {word}" if negated else word
        place = self._find(_PHRASES[word], without=phrase)
        if place is not None:
            self._drop_within(place)
            self._open[place].nesting = True
            if word != "WHEN":
                self._open[place].phrases.add(phrase)

    def _find(self, verbs: Set[str], *, lacking: bool = False, without: str = "") -> int | None:
        """The position of the innermost statement with one of these verbs and without a second part or a phrase."""
        for at in range(len(self._open) - 1, -1, -1):
            statement = self._open[at]
            had = (lacking and statement.alternative) or without in statement.phrases
            if statement.verb in verbs and not had:
                return at
        return None

    def _drop_within(self, place: int) -> list[str]:
        """Close the statements that are open within another; returns their verbs."""
        within = [statement.verb for statement in self._open[place + 1 :]]
        del self._open[place + 1 :]
        return within


def may_follow(token: Token) -> bool:
    """Whether a token may follow a complete statement."""
    return token.kind == "period" or token.word in _VERBS or token.word in _FOLLOWING or token.word.startswith("END-")


def _ended(verbs: Iterable[str]) -> str:
    return "END-IF " * sum(verb in _IFS for verb in verbs)


def _is_negated(tokens: Sequence[Token], at: int) -> bool:
    """Whether the phrase has ``NOT``: ``NOT ON SIZE ERROR``, ``NOT INVALID``."""
    before = [token.word for token in tokens[max(0, at - 2) : at]]
    return before[-1:] == ["NOT"] or before in (["NOT", "ON"], ["NOT", "AT"])


def _is_inline(tokens: Sequence[Token], at: int) -> bool:
    """Whether a PERFORM contains its statements instead of naming a paragraph."""
    words = [token.word or token.text for token in tokens[at + 1 : at + 40]]
    if not words or words[0] in ("UNTIL", "VARYING", "WITH", "TEST", "FOREVER"):
        return True
    place = 1
    while place < len(words) and words[place] in ("OF", "IN"):
        place += 2
    if place < len(words) and words[place] == "(" and ")" in words:
        place = words.index(")") + 1
    return place < len(words) and words[place] == "TIMES"
