"""The graph as a picture and a table, with subscriptions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.interfaces.http.conftest import Served
from tests.interfaces.web.conftest import PASSWORD, Browser, browser, taken_back, way_back

from postroom.interfaces.web.definitions.flow_page import WIDTH, arc_rates, placed
from postroom.limits import ARC_RATES_SECONDS

TRADES = """domain trading
space Trades : [issue: string, price: int]
space Big : [issue: string, price: int]
arc big : Trades -> Big select [price: p > 100]
"""


def test_the_graph_is_drawn_and_told(shop: Served, operator: Browser, tmp_path: Path) -> None:
    assert "No arcs." in operator.get("/flows").text
    (tmp_path / "trades.flow").write_text(TRADES)
    shop.room.load(tmp_path / "trades.flow")
    shop.room.flows.add_principal("client", PASSWORD)
    shop.room.flows.client("client", PASSWORD).subscribe("Big")
    boxes = placed(shop.room.flows.graph())
    assert boxes["Trades"].x < boxes["Big"].x
    text = operator.get("/flows").text
    assert text.count("<rect ") == len(boxes)
    for said in ("<path d=", "price", "enabled", "client", "connected"):
        assert said in text


def test_what_an_arc_is_called_and_does_is_not_hidden_by_spaces(
    shop: Served, operator: Browser, tmp_path: Path
) -> None:
    name = "those_that_are_dear_and_many"
    (tmp_path / "trades.flow").write_text(TRADES.replace("arc big ", f"arc {name} "))
    shop.room.load(tmp_path / "trades.flow")
    shop.room.flows.add_principal("client", PASSWORD)
    shop.room.flows.client("client", PASSWORD).subscribe("Big")  # so that events stay there, and are counted
    text = operator.get("/flows").text
    picture = text[text.index('<svg class="flow"') :].partition("</svg>")[0]
    labels = re.findall(r'<text class="rate" x="(\d+)"[^>]*>(?:<title>([^<]*)</title>)?([^<]*)</text>', picture)
    assert labels
    assert name in {title for _, title, _ in labels}
    assert any(said.endswith("/min") for _, _, said in labels)
    spaces = [(box.x, box.x + WIDTH) for box in placed(shop.room.flows.graph()).values()]
    for middle, _, said in labels:
        half = len(said) * 7 / 2  # as wide as a sign may be
        assert not any(left < int(middle) + half and int(middle) - half < right for left, right in spaces), said
    assert picture.rindex("<rect ") < picture.index('<text class="rate"')  # and nothing is drawn over it


POLICY = """allow keeper : addArc, deleteArc, addSpace, deleteSpace, disableArc, enableArc
allow * : requestDeleteArc
"""


def state(shop: Served, arc: str) -> str | None:
    return next((each.state for each in shop.room.flows.graph().arcs if each.name == arc), None)


def opened(shop: Served, folder: Path) -> tuple[Browser, Browser, Browser]:
    """A keeper whom the domain allows everything, a clerk who may publish there, and one who may only look."""
    (folder / "trades.flow").write_text(TRADES + POLICY)
    shop.room.load(folder / "trades.flow")
    found = []
    for name in ("keeper", "clerk", "watcher"):
        shop.room.flows.add_principal(name, PASSWORD)
        shop.room.access.grant(name, "look", "*")
        if name != "watcher":
            shop.room.access.grant(name, "publish", "meta:trading")
        found.append(browser(shop.url))
        found[-1].sign_in(name)
    return found[0], found[1], found[2]


DISABLED = {"do": "enableArc", "domain": "trading", "arc": "big"}


def test_the_graph_is_changed_as_far_as_its_domain_allows(shop: Served, tmp_path: Path) -> None:
    keeper, *_ = several = opened(shop, tmp_path)
    assert "Disable<span" in keeper.get("/flows").text
    disabled = keeper.post("/flows", do="disableArc", domain="trading", arc="big")
    assert "disableArc in trading" in disabled.text
    assert state(shop, "big") == "disabled"
    assert way_back(disabled) == "Enable it again"
    enabled = taken_back(keeper, disabled)
    assert state(shop, "big") == "enabled"
    assert way_back(enabled) == "Disable it again"
    assert several[1].client.post(disabled.url, data=DISABLED, headers={"origin": shop.url}).status_code == 403
    taken_back(keeper, enabled)
    assert state(shop, "big") == "disabled"
    text = keeper.get("/flows").text
    assert "Enable<span" in text
    assert "Disable<span" not in text
    assert "DisableArc" in text  # the meta-space tells it
    assert "arcName big" in text
    keeper.post("/flows", do="enableArc", domain="trading", arc="big")
    assert state(shop, "big") == "enabled"
    more = {"domain": "trading", "space": "Small", "type": "[issue: string, price: int]"}
    assert keeper.post("/flows", do="addSpace", **more).status_code == 200
    ends = {"domain": "trading", "arc": "small", "source": "Trades", "target": "Small"}
    keeper.post("/flows", do="addArc", **ends, func="Select", pattern="[price: p < 5]")
    keeper.post("/flows", do="addArc", **{**ends, "arc": "all"}, func="Merge")
    shape = {"func": "Transform", "pattern": "[issue: i, price: p]", "result": "[issue: i, price: p * 2]"}
    keeper.post("/flows", do="addArc", **{**ends, "arc": "twice"}, **shape)
    shop.room.flows.publish("Trades", {"issue": "A", "price": 3})
    shop.room.run(until_idle=True)
    assert sorted(message.value["price"] for message in shop.room.queues.peek("Small")) == [3, 3, 6]
    for name in ("small", "all", "twice"):
        keeper.post("/flows", do="deleteArc", domain="trading", arc=name)
        assert state(shop, name) is None
    for visitor in several:
        visitor.client.close()


def test_whom_the_domain_does_not_allow_it_changes_nothing(shop: Served, tmp_path: Path) -> None:
    keeper, clerk, watcher = several = opened(shop, tmp_path)
    version = shop.room.flows.graph().version
    text = clerk.get("/flows").text
    assert "Ask for its removal" in text
    assert "Disable<span" not in text
    refused = clerk.post("/flows", do="disableArc", domain="trading", arc="big")
    assert refused.status_code == 403
    assert "clerk may not disableArc in the domain trading" in refused.text
    assert "This needs the right publish on meta:trading." in watcher.get("/flows").text
    assert watcher.post("/flows", do="requestDeleteArc", domain="trading", arc="big").status_code == 403
    for odd in ({"domain": "nowhere", "arc": "big"}, {"domain": "trading"}, {"domain": "", "arc": "x"}):
        assert clerk.post("/flows", do="disableArc", **odd).status_code in (400, 403, 404), odd
    wrong = {"domain": "trading", "arc": "x", "source": "Trades", "target": "Big"}
    for more in ({"func": "Odd"}, {"func": "Select", "pattern": "[price"}, {"func": "Transform"}):
        assert keeper.post("/flows", do="addArc", **wrong, **more).status_code in (400, 422), more
    assert (shop.room.flows.graph().version, state(shop, "big")) == (version, "enabled")
    assert (
        "requestDeleteArc in trading" in clerk.post("/flows", do="requestDeleteArc", domain="trading", arc="big").text
    )
    assert "RequestDeleteArc" in watcher.get("/flows").text
    for visitor in several:
        visitor.client.close()


CROSSED = (
    TRADES
    + """space Huge : [issue: string, price: int]
space Kept : [issue: string, price: int]
arc huge : Big -> Huge select [price: p > 200]
arc also : Trades -> Huge select [price: p > 300]
arc kept : Trades -> Kept select any
"""
)


def test_rates_are_those_of_each_arc(shop: Served, operator: Browser, tmp_path: Path) -> None:
    """Two arcs lead to one space, and someone publishes there; what passes through a space is not counted."""
    (tmp_path / "trades.flow").write_text(CROSSED)
    shop.room.load(tmp_path / "trades.flow")
    for price in (1, 150, 250, 250, 350):
        shop.room.flows.publish("Trades", {"issue": "A", "price": price})
    shop.room.flows.publish("Huge", {"issue": "B", "price": 2})
    shop.room.run(until_idle=True)
    rates = arc_rates(shop.room, shop.room.flows.graph())
    assert rates.pop("trading:big") is None
    numbers = {name: round((rate or 0) * ARC_RATES_SECONDS) for name, rate in rates.items()}
    assert numbers == {"trading:huge": 3, "trading:also": 1, "trading:kept": 5}
    text = operator.get("/flows").text
    for name, rate in (("huge", "3.0/min"), ("also", "1.0/min")):
        assert re.search(rf">{name}</text><text [^>]*>{rate}</text>", text), name
    assert "not counted" in text


def test_the_newest_changes_are_shown_however_many_there_were(
    shop: Served, operator: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.interfaces.web.definitions.flow_page.META_EVENTS_SHOWN", 2)
    keeper, *several = opened(shop, tmp_path)
    for name in ("First", "Second", "Third"):
        keeper.post("/flows", do="addSpace", domain="trading", space=name, type="[issue: string]")
    changes = keeper.get("/flows").text.partition('id="meta"')[2]
    assert "Third" in changes
    assert changes.index("Third") < changes.index("Second")
    assert "First" not in changes
    assert 'href="/web/queues/meta%3Atrading"' in changes
    for visitor in (keeper, *several):
        visitor.client.close()
