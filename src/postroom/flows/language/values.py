"""Events as values: read from Gryphon's literals or from JSON, checked against their type, written as canonical JSON.

A tuple is a JSON object (a field without a name is ``_1``, ``_2`` … by its place), a variant an object with one tag, a
bag or a list an array. A bag's elements are sorted, so that equal bags have equal JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

from postroom.errors import EventInvalid, FlowInvalid
from postroom.flows.language.types import Bag, List, Scalar, Tuple, Type, Union
from postroom.flows.language.words import Words, fail, string, whole
from postroom.limits import DECIMAL_EXPONENT_MAX
from postroom.model.body import is_text, json_text

INTEGERS = range(-(2**63), 2**63)
DECIMAL_DIGITS, DECIMAL_PLACES = 38, 18  # of which Spark can compare every one
_PLACES = Decimal(1).scaleb(-DECIMAL_PLACES)
_WHOLE = Decimal(10) ** (DECIMAL_DIGITS - DECIMAL_PLACES)
_EXACT = Context(prec=3000, rounding=ROUND_HALF_UP)  # Python's own would round to 28 digits


@dataclass(frozen=True, slots=True)
class Tagged:
    """A variant's value."""

    tag: str
    value: Any


@dataclass(frozen=True, slots=True)
class Named:
    """A literal tuple's element that was given with a name."""

    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal as it was written; its value depends on the wanted type."""

    kind: str  # string, number, word, bag, list, tuple, tagged
    value: Any


def parse_event(text: str, type: Type, space: str) -> Any:
    """Parse a Gryphon literal or a JSON document as an event of its space's type."""
    if not text.strip():
        raise EventInvalid(space=space, what="there is no event", type=str(type))
    try:
        given = json.loads(text, parse_float=decimal_of, object_pairs_hook=object_of)
    except ValueError:
        try:
            literal = whole(text, "event", read_literal)
        except FlowInvalid as error:
            (problem,) = error.facts["problems"]
            where = f"{problem.position.line}:{problem.position.column}"
            raise EventInvalid(space=space, what=f"{where}: {problem.what}", type=str(type)) from None
        return fitted_literal(literal, type, space)
    except RecursionError:
        raise EventInvalid(space=space, what="it is nested too deeply", type=str(type)) from None
    return fitted(given, type, space)


def decimal_of(text: str) -> Decimal:
    """A number as it was written; raises for an absurd exponent."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{text[:40]} is not a number") from None
    if abs(number.adjusted()) > DECIMAL_EXPONENT_MAX:
        raise ValueError(f"{text[:40]} is too large or too small")
    return number


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; raises if a name appears twice."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name is there twice")
    return members


def fitted(given: Any, type: Type, space: str) -> Any:
    """Convert JSON data to a value of a type; raises if it does not fit."""
    return _Fitting(space, type).json(given, type, "")


def fitted_literal(given: Literal, type: Type, space: str) -> Any:
    """Convert a literal to a value of a type; raises if it does not fit."""
    return _Fitting(space, type).literal(given, type, "")


def value_of(literal: Literal, type: Type) -> Any:
    """The value of a literal where a type is wanted."""
    return fitted_literal(literal, type, "the pattern")


# --- literals -----------------------------------------------------------------------------------------------------


def read_literal(words: Words) -> Literal:
    words.deeper()
    literal = _read_literal(words)
    words.higher()
    return literal


def _read_literal(words: Words) -> Literal:
    if words.next.kind == "string":
        return Literal("string", string(words.take()))
    if words.is_sign("-") or words.next.kind == "number":
        minus = "-" if words.sign("-") else ""
        if words.next.kind != "number":
            words.refuse("a number")
        word = words.take()
        try:
            return Literal("number", decimal_of(minus + word.text))
        except ValueError as error:
            fail(word.position, str(error), "syntax")
    if words.sign("{"):
        return Literal("bag", _several(words, "}"))
    if words.sign("("):
        return Literal("list", _several(words, ")"))
    if words.sign("["):
        return Literal("tuple", _several(words, "]", named=True))
    word = words.name("a value")
    if words.sign(":"):
        return Literal("tagged", (word.text, read_literal(words)))
    return Literal("word", word.text)


def _several(words: Words, closing: str, *, named: bool = False) -> tuple[Any, ...]:
    values: list[Any] = []
    while not words.sign(closing):
        if values:
            words.expect(",", "between values")
        if named and words.next.kind == "name" and words.after_next.text == ":":
            name = words.take().text
            words.take()
            values.append(Named(name, read_literal(words)))
        else:
            values.append(read_literal(words))
    return tuple(values)


class _Fitting:
    """Converts input to a value of a type, or says where it does not fit."""

    def __init__(self, space: str, type: Type) -> None:
        self._space = space
        self._type = type

    def refuse(self, what: str, path: str) -> EventInvalid:
        where = f"{path.lstrip('.')}: " if path else ""
        return EventInvalid(space=self._space, what=f"{where}{what}", type=str(self._type))

    def literal(self, given: Literal, type: Type, path: str) -> Any:
        if isinstance(type, Scalar):
            return self._scalar(given, type, path)
        if isinstance(type, Bag | List):
            wanted = "bag" if isinstance(type, Bag) else "list"
            if given.kind != wanted:
                raise self.refuse(f"a {wanted} {type} is wanted", path)
            values = [
                self.literal(element, type.of, f"{path}[{place}]") for place, element in enumerate(given.value, 1)
            ]
            return in_order(values, type.of) if isinstance(type, Bag) else tuple(values)
        if isinstance(type, Union):
            if given.kind != "tagged":
                raise self.refuse(f"a tag is wanted, of {type}", path)
            tag, value = given.value
            return Tagged(tag, self.literal(value, self._tag(type, tag, path), f"{path}.{tag}"))
        if given.kind != "tuple":
            raise self.refuse(f"a tuple {type} is wanted", path)
        return self._tuple(given.value, type, path)

    def _tuple(self, given: tuple[Literal | Named, ...], type: Tuple, path: str) -> tuple[Any, ...]:
        values: dict[int, Any] = {}
        for number, part in enumerate(given):
            place: int | None = number
            value = part
            if isinstance(part, Named):
                place, value = type.place(part.name), part.value
                if place is None and number < len(type.fields) and isinstance(type.fields[number].type, Union):
                    place, value = number, Literal("tagged", (part.name, part.value))  # a tag, not a field's name
            if place is None:
                assert isinstance(part, Named)
                raise self.refuse(f"there is no field {part.name} in {type}", path)
            if place >= len(type.fields):
                raise self.refuse(f"{len(given)} fields are more than {type} has", path)
            if place in values:
                raise self.refuse(f"the field {label(type, place)} is there twice", path)
            field = type.fields[place]
            assert isinstance(value, Literal)
            values[place] = self.literal(value, field.type, f"{path}.{label(type, place)}")
        missing = [label(type, place) for place in range(len(type.fields)) if place not in values]
        if missing:
            raise self.refuse(f"the field {missing[0]} is missing", path)
        return tuple(values[place] for place in range(len(type.fields)))

    def _scalar(self, given: Literal, type: Scalar, path: str) -> Any:
        if given.kind == "number" and type.name in ("int", "float", "decimal"):
            return self._number(given.value, type, path)
        if given.kind == "word" and type.name == "boolean" and given.value in ("true", "false"):
            return given.value == "true"
        if given.kind == "word" and type.name == "atom":
            return given.value
        if given.kind == "string" and type.name not in ("int", "float", "boolean"):
            return self._text(given.value, type, path)
        raise self.refuse(f"a value of type {type} is wanted", path)

    def json(self, given: Any, type: Type, path: str) -> Any:
        if isinstance(type, Scalar):
            return self._json_scalar(given, type, path)
        if isinstance(type, Bag | List):
            if isinstance(type, Bag) and given == {}:
                return ()  # Gryphon's empty bag is JSON, too
            if not isinstance(given, list):
                raise self.refuse(f"an array is wanted, for {type}", path)
            values = [self.json(element, type.of, f"{path}[{place}]") for place, element in enumerate(given, 1)]
            return in_order(values, type.of) if isinstance(type, Bag) else tuple(values)
        if isinstance(type, Union):
            if not isinstance(given, Mapping) or len(given) != 1:
                raise self.refuse(f"an object with one tag is wanted, of {type}", path)
            ((tag, value),) = given.items()
            return Tagged(tag, self.json(value, self._tag(type, tag, path), f"{path}.{tag}"))
        return self._json_tuple(given, type, path)

    def _json_tuple(self, given: Any, type: Tuple, path: str) -> tuple[Any, ...]:
        if isinstance(given, list):
            if len(given) != len(type.fields):
                raise self.refuse(f"{len(type.fields)} values are wanted, for {type}", path)
            given = {label(type, place): value for place, value in enumerate(given)}
        if not isinstance(given, Mapping):
            raise self.refuse(f"an object is wanted, for {type}", path)
        labels = [label(type, place) for place in range(len(type.fields))]
        for name in given:
            if name not in labels:
                raise self.refuse(f"there is no field {name} in {type}", path)
        for name in labels:
            if name not in given:
                raise self.refuse(f"the field {name} is missing", path)
        return tuple(
            self.json(given[name], field.type, f"{path}.{name}")
            for name, field in zip(labels, type.fields, strict=True)
        )

    def _json_scalar(self, given: Any, type: Scalar, path: str) -> Any:
        if isinstance(given, bool):
            if type.name == "boolean":
                return given
        elif isinstance(given, int | Decimal) and type.name in ("int", "float", "decimal"):
            return self._number(Decimal(given), type, path)
        elif isinstance(given, str) and type.name not in ("int", "float", "boolean"):
            return self._text(given, type, path)
        raise self.refuse(f"a value of type {type} is wanted", path)

    def _number(self, given: Decimal, type: Scalar, path: str) -> Any:
        if not given.is_finite():
            raise self.refuse("the number is not finite", path)
        if type.name == "float":
            return self._float(given, path)
        if type.name == "decimal":
            number = fitting_decimal(given)
            if number is None or number != given:
                whole = DECIMAL_DIGITS - DECIMAL_PLACES
                raise self.refuse(
                    f"a decimal has at most {whole} digits before the point, {DECIMAL_PLACES} behind", path
                )
            return number
        if given != given.to_integral_value():
            raise self.refuse("a whole number is wanted", path)
        if given.adjusted() > 20 or int(given) not in INTEGERS:
            raise self.refuse("the whole number does not fit into 64 bits", path)
        return int(given)

    def _float(self, given: Decimal, path: str) -> float:
        number = float(given)
        if number - number != 0:
            raise self.refuse("the number is too large for a float", path)
        return number + 0.0  # there is one zero

    def _text(self, given: str, type: Scalar, path: str) -> Any:
        if not is_text(given):
            raise self.refuse("the text has characters that no text may have", path)
        try:
            if type.name == "decimal":
                return self._number(decimal_of(given), type, path)
            if type.name == "date":
                return date.fromisoformat(given)
            if type.name == "timestamp":
                moment = datetime.fromisoformat(given)
                return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, InvalidOperation, OverflowError):
            raise self.refuse(f"{given!r} is not a {type}", path) from None
        return given

    def _tag(self, type: Union, tag: str, path: str) -> Type:
        tagged = type.of(tag)
        if tagged is None:
            raise self.refuse(f"there is no tag {tag} in {type}", path)
        return tagged


def fitting_decimal(given: Decimal) -> Decimal | None:
    """A number as a decimal with its written places, rounded to the last allowed one; None if it is too large."""
    exponent = given.as_tuple().exponent
    assert isinstance(exponent, int)
    if -exponent > DECIMAL_PLACES:
        given = given.quantize(_PLACES, context=_EXACT)
    elif exponent > 0 and given.adjusted() < DECIMAL_DIGITS:
        given = given.quantize(Decimal(1), context=_EXACT)
    if given.copy_abs() >= _WHOLE:
        return None
    return given if given else given.copy_abs()  # there is one zero


def label(type: Tuple, place: int) -> str:
    """The name of a field in JSON and in Spark."""
    return type.fields[place].name or f"_{place + 1}"


def in_order(elements: Iterable[Any], type: Type) -> tuple[Any, ...]:
    """The elements of a bag in canonical order: by value, equal ones by their text."""
    return tuple(sorted(elements, key=lambda element: (_place(element, type, False), _place(element, type, True))))


def _place(value: Any, type: Type, written: bool) -> Any:
    """A sort key for values of a type: texts by characters, tuples and lists from the left, variants from the last
    tag."""
    if isinstance(type, Scalar):
        return format(value, "f") if written and type.name == "decimal" else value
    if isinstance(type, Bag | List):
        return tuple(_place(element, type.of, written) for element in value)
    if isinstance(type, Union):
        tags = [tag.name for tag in type.tags]
        tagged = type.of(value.tag)
        assert tagged is not None
        return -tags.index(value.tag), _place(value.value, tagged, written)
    return tuple(_place(part, field.type, written) for part, field in zip(value, type.fields, strict=True))


# --- writing ------------------------------------------------------------------------------------------------------


def canonical(value: Any, type: Type) -> str:
    """The canonical JSON of a value."""
    return json_text(as_json(value, type))


def as_json(value: Any, type: Type) -> Any:
    if isinstance(type, Scalar):
        return _scalar_json(value, type)
    if isinstance(type, Bag | List):
        return [as_json(element, type.of) for element in value]
    if isinstance(type, Union):
        tagged = type.of(value.tag)
        assert tagged is not None
        return {value.tag: as_json(value.value, tagged)}
    return {
        label(type, place): as_json(part, field.type)
        for place, (part, field) in enumerate(zip(value, type.fields, strict=True))
    }


def canonical_text(value: Any, type: Type) -> str:
    """A simple value as an event has it, without quotes."""
    plain = as_json(value, type)
    return plain if isinstance(plain, str) else json.dumps(plain)


def _scalar_json(value: Any, type: Scalar) -> Any:
    if type.name == "decimal":
        return format(value, "f")
    if type.name == "float":
        return value + 0.0  # there is one zero
    if type.name == "date":
        return value.isoformat()
    if type.name == "timestamp":
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return value
