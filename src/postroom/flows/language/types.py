"""Types of events: what a space holds. Written as in Table 1 of the Gryphon text, and printed the same way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from postroom.flows.language.words import Words, fail, whole

#: Table 1 has the first three; the meta-space uses boolean; the rest is what business messages are made of.
SCALARS = ("atom", "string", "int", "boolean", "float", "decimal", "date", "timestamp")
NUMBERS = ("int", "decimal", "float")  # in the order in which one may stand for the next


@dataclass(frozen=True, slots=True)
class Scalar:
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Bag:
    """Elements without an order."""

    of: Type

    def __str__(self) -> str:
        return f"{{{self.of}}}"


@dataclass(frozen=True, slots=True)
class List:
    """Elements in an order: a list."""

    of: Type

    def __str__(self) -> str:
        return f"({self.of})"


@dataclass(frozen=True, slots=True)
class Field:
    name: str | None
    type: Type

    def __str__(self) -> str:
        return f"{self.name}: {self.type}" if self.name else str(self.type)


@dataclass(frozen=True, slots=True)
class Tuple:
    fields: tuple[Field, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.fields))}]"

    def place(self, name: str) -> int | None:
        """The place of a field, by its name."""
        return next((place for place, field in enumerate(self.fields) if field.name == name), None)


@dataclass(frozen=True, slots=True)
class Union:
    """A value with a tag that tells its type: a variant."""

    tags: tuple[Field, ...]

    def __str__(self) -> str:
        return f"union [{', '.join(map(str, self.tags))}]"

    def of(self, tag: str) -> Type | None:
        return next((field.type for field in self.tags if field.name == tag), None)


Type = Scalar | Bag | List | Tuple | Union

#: Of a space that no arc leads to yet: it has no values.
UNTYPED = Union(())
ATOM, STRING, INT, BOOLEAN, FLOAT, DECIMAL, DATE, TIMESTAMP = map(Scalar, SCALARS)


def accepts(wanted: Type, given: Type) -> bool:
    """Whether a value of one type may be used where another is wanted: the same type, or a number without loss."""
    if isinstance(wanted, Scalar) and isinstance(given, Scalar):
        if wanted.name in NUMBERS and given.name in NUMBERS:
            return NUMBERS.index(given.name) <= NUMBERS.index(wanted.name)
        return wanted == given
    if isinstance(wanted, Tuple) and isinstance(given, Tuple):
        return len(wanted.fields) == len(given.fields) and all(
            (ours.name is None or theirs.name is None or ours.name == theirs.name) and accepts(ours.type, theirs.type)
            for ours, theirs in zip(wanted.fields, given.fields, strict=True)
        )
    if isinstance(wanted, Union) and isinstance(given, Union):
        tags = {tag.name: tag.type for tag in wanted.tags}
        return all(tag.name in tags and accepts(tags[tag.name], tag.type) for tag in given.tags)
    if isinstance(wanted, Bag) and isinstance(given, Bag):
        return accepts(wanted.of, given.of)
    return isinstance(wanted, List) and isinstance(given, List) and accepts(wanted.of, given.of)


def parse(text: str, file: str = "type") -> Type:
    return whole(text, file, read)


def read(words: Words) -> Type:
    """The type that comes next."""
    words.deeper()
    type = _read(words)
    words.higher()
    return type


def _read(words: Words) -> Type:
    if words.sign("{"):
        of = read(words)
        words.expect("}", "at the end of a bag")
        return Bag(of)
    if words.sign("("):
        of = read(words)
        words.expect(")", "at the end of a list")
        return List(of)
    if words.sign("["):
        return Tuple(tuple(_fields(words, tagged=False)))
    name = words.name("a type: atom, string, int, {…}, (…), […] or union […]")
    if name.text == "union":
        words.expect("[", "behind union")
        tags = tuple(_fields(words, tagged=True))
        if not tags:
            fail(name.position, "a union has at least one tag", "union-empty")
        return Union(tags)
    if name.text not in SCALARS:
        fail(name.position, f"{name.text} is not a type; simple ones are {', '.join(SCALARS)}", "type-unknown")
    return Scalar(name.text)


def _fields(words: Words, *, tagged: bool) -> Iterator[Field]:
    seen: set[str] = set()
    first = True
    while not words.sign("]"):
        if not first:
            words.expect(",", "between fields")
        first = False
        name = None
        if tagged or (words.next.kind == "name" and words.after_next.text == ":"):
            word = words.name("a tag")
            name = word.text
            words.expect(":", f"behind {name}")
            if name in seen:
                fail(word.position, f"{name} is there twice", "field-twice")
            seen.add(name)
        yield Field(name, read(words))
