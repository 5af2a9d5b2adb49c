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
from postroom.model.body import json_text
from postroom.model.typed import fitted


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
