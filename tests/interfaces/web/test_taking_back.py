"""What was done is taken back, and what cannot be undone is confirmed where its button is, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.interfaces.http.conftest import Served
from tests.interfaces.web.browsing import person, violations
from tests.interfaces.web.conftest import SHOP, served_office


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Served]:
    """An office of its own: what is done here would be in the pictures of others."""
    with served_office(tmp_path) as served:
        yield served


@contextmanager
def at_work(engine: Browser, served: Served, name: str, page: str) -> Iterator[Page]:
    with person(engine, served.url, name) as window:
        window.get_by_role("navigation").get_by_role("link", name=page, exact=True).click()
        yield window


def faultless(page: Page) -> None:
    """Nothing that axe finds, wide and light, narrow and dark; no wider than its window."""
    for width, theme in ((400, "dark"), (1280, "light")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        assert violations(page) == [], (width, theme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def ship(page: Page, *keys: str) -> None:
    for key in keys:
        page.get_by_label(f"Choose {key}").check()
    page.get_by_label("Ship the chosen to").fill("Ben")
    page.get_by_role("button", name="Ship", exact=True).click()


def test_forms_are_shipped_and_taken_back_until_they_were_got(own: Served, engine: Browser) -> None:
    room = own.room
    keys = room.stations.admitted("Ann").create_many("APPROVAL", [{"No": number} for number in range(3)])
    with at_work(engine, own, "clerk", "Desk") as page:
        ship(page, *keys[:2])
        told = page.get_by_role("status").filter(has_text="Shipped 2 forms to Ben.")
        expect(told).to_be_focused()
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name="Take them back")).to_be_focused()
        faultless(page)
        page.get_by_role("link", name="Overview").click()
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        page.get_by_role("button", name="Take them back").press("Enter")
        expect(page.get_by_role("status").filter(has_text="Took back")).to_be_focused()
        assert [room.journal.locate(key) for key in keys] == ["Ann"] * 3
        ship(page, keys[2])
        button = page.get_by_role("button", name="Take it back")
        expect(button).to_be_visible()
        assert room.stations.admitted("Ben").get() == [keys[2]]
        button.click()
        expect(page.get_by_role("alert")).to_contain_text(
            f"{keys[2]} is no longer in the mailbox: somebody has got it."
        )
        expect(page.get_by_role("alert")).to_be_focused()
        faultless(page)
        page.get_by_role("link", name="Overview").click()
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        expect(button).to_have_count(0)
        assert room.journal.locate(keys[2]) == "Ben"


def test_several_removals_are_agreed_to_at_once(own: Served, engine: Browser) -> None:
    """With the line ends that browsers send."""
    room = own.room
    more = SHOP + "create rule also for stock\n  if (/ask) then do enqueue <more/> into answers\n"
    with at_work(engine, own, "clerk", "Programs") as page:
        page.get_by_role("link", name="shop.demaq").click()
        page.get_by_role("textbox", name="Text").fill(more)
        page.get_by_role("button", name="Load", exact=True).click()
        expect(page.get_by_role("status").filter(has_text="0 removed.")).to_be_visible()
        page.get_by_role("link", name="shop.demaq").click()
        page.get_by_role("textbox", name="Text").fill("\n".join(SHOP.splitlines()[:4]) + "\n")
        page.get_by_role("button", name="Load", exact=True).click()
        asked = page.get_by_role("group", name="What this load removes")
        expect(asked).to_be_focused()
        expect(asked).to_contain_text("This load removes 2 definitions, and nothing was changed yet:")
        expect(asked).to_be_in_viewport()
        assert "create rule also" in room.definitions.files()["shop.demaq"].decode()
        faultless(page)
        asked.get_by_role("button", name="Load, and remove 2 definitions").click()
        expect(page.get_by_role("status").filter(has_text="2 removed.")).to_be_visible()
        assert "create rule" not in room.definitions.files()["shop.demaq"].decode()


def test_what_cannot_be_undone_is_opened_told_and_closed_again(own: Served, engine: Browser) -> None:
    own.room.consumers.schedule("nightly", "0 3 * * *", "answers", body="x")
    with at_work(engine, own, "clerk", "Access") as page:
        asks = page.locator("details.sure").filter(has_text="nightly")
        button = asks.get_by_role("button", name="Remove nightly")
        expect(button).to_be_hidden()
        asks.locator("summary").click()
        expect(asks).to_contain_text("Nothing more is sent by it. What it has sent stays.")
        expect(button).to_be_visible()
        faultless(page)
        button.focus()
        page.keyboard.press("Escape")
        expect(button).to_be_hidden()
        expect(asks.locator("summary")).to_be_focused()
        assert len(own.room.consumers.schedules()) == 1
        page.keyboard.press("Enter")
        button.click()
        expect(page.get_by_text("No schedules.")).to_be_visible()
        assert own.room.consumers.schedules() == []


def test_a_sphere_tells_what_an_abort_does_before_it_is_done(own: Served, engine: Browser) -> None:
    sphere = own.room.spheres.open("pay-7")
    for when in ("now", "commit", "commit"):
        sphere.send("orders", "<pay/>", when=when)
    with at_work(engine, own, "clerk", "Spheres") as page:
        page.get_by_role("link", name="pay-7").click()
        expect(page.locator("#would")).to_contain_text("Of its 3 sends, 1 is withdrawn, 2 are never sent.")
        faultless(page)
        page.get_by_role("button", name="Abort pay-7").click()
        expect(page.get_by_role("status").filter(has_text="pay-7 is ABORTED.")).to_be_visible()
        assert own.room.spheres.show("pay-7").sphere.state == "ABORTED"
