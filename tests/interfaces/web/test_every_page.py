"""How every page looks in a real browser: nothing for axe to find, nothing wider than its window, in both themes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, expect
from tests.interfaces.http.conftest import Served
from tests.interfaces.web.browsing import PICTURES, SECONDS, bound, differs, screen, violations
from tests.interfaces.web.conftest import cookies_of, held
from tests.interfaces.web.filled import Sight, filled_office, sights

from postroom.interfaces.web.registry import PAGES

#: Those with most of the parts; the slow battery looks at all.
SOME = set(
    """
    waiting new-wrong form-overtaken query-found trace overview queue-held causes failures-dry programs-tried flows
    access refused nowhere sign-in
    """.split()
)
GUIDE = ("sign-in", "templates", "overview", "queue", "message-error", "sphere", "journal", "access")
#: No sight has what was typed for another one.
FORGET = "try { localStorage.clear(); } catch { /* a blank page has none */ }"
CONTRAST = "{runOnly: ['color-contrast']}"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A room of its own, so that nothing else changes by it."""
    with filled_office(tmp_path_factory.mktemp("filled")) as served:
        yield served


class Windows:
    """A window for each user, signed in."""

    def __init__(self, engine: Chromium, served: Served, scale: float = 1) -> None:
        self._pages: dict[str, Page] = {}
        self._served = served
        for name in ("clerk", "nobody"):
            context = engine.new_context(device_scale_factor=scale, viewport={"width": 1280, "height": 900})
            context.set_default_timeout(SECONDS)
            cookies = cookies_of(served, name)
            context.add_cookies([{"name": name, "value": value, "url": served.url} for name, value in cookies.items()])
            context.add_init_script(FORGET)
            self._pages[name] = context.new_page()

    def __enter__(self) -> Windows:
        return self

    def __exit__(self, *_: object) -> None:
        for page in self._pages.values():
            page.context.close()

    def see(self, sight: Sight) -> Page:
        page = self._pages[sight.user]
        page.set_viewport_size({"width": 1280, "height": 900})
        page.emulate_media(color_scheme="light")
        sight.look(self._served.url, page)
        return page


def too_wide(page: Page, width: int) -> int | None:
    """How wide the page is, if that is wider than its window."""
    page.set_viewport_size({"width": width, "height": 900})
    seen: int = page.evaluate("document.documentElement.scrollWidth")
    return seen if seen > width else None


def wrong_with(page: Page) -> list[str]:
    """What axe finds, and at which widths a page is wider than its window."""
    found = violations(page)
    wide = {width: too_wide(page, width) for width in (1600, 800, 400)}
    return found + [f"{seen} wide at {width}" for width, seen in wide.items() if seen]


def wrong_when_narrow_or_dark(page: Page) -> list[str]:
    """What axe finds at 400 points, as ``wrong_with`` leaves a page, and in the dark."""
    found = [f"narrow: {each}" for each in violations(page)]
    page.emulate_media(color_scheme="dark")
    return found + [f"dark: {each}" for each in violations(page, CONTRAST)]


def test_no_page_has_anything_for_axe_to_find_or_is_wider_than_its_window(filled: Served, engine: Chromium) -> None:
    some = [sight for sight in sights(filled) if sight.name in SOME]
    assert {sight.name for sight in some} == SOME
    with Windows(engine, filled) as windows:
        found = {sight.name: wrong for sight in some if (wrong := wrong_with(windows.see(sight)))}
        assert found == {}
        page = windows.see(some[0])
        page.evaluate("document.querySelector('main').append(document.createElement('img'))")
        page.evaluate("document.querySelector('h1').style.minWidth = '900px'")
        image, *wide = wrong_with(page)  # it can find something
        assert image.startswith("image-alt")
        assert [each.partition(" ")[2] for each in wide] == ["wide at 800", "wide at 400"]


@pytest.mark.slow
def test_nothing_is_wrong_with_any_page(filled: Served, engine: Chromium) -> None:
    with Windows(engine, filled) as windows:
        found = {}
        for sight in sights(filled):
            page = windows.see(sight)
            found[sight.name] = wrong_with(page) + wrong_when_narrow_or_dark(page)
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@pytest.mark.slow
def test_nothing_is_wrong_with_a_page_that_waits_for_an_answer(
    filled: Served, engine: Chromium, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = "/desk/Director/query/CLAIM?find=1&scope=global"
    asks = Sight("asking", asked, "1 of 2 places have answered.", press="Find")
    with Windows(engine, filled) as windows, held(monkeypatch) as (_, go):
        page = windows.see(asks)
        assert wrong_with(page) + wrong_when_narrow_or_dark(page) == []
        go.set()
        expect(page.locator("#found")).to_be_visible()


def test_the_screens_of_the_guide_are_as_the_pages_are(filled: Served, engine: Chromium) -> None:
    """Those that no story makes."""
    known = {sight.name: sight for sight in sights(filled)}
    with Windows(engine, filled) as windows:
        for name in GUIDE:
            screen(windows.see(known[name]), name)


def test_every_page_is_seen(filled: Served) -> None:
    """A page that is added is walked through, too."""
    paths = [sight.address.partition("?")[0] for sight in sights(filled)]
    unseen = [page.path for page in PAGES if not any(page.pattern.fullmatch(path) for path in paths)]
    assert unseen == ["/desk/{station}/query/{type}/export.{format}", "/find"]  # a file, and a way to other pages


@pytest.mark.slow
def test_every_page_looks_as_its_picture(tmp_path: Path, engine: Chromium) -> None:
    """At three widths, light and dark, of an office of its own; half as large as on a screen."""
    changed = []
    with filled_office(tmp_path) as own, Windows(engine, own, 0.5) as windows:
        for sight in sights(own):
            page = windows.see(sight)
            allowed = bound(page)
            for width, theme in product((400, 800, 1600), ("light", "dark")):
                page.set_viewport_size({"width": width, "height": 900})
                page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
                page.evaluate("scrollTo(0, 0)")
                now = page.screenshot(animations="disabled", caret="hide", type="jpeg", quality=60)
                kept = PICTURES / "pages" / f"{sight.name}-{width}-{theme}.jpg"
                difference = differs(page, now, kept)
                changed += [f"{kept.name} {difference:.3f}"] if difference >= allowed else []
        kept_names = {file.name.rsplit("-", 2)[0] for file in (PICTURES / "pages").iterdir()}
        assert kept_names == {sight.name for sight in sights(own)}
    assert changed == [], "look, and make them again with POSTROOM_SCREENS=1"


def test_a_narrow_page_and_a_dark_one_look_as_their_pictures(stage: Served, page: Page) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto(f"{stage.url}/web/desk/Director/new/CLAIM")
    screen(page, "new-400", folder=PICTURES)
    page.set_viewport_size({"width": 800, "height": 800})
    page.emulate_media(color_scheme="dark")
    page.goto(f"{stage.url}/web/desk/Director/new/CLAIM")
    screen(page, "new-800-dark", folder=PICTURES)
