"""Values of Python types as bodies, and back; what does not fit is told with its place."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, TypedDict
from uuid import UUID

import pytest

from postroom.errors import BodyMismatch, JsonMalformed
from postroom.model.body import json_text, parse_json
from postroom.model.typed import fitted, types_within


class Colour(Enum):
    RED = "red"


@dataclass
class Item:
    name: str
    price: Decimal
    colours: list[Colour] = field(default_factory=list)


@dataclass
class Order:
    id: UUID
    at: datetime
    day: date
    items: list[Item]
    note: str | None = None
    size: Literal["s", "m"] = "s"
    pairs: dict[str, float] = field(default_factory=dict)
    point: tuple[int, int] = (0, 0)


class Loose(TypedDict, total=False):
    a: int


ORDER = Order(
    UUID(int=7),
    datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    date(2026, 1, 2),
    [Item("paper", Decimal("1.50"), [Colour.RED])],
    pairs={"x": 1.5},
    point=(1, 2),
)


def test_what_is_written_reads_back() -> None:
    assert fitted(json.loads(json_text(ORDER)), Order) == ORDER
    assert json_text({"when": date(2026, 1, 2)}) == '{"when":"2026-01-02"}'


def test_a_set_is_written_as_a_list_and_always_the_same() -> None:
    assert (
        json_text({"tags": {"b", "a", "c"}})
        == json_text({"tags": frozenset({"c", "b", "a"})})
        == '{"tags":["a","b","c"]}'
    )
    assert fitted(json.loads(json_text({Colour.RED})), set[Colour]) == {Colour.RED}


def test_what_no_json_can_say_is_refused() -> None:
    with pytest.raises(JsonMalformed, match="object cannot be written"):
        json_text({"a": object()})


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"id": "x"}, "/id: UUID"),
        ({"at": 5}, "/at: datetime"),
        ({"items": [{"name": "a", "price": "1"}, {"name": "b", "price": "much"}]}, "/items/1/price: Decimal"),
        ({"items": [{"name": "a"}]}, "/items/0/price: a value"),
        ({"items": {}}, "/items: a list"),
        ({"items": [{"name": "a", "price": 1, "colours": ["blue"]}]}, "/items/0/colours/0: one of"),
        ({"note": 5}, "/note: str or NoneType"),
        ({"size": "xl"}, "/size: one of"),
        ({"pairs": {"x": "y"}}, "/pairs/x: float"),
        ({"point": [1]}, "/point: a list of 2"),
        ({"point": [1, True]}, "/point/1: int"),
        ({"other": 1}, "/other: there is no such field"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(change: dict[str, Any], place: str) -> None:
    body = {**json.loads(json_text(ORDER)), **change}
    with pytest.raises(BodyMismatch) as refused:
        fitted(body, Order)
    assert place in str(refused.value)


def test_other_types() -> None:
    assert fitted({"a": 1}, Loose) == {"a": 1}
    assert fitted({}, Loose) == {}
    assert fitted([1], Any) == [1]
    assert fitted(3, float) == 3.0
    with pytest.raises(BodyMismatch, match="/: an object"):
        fitted("text", Loose)
    with pytest.raises(TypeError, match="no type that a body can have"):
        fitted(1, bytes)


class Model:
    """As pydantic's models are: it needs no import of theirs."""

    def __init__(self, n: int) -> None:
        self.n = n

    @classmethod
    def model_validate(cls, value: Any) -> Model:
        if not isinstance(value.get("n"), int):
            raise ValueError("n is no number")
        return cls(value["n"])

    def model_dump(self, mode: str) -> dict[str, int]:
        return {"n": self.n}


def test_models_validate_themselves() -> None:
    assert fitted({"n": 1}, Model).n == 1
    assert json_text(Model(2)) == '{"n":2}'
    with pytest.raises(BodyMismatch, match="n is no number"):
        fitted({"n": "x"}, Model)


@dataclass
class Checked:
    share: Decimal
    rest: Any = None
    twice: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        if self.share > 1:
            raise ValueError("a share is at most 1")


def test_a_decimal_keeps_all_its_digits_and_nothing_else_becomes_one() -> None:
    body = parse_json('{"share": 0.10000000000000000555, "rest": [1.5, {"a": 2.50}]}', exact=True)
    read = fitted(body, Checked)
    assert str(read.share) == "0.10000000000000000555"
    assert repr(read.rest) == "[1.5, {'a': 2.5}]"
    assert repr(fitted(parse_json("2.50", exact=True), float)) == "2.5"
    assert repr(fitted(parse_json("2.50", exact=True), float | Decimal)) == "2.5"


def test_the_place_of_a_fault_within_what_may_be_missing() -> None:
    body = {"name": "a", "price": "much"}
    with pytest.raises(BodyMismatch, match="/0/price: Decimal"):
        fitted([body], list[Item] | None)
    with pytest.raises(BodyMismatch, match="/price: Decimal"):
        fitted(body, str | Item | None)
    with pytest.raises(BodyMismatch, match="/: Item or Order is wanted"):
        fitted({}, Item | Order)


def test_what_a_dataclass_refuses_itself_does_not_fit() -> None:
    with pytest.raises(BodyMismatch, match="/1: a share is at most 1"):
        fitted([{"share": 1}, {"share": 2}], list[Checked])
    with pytest.raises(BodyMismatch, match="/twice: there is no such field"):
        fitted({"share": 1, "twice": 2}, Checked)


def test_names_of_members_have_the_type_that_is_wanted() -> None:
    assert fitted(json.loads(json_text({1: "x"})), dict[int, str]) == {1: "x"}
    assert fitted({"2026-01-02": 1}, dict[date, int]) == {date(2026, 1, 2): 1}
    with pytest.raises(BodyMismatch, match="/x: int as its name"):
        fitted({"x": 1}, dict[int, int])


def test_the_types_within_a_type() -> None:
    assert {Decimal, Colour, date, int, Item} <= types_within(dict[int, Order | None])


@pytest.mark.parametrize("kind", [bytes, list[bytes], dict[str, complex], type, tuple[int, ...] | bytes])
def test_a_type_that_no_body_can_have(kind: Any) -> None:
    with pytest.raises(TypeError, match="no type that a body can have"):
        types_within(kind)


def test_a_strict_model_takes_what_it_has_written() -> None:
    pydantic = pytest.importorskip("pydantic")
    Strict = pydantic.create_model("Strict", __config__={"strict": True}, day=(date, ...), point=(tuple[int, int], ...))
    made = Strict(day=date(2026, 1, 2), point=(1, 2))
    assert fitted(json.loads(json_text(made)), Strict) == made
