"""CD entries: their clauses, and the storage that they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from postroom.interfaces.cobol.areas import DESTINATION_SIZE, INPUT_SIZE, IO_SIZE, NAME_SIZE, OUTPUT_HEAD
from postroom.interfaces.cobol.pictures import record_size
from postroom.interfaces.cobol.source import fail
from postroom.interfaces.cobol.tokens import Edits, Token
from postroom.limits import COBOL_TEXT_MAX

_X, _NINE = "PIC X({})", "PIC 9({})"
#: Items of each kind in the order of their places, with their pictures.
_INPUT = (
    *((name, _X.format(NAME_SIZE)) for name in ("QUEUE", "SUB-QUEUE-1", "SUB-QUEUE-2", "SUB-QUEUE-3")),
    ("DATE", _NINE.format(6)),
    ("TIME", _NINE.format(8)),
    ("SOURCE", _X.format(NAME_SIZE)),
    ("LENGTH", _NINE.format(4)),
    ("END", _X.format(1)),
    ("STATUS", _X.format(2)),
    ("COUNT", _NINE.format(6)),
)
_IO = (
    ("DATE", _NINE.format(6)),
    ("TIME", _NINE.format(8)),
    ("TERMINAL", _X.format(NAME_SIZE)),
    ("LENGTH", _NINE.format(4)),
    ("END", _X.format(1)),
    ("STATUS", _X.format(2)),
)
_OUTPUT = (("COUNT", _NINE.format(4)), ("LENGTH", _NINE.format(4)), ("STATUS", _X.format(2)))
_DESTINATION = (("ERROR", _X.format(1)), ("DESTINATION", _X.format(NAME_SIZE)))
_ITEMS = {"INPUT": _INPUT, "I-O": _IO, "OUTPUT": (*_OUTPUT, *_DESTINATION)}
#: The words of clauses, and the item that each is about. Of two words, the first is optional where that is clear.
_CLAUSES: dict[str, dict[tuple[str, ...], str]] = {
    "INPUT": {
        ("SYMBOLIC", "QUEUE"): "QUEUE",
        **{("SYMBOLIC", f"SUB-QUEUE-{n}"): f"SUB-QUEUE-{n}" for n in (1, 2, 3)},
        ("MESSAGE", "DATE"): "DATE",
        ("MESSAGE", "TIME"): "TIME",
        ("SYMBOLIC", "SOURCE"): "SOURCE",
        ("TEXT", "LENGTH"): "LENGTH",
        ("END", "KEY"): "END",
        ("STATUS", "KEY"): "STATUS",
        ("MESSAGE", "COUNT"): "COUNT",
    },
    "I-O": {
        ("MESSAGE", "DATE"): "DATE",
        ("MESSAGE", "TIME"): "TIME",
        ("SYMBOLIC", "TERMINAL"): "TERMINAL",
        ("TEXT", "LENGTH"): "LENGTH",
        ("END", "KEY"): "END",
        ("STATUS", "KEY"): "STATUS",
    },
    "OUTPUT": {
        ("DESTINATION", "COUNT"): "COUNT",
        ("TEXT", "LENGTH"): "LENGTH",
        ("STATUS", "KEY"): "STATUS",
        ("ERROR", "KEY"): "ERROR",
        ("SYMBOLIC", "DESTINATION"): "DESTINATION",
    },
}
for _items in _CLAUSES.values():
    # The word that says the item may stand alone: LENGTH, or END. So may DESTINATION, which is not its count.
    _items |= {(item,): item for words, item in _items.items() if words != ("DESTINATION", "COUNT")}
_STARTS = {words[0] for clauses in _CLAUSES.values() for words in clauses}


class Described(NamedTuple):
    """One CD: its name, its kind, and the record that has its area."""

    name: str
    kind: str  # INPUT, OUTPUT or I-O
    initial: bool
    record: str
    owners: Mapping[str, str] = {}  # of each data name, the record that has it, for names OF a CD


class _Entry:
    """Parses one CD entry, up to its period."""

    def __init__(self, tokens: Sequence[Token], at: int) -> None:
        self._tokens, self.at = tokens, at

    @property
    def next(self) -> Token:
        if self.at >= len(self._tokens):
            fail(self._tokens[-1].position, "the text ends within a CD entry", "cd")
        return self._tokens[self.at]

    def take(self) -> Token:
        token = self.next
        self.at += 1
        return token

    def accept(self, *words: str) -> bool:
        if self.next.word in words:
            self.at += 1
            return True
        return False

    def name(self, what: str) -> str:
        token = self.take()
        if token.kind != "word" or not any(map(str.isalpha, token.text)):
            fail(token.position, f"{what} is expected, not {token.text}", "cd")
        return token.text

    def clause(self, kind: str) -> str:
        """The item that the next words describe."""
        words = tuple(token.word for token in self._tokens[self.at : self.at + 2])
        length = next((length for length in (2, 1) if words[:length] in _CLAUSES[kind]), 0)
        if not length:
            fail(self.next.position, f"{self.next.text} begins no clause of a CD FOR {kind}", "cd")
        self.at += length
        return _CLAUSES[kind][words[:length]]


class _Clauses(NamedTuple):
    names: dict[str, str]
    occurs: int | None = None
    indexes: tuple[str, ...] = ()


def read_entry(tokens: Sequence[Token], at: int, number: int, edits: Edits) -> tuple[Described, int]:
    """Parse one CD entry and its records, which become storage; also returns the position after them."""
    entry = _Entry(tokens, at + 1)
    name = entry.name("the name of a CD").upper()
    entry.accept("FOR")
    initial = entry.accept("INITIAL")
    kind_token = entry.take()
    kind = kind_token.word or kind_token.text
    if kind not in _ITEMS or (initial and kind == "OUTPUT"):
        fail(kind_token.position, f"INPUT, OUTPUT or I-O is expected, not {kind_token.text}", "cd")
    clauses = _clauses(entry, kind)
    period = entry.take()
    if period.kind != "period":
        fail(period.position, f"a period is expected, not {period.text}", "cd")
    record, owners, end = _records(tokens, entry.at, number, edits)
    if record is not None:
        _check_size(tokens[entry.at : end], kind, clauses.occurs)
    own = f"POSTROOM-CD-{number}"
    if record is None or clauses.names or clauses.occurs:
        text = _storage(own, record, kind, clauses)
    else:
        text = ""
    edits.replace(tokens[at : entry.at], "" if record else text)
    if record and text:
        edits.insert_after(tokens[end - 1], "\n" + text)
    owners |= {name.upper(): own for name in (*clauses.names.values(), *clauses.indexes)}
    return Described(name, kind, initial, record or own, owners), end


def _clauses(entry: _Entry, kind: str) -> _Clauses:
    """The clauses of a CD in any order, or its items by position."""
    names: dict[str, str] = {}
    if entry.next.kind == "word" and entry.next.word not in _STARTS and kind != "OUTPUT":
        for item, _ in _ITEMS[kind]:
            names[item] = entry.name(f"a data name for {item}")
        return _Clauses(names)
    occurs: int | None = None
    indexes: tuple[str, ...] = ()
    while entry.next.kind != "period":
        begun = entry.next
        if kind == "OUTPUT" and begun.word == "DESTINATION" and _is_table(entry):
            if occurs is not None:
                fail(begun.position, "DESTINATION TABLE is given twice", "cd")
            occurs, indexes = _table(entry)
            continue
        item = entry.clause(kind)
        entry.accept("IS")
        if item in names:
            fail(begun.position, f"the clause for {item} is given twice", "cd")
        names[item] = entry.name("a data name")
    return _Clauses(names, occurs, indexes)


def _is_table(entry: _Entry) -> bool:
    entry.take()
    is_table = entry.next.word == "TABLE"
    entry.at -= 1
    return is_table


def _table(entry: _Entry) -> tuple[int, tuple[str, ...]]:
    entry.at += 2
    if not entry.accept("OCCURS"):
        fail(entry.next.position, f"OCCURS is expected, not {entry.next.text}", "cd")
    times = entry.take()
    if not times.text.isdigit() or not 0 < int(times.text) <= COBOL_TEXT_MAX:
        fail(times.position, f"a number of destinations is expected, not {times.text}", "cd")
    entry.accept("TIMES")
    indexes: list[str] = []
    if entry.accept("INDEXED"):
        entry.accept("BY")
        indexes.append(entry.name("the name of an index"))
        while entry.next.kind == "word" and entry.next.word not in _STARTS:
            indexes.append(entry.name("the name of an index"))
    return int(times.text), tuple(indexes)


def _records(tokens: Sequence[Token], at: int, number: int, edits: Edits) -> tuple[str | None, dict[str, str], int]:
    """The records after a CD: the first is its storage, others redefine it.

    Returns the name of the first, the record of each data name, and the position after them.
    """
    first: str | None = None
    current = ""
    owners: dict[str, str] = {}
    while at < len(tokens) and tokens[at].kind == "word" and tokens[at].text.isdigit():
        level = tokens[at]
        end = at
        while end < len(tokens) and tokens[end].kind != "period":
            end += 1
        if end == len(tokens):
            fail(level.position, "the text ends within a data description", "cd")
        if int(level.text) == 1:
            current = _record(tokens, at, first, number, edits)
            first = first or current
        owners.setdefault(tokens[at + 1].word, current)
        at = end + 1
    return first, owners, at


def _check_size(record: Sequence[Token], kind: str, occurs: int | None) -> None:
    """Raise unless the record of a CD has the length of the standard; skipped if pictures do not determine it."""
    size = record_size(record)
    if size is None:
        return
    wanted = size_of(kind, occurs or max(1, (size - OUTPUT_HEAD) // DESTINATION_SIZE))
    if size != wanted:
        fail(record[0].position, f"the record has {size} characters; one of a CD FOR {kind} has {wanted}", "cd")


def _record(tokens: Sequence[Token], at: int, first: str | None, number: int, edits: Edits) -> str:
    """Make a record the storage, or a redefinition of it; returns its name, which is generated if it has none."""
    token = tokens[at + 1]
    nameless = token.kind == "period" or token.word in ("FILLER", "PIC", "PICTURE", "REDEFINES", "USAGE", "VALUE")
    name = f"POSTROOM-RECORD-{number}-{at}" if nameless else token.text
    follows = tokens[at + (1 if nameless and token.word != "FILLER" else 2)]
    redefining = "" if first is None or follows.word == "REDEFINES" else f" REDEFINES {first}"
    if token.word == "FILLER":
        edits.replace([token], name + redefining)
    elif nameless:
        edits.insert_after(tokens[at], f" {name}{redefining}")
    elif redefining:
        edits.insert_after(token, redefining)
    return name


def _storage(own: str, record: str | None, kind: str, clauses: _Clauses) -> str:
    """The record of a CD with the names of its clauses."""
    lines = [f"01 {own}." if record is None else f"01 {own} REDEFINES {record}."]
    items = _OUTPUT if kind == "OUTPUT" else _ITEMS[kind]
    lines += [f"   02 {clauses.names.get(item, 'FILLER')} {picture}." for item, picture in items]
    if kind != "OUTPUT":
        return "\n".join(lines)
    level = "02"
    if clauses.occurs is not None:
        indexed = f" INDEXED BY {' '.join(clauses.indexes)}" if clauses.indexes else ""
        lines.append(f"   02 FILLER OCCURS {clauses.occurs} TIMES{indexed}.")
        level = "03"
    lines += [f"   {level} {clauses.names.get(item, 'FILLER')} {picture}." for item, picture in _DESTINATION]
    return "\n".join(lines)


def size_of(kind: str, destinations: int = 1) -> int:
    """How many characters the area of a CD has.

    >>> size_of("INPUT"), size_of("I-O"), size_of("OUTPUT", 3)
    (87, 33, 49)
    """
    sizes = {"INPUT": INPUT_SIZE, "I-O": IO_SIZE, "OUTPUT": OUTPUT_HEAD + DESTINATION_SIZE * destinations}
    return sizes[kind]
