"""Values held against the types that functions say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, TypedDict, Unpack

import pytest

from postroom.errors import ArgumentInvalid
from postroom.model.arguments import check_methods, check_of, parameter_types


@pytest.mark.parametrize(
    ("hint", "right", "wrong"),
    [
        (str, ["", "x"], [None, 1, b"x"]),
        (int, [0, -1, 10**30], [True, 1.0, "1", None]),
        (float, [1, 1.5, float("nan"), Fraction(1, 2)], [True, "1", None, Decimal(1), 10**400]),
        (bool, [True, False], [0, 1, None, "yes"]),
        (float | Literal[True] | None, [1.0, True, None], [False, "x"]),
        (Sequence[str], [[], ["a"], ("a", "b")], ["a", [1], {"a"}, None]),
        (str | Sequence[str], ["a", ["a"]], [[None], 1]),
        (Iterable[Any], [[], iter([]), {"a"}], ["text", b"x", 1]),
        (tuple[str, ...], [(), ("a",)], [["a"], ("a", 1)]),
        (Mapping[str, Any], [{}, {"a": 1}], [[], "x"]),
        (Callable[[], str] | str, ["x", str], [1, None]),
        (datetime, [datetime(2026, 1, 1)], ["2026-01-01", 1]),
    ],
)
def test_a_value_is_of_a_type_or_not(hint: Any, right: list[Any], wrong: list[Any]) -> None:
    check = check_of(hint)
    assert check is not None
    assert [value for value in right if not check.fits(value)] == []
    assert [value for value in wrong if check.fits(value)] == []


def test_what_says_nothing_takes_anything() -> None:
    assert check_of(Any) is None
    assert check_of(str | Any) is None
    assert check_of(object) is None


def far(one: elsewhere.Thing | None, two: Unknown | None, three: int) -> None:  # type: ignore[name-defined]  # noqa: F821
    """Of types that only type checkers import."""


def test_types_that_are_not_imported_are_anything() -> None:
    types = parameter_types(far)
    assert [check_of(types[name]) for name in ("one", "two")] == [None, None]
    assert types["three"] is int


class Options(TypedDict, total=False):
    """What may be given by name."""

    size: int


@check_methods
class Thing:
    """One with methods."""

    def put(self, name: str, *rest: int, wait: float | None = None) -> tuple[str, tuple[int, ...], float | None]:
        """Something."""
        return name, rest, wait

    def set(self, **options: Unpack[Options]) -> Options:
        return options

    @contextmanager
    def inside(self, name: str) -> Iterator[str]:
        yield name


def test_methods_refuse_what_is_of_another_type_and_name_it() -> None:
    thing: Any = Thing()
    assert thing.put("a", 1, 2, wait=3) == ("a", (1, 2), 3)
    assert thing.put(name="a") == ("a", (), None)
    with pytest.raises(ArgumentInvalid, match="name: text is expected, not None"):
        thing.put(None)
    with pytest.raises(ArgumentInvalid, match="rest: a whole number is expected, not str"):
        thing.put("a", 1, "2")
    with pytest.raises(ArgumentInvalid, match="wait: a number or None is expected, not str"):
        thing.put("a", wait="2")
    with pytest.raises(TypeError):
        thing.put("a", nothing=1)
    assert thing.put.__name__ == "put"
    assert Thing.put.__doc__ == "Something."


def test_names_that_are_none_are_refused() -> None:
    thing: Any = Thing()
    assert thing.set(size=1) == {"size": 1}
    with pytest.raises(ArgumentInvalid, match="nope: there is no such name; one of size"):
        thing.set(nope=1)
    with pytest.raises(ArgumentInvalid, match="size"):
        thing.set(size="1")


def test_a_block_is_refused_before_it_is_entered() -> None:
    thing: Any = Thing()
    with thing.inside("a") as name:
        assert name == "a"
    with pytest.raises(ArgumentInvalid):
        thing.inside(1)
