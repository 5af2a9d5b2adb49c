"""Bodies: XML, JSON or text, each checked before it is stored."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final, NoReturn

from postroom.errors import BodyTooLarge, JsonMalformed, TextInvalid
from postroom.limits import BODY_BYTES_MAX, BODY_DEPTH_MAX
from postroom.model.digits import Digits


class Format(StrEnum):
    """The format of a body."""

    TEXT = "text"
    JSON = "json"
    XML = "xml"


#: By its name in the enumeration, Python 3.11 needs longer than to make a message.
TEXT: Final = Format.TEXT


def check_body(body: str, form: Format) -> None:
    """Raise unless ``body`` is valid in format ``form``."""
    check_text(body)
    if form is Format.XML:
        from postroom.model.xml import check_xml

        check_xml(body)
    elif form is Format.JSON:
        parse_json(body)


def is_text(text: str) -> bool:
    """Whether every store can hold it: no NUL, no lone surrogate."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def storable(text: str) -> str:
    """The text with replacement characters for those that no store can hold."""
    return text if is_text(text) else "".join(sign if is_text(sign) else "\N{REPLACEMENT CHARACTER}" for sign in text)


def check_text(body: str) -> None:
    """Raise unless ``body`` is text that every store can hold."""
    if body.isascii() and len(body) <= BODY_BYTES_MAX and "\0" not in body:  # most bodies, without encoding them
        return
    try:
        encoded = body.encode()
    except UnicodeEncodeError as error:
        raise TextInvalid(why=f"character {error.start + 1} is half of a surrogate pair") from None
    if len(encoded) > BODY_BYTES_MAX:
        raise BodyTooLarge(size=len(encoded), limit=BODY_BYTES_MAX)
    if b"\0" in encoded:
        raise TextInvalid(why=f"character {body.index(chr(0)) + 1} is NUL")


def parse_json(text: str, *, exact: bool = False, digits: bool = False) -> Any:
    """The value of a JSON text: no NaN, no duplicate names, no deep nesting, no forbidden characters.

    With ``exact``, numbers with a point come as decimals and keep all their digits; with ``digits``, as floats that
    ``digits_json`` writes as they were.
    """
    value = _parsed(text, _exact if exact else _digital if digits else _strict)
    if "\\u" in text:
        _check_strings(value)
    return value


def _parsed(text: str, decoder: json.JSONDecoder) -> Any:
    try:
        value = _value(text, decoder)
    except json.JSONDecodeError as error:
        raise JsonMalformed(why=f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise JsonMalformed(why=f"values nest deeper than {BODY_DEPTH_MAX}") from None
    except ValueError as error:  # an integer with more digits than Python takes from a stranger
        raise JsonMalformed(why=str(error)) from None
    if text.count("{") + text.count("[") > BODY_DEPTH_MAX:  # with fewer it cannot be deeper
        _check_depth(value)
    return value


def parse_request(text: str) -> Any:
    """The value of a JSON text that has arguments; what no message can have is left to whatever takes it.

    So NaN, too large a number, NUL and half of a surrogate pair are refused in the same words as from a program.
    """
    return _parsed(text, _loose)


def _value(text: str, decoder: json.JSONDecoder) -> Any:
    """The value of a text; one without spaces around it, as most are, is not searched for them."""
    try:
        value, end = decoder.raw_decode(text)
    except json.JSONDecodeError:
        if text.startswith("\ufeff"):
            raise json.JSONDecodeError("a byte order mark is no part of JSON", text, 0) from None
        return decoder.decode(text)
    return value if end == len(text) else decoder.decode(text)


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode  # made once


def json_text(value: Any) -> str:
    """The JSON text of a Python value in canonical form."""
    try:
        return _encode(value)
    except TypeError:
        return _typed_text(value)
    except (ValueError, RecursionError) as error:
        raise JsonMalformed(why=_why(error, value)) from None


def _why(error: Exception, value: Any) -> str:
    """Why a value is no JSON: of a number, in the words of a text that has it."""
    if not isinstance(error, ValueError):
        return str(error)
    with suppress(RecursionError):  # it has itself as a part
        number = next((item for item in _floats(value) if item - item != 0), None)
        return str(error) if number is None else f"{json.dumps(number)} is not a JSON number"
    return str(error)


def _floats(value: Any) -> Iterator[float]:
    """The floats in a value that would be JSON without them."""
    if isinstance(value, float):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _floats(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _floats(item)
    elif value is not None and not isinstance(value, (str, int)):
        from postroom.model.typed import plain

        yield from _floats(plain(value))


def _typed_text(value: Any) -> str:
    """The JSON text of a value that contains dataclasses, times, decimals and the like."""
    from postroom.model.typed import plain  # most bodies need nothing of it

    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise JsonMalformed(why=_why(error, value)) from None


def _finite(digits: str) -> float:
    number = float(digits)
    if number - number != 0:
        raise JsonMalformed(why=f"{digits[:40]} is too large for a number")
    return number


def _no_constant(name: str) -> NoReturn:
    raise JsonMalformed(why=f"{name} is not a JSON number")


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        double = Counter(name for name, _ in pairs).most_common(1)[0][0]  # in one pass: an attacker chooses how many
        raise JsonMalformed(why=f"the name {double!r} appears twice in one object")
    return value


# Made once: making one takes as long as reading a short body.
_strict = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant, object_pairs_hook=_no_doubles)
_loose = json.JSONDecoder(object_pairs_hook=_no_doubles)
_exact = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_constant, object_pairs_hook=_no_doubles)
_digital = json.JSONDecoder(parse_float=Digits, parse_constant=_no_constant, object_pairs_hook=_no_doubles)


def _check_depth(value: Any) -> None:
    layer, depth = [value], 0
    while layer:
        depth += 1
        if depth > BODY_DEPTH_MAX:
            raise JsonMalformed(why=f"values nest deeper than {BODY_DEPTH_MAX}")
        below: list[Any] = []
        for item in layer:
            if isinstance(item, dict):
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
        layer = [item for item in below if isinstance(item, (dict, list))]


def _check_strings(value: Any) -> None:
    """Raise if an escape stands for a character that text may not have."""
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            todo.extend(item)
            todo.extend(item.values())
        elif isinstance(item, list):
            todo.extend(item)
        elif isinstance(item, str) and not is_text(item):
            raise JsonMalformed(why="a string has the escape of NUL or of half a surrogate pair")
