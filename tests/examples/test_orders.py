"""The shop: goods, cards and parcels, and services that are asked twice."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ORDERS = Path(__file__).parents[2] / "examples" / "orders"


@pytest.fixture
def shop() -> ModuleType:
    spec = importlib.util.spec_from_file_location("shop", ORDERS / "shop.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_order_ends_as_it_must(shop: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shop.main(tmp_path)
    assert capsys.readouterr().out.count("<letter to=") == 3


def test_goods_are_reserved_once_however_often_they_are_asked_for(shop: ModuleType, tmp_path: Path) -> None:
    inventory = shop.Inventory(tmp_path / "goods.db")
    inventory.fill(paper=3)
    assert [inventory.change("1", "paper", -2) for _ in range(2)] == ["reserved", "reserved"]
    assert inventory.change("2", "paper", -2) == "unavailable"
    assert inventory.change("3", "paper", 2) == "released"
    assert inventory.counts() == {"paper": 3}
