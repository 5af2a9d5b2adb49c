"""How every page looks in a real browser: nothing for axe to find, nothing wider than its window, in both themes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page
from tests.interfaces.http.conftest import Served
from tests.interfaces.web.browsing import AXE, PICTURES, SAME_FONTS, differs, failing, screen, sphere
from tests.interfaces.web.conftest import cookies_of_clerk, served_office

from postroom.interfaces.web.registry import PAGES

SOME = {"Ben", "CLAIM", "flows", "failures", "programs", "procedures"}


def every_address(stage: Served) -> list[str]:
    director = stage.room.stations.admitted("Director")
    key = director.create("CLAIM", {"No": 9, "Claimant": "Tower Inn", "Remarks": "x " * 200})
    director.ship(director.copy(key), "Ben")
    director.add_to_dossier("storm of Friday", key)
    ben = stage.room.stations.admitted("Ben")
    mail = ben.mail()[0].key
    desk = "/desk/Director"
    return [
        f"/desk/Ben?mail={mail}",
        "/desk/Ann",
        f"{desk}/new",
        f"{desk}/new/CLAIM",
        f"{desk}/forms/{key}",
        f"{desk}/dossier?name=storm%20of%20Friday",
        f"{desk}/query",
        f"{desk}/query/CLAIM?find=1&field:No=9&open={key}",
        f"{desk}/query/CLAIM?find=1&field:No=%3E",
        f"/trace/{key}",
        *(page.path for page in PAGES if page.group == "operators" and "{" not in page.path),
        "/overview?doctor=1",
        "/queues/orders",
        f"/messages/{key}",
        f"/messages/{failing(stage)}",
        f"/failures?key={failing(stage)}",
        "/programs?file=shop.demaq&before=1",
        "/templates?type=CLAIM",
        "/procedures?name=settle",
        f"/spheres?id={sphere(stage)}",
        "/you",
        "/nowhere",
    ]


def violations(page: Page, rules: str) -> list[str]:
    page.evaluate(AXE + "; null")
    found = page.evaluate(
        f"axe.run(document, {{resultTypes: ['violations'], ...{rules}}}).then((found) => found.violations)"
    )
    return [f"{each['id']} {[node['html'][:200] for node in each['nodes'][:2]]}" for each in found]


def too_wide(page: Page, width: int) -> int | None:
    """How wide the page is, if that is wider than its window."""
    page.set_viewport_size({"width": width, "height": 900})
    seen: int = page.evaluate("document.documentElement.scrollWidth")
    return seen if seen > width else None


def wrong_with(stage: Served, page: Page, addresses: Sequence[str]) -> list[str]:
    """What axe finds, and at which widths a page is wider than its window."""
    found = []
    for address in addresses:
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(f"{stage.url}/web{address}")
        found += [f"{address}: {each}" for each in violations(page, "{}")]
        wide = {width: too_wide(page, width) for width in (1600, 800, 400)}
        found += [f"{address} is {seen} wide at {width}" for width, seen in wide.items() if seen]
    return found


def test_no_page_has_anything_for_axe_to_find_or_is_wider_than_its_window(stage: Served, page: Page) -> None:
    """Some pages with most of the parts; the slow battery looks at all of them."""
    some = [each for each in every_address(stage) if each.split("?")[0].rpartition("/")[2] in SOME]
    assert len(some) >= len(SOME)
    assert wrong_with(stage, page, some) == []
    page.evaluate("document.querySelector('main').append(document.createElement('img'))")
    assert len(violations(page, "{}")) == 1  # it can find something


@pytest.mark.slow
def test_nothing_is_wrong_with_any_page(stage: Served, page: Page) -> None:
    assert wrong_with(stage, page, every_address(stage)) == []


@pytest.mark.slow
def test_axe_finds_nothing_on_any_page_in_the_dark(stage: Served, page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    found = []
    for address in every_address(stage):
        page.goto(f"{stage.url}/web{address}")
        found += [f"{address}: {each}" for each in violations(page, "{runOnly: ['color-contrast']}")]
    assert found == []


@pytest.mark.slow
def test_every_page_looks_as_its_picture(tmp_path: Path, engine: Chromium) -> None:
    """At three widths, light and dark, of an office of its own; half as large as on a screen."""
    changed = []
    with served_office(tmp_path) as own, engine.new_context(device_scale_factor=0.5) as context:
        cookies = [{"name": name, "value": value, "url": own.url} for name, value in cookies_of_clerk(own).items()]
        context.add_cookies(cookies)  # type: ignore[arg-type]
        with context.new_page() as page:
            for number, address in enumerate(every_address(own)):
                for width, theme in product((400, 800, 1600), ("light", "dark")):
                    page.set_viewport_size({"width": width, "height": 900})
                    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
                    page.goto(f"{own.url}/web{address}")
                    now = page.screenshot(animations="disabled", caret="hide", type="jpeg", quality=60)
                    kept = PICTURES / "pages" / f"{number:02}-{picture_name(address)}-{width}-{theme}.jpg"
                    difference = differs(page, now, kept)
                    changed += [f"{kept.name} {difference:.3f}"] if difference >= SAME_FONTS else []
    assert changed == [], "look, and make them again with POSTROOM_SCREENS=1"


def picture_name(address: str) -> str:
    """Without keys, which differ from run to run."""
    path, _, query = address.strip("/").partition("?")
    names = [part for part in path.split("/") if not part[:1].isdigit()]
    return "-".join([*names, *(pair.partition("=")[0].replace(":", "-") for pair in query.split("&") if pair)])


def test_a_narrow_page_and_a_dark_one_look_as_their_pictures(stage: Served, page: Page) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto(f"{stage.url}/web/desk/Director/new/CLAIM")
    screen(page, "new-400", folder=PICTURES)
    page.set_viewport_size({"width": 800, "height": 800})
    page.emulate_media(color_scheme="dark")
    page.goto(f"{stage.url}/web/desk/Director/new/CLAIM")
    screen(page, "new-800-dark", folder=PICTURES)
