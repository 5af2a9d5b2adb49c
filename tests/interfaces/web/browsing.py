"""A browser of the tests: signing in, and pages that look as their kept pictures."""

from __future__ import annotations

import os
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from playwright.sync_api import Browser, Page
from tests.interfaces.web.conftest import PASSWORD, without_complaints

AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text()
SECONDS = 60_000  # a bound, not a wait
#: Pictures of the guide, and others that are only compared. POSTROOM_SCREENS=1 makes them again.
SCREENS = Path(__file__).parents[3] / "docs" / "guide" / "images"
README = Path(__file__).parents[3] / "docs" / "pictures"
PICTURES = Path(__file__).parent / "pictures"
#: By how much pictures may differ. Other fonts make up to 0.032, a page without its style sheet at least 0.038, another
#: page 0.003 to 0.05, the same page in another run 0.0003.
OTHER_FONTS, SAME_FONTS = 0.035, 0.01
#: How wide the fonts of a page write some signs; what the kept pictures were made with is beside them.
FONTS = """() => ['--mono', '--sans'].map((name) => {
  const probe = document.createElement('span');
  probe.textContent = 'mmmmmmmmmmiiiiiiiiii0123456789';
  probe.style.cssText = `position: absolute; font: 100px var(${name})`;
  document.body.append(probe);
  const width = Math.round(probe.getBoundingClientRect().width);
  probe.remove();
  return width;
}).join(' ')"""
#: How much two pictures differ: the mean of all points of both at 96 by 64, from 0 to 1.
DIFFER = """async ([one, other]) => {
  const points = async (text) => {
    const image = new Image();
    image.src = text;
    await image.decode();
    const canvas = Object.assign(document.createElement('canvas'), { width: 96, height: 64 });
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0, 96, 64);
    return context.getImageData(0, 0, 96, 64).data;
  };
  const [a, b] = [await points(one), await points(other)];
  return a.reduce((sum, point, place) => sum + Math.abs(point - b[place]), 0) / a.length / 255;
}"""


#: Tells of each click of a mouse and each key. What a script clicks is not trusted; Enter clicks with no button.
ACTS = """for (const kind of ['click', 'keydown']) {
  addEventListener(kind, (event) => {
    if (event.isTrusted && (event.detail || kind === 'keydown')) acted(kind);
  }, true);
}"""


def sign_in(page: Page, url: str, name: str) -> None:
    page.goto(url)
    page.get_by_label("Name").press_sequentially(name)
    page.get_by_label("Password").press_sequentially(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda address: "/sign-in" not in address)


@contextmanager
def person(engine: Browser, url: str, name: str, acts: Counter[str] | None = None) -> Iterator[Page]:
    """The window of someone with an address, a name and a password, who then goes only where the pages lead.

    ``acts`` counts clicks and keys, also those for signing in.
    """

    def refused(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError(f"{name} knows one address only")

    with engine.new_context(viewport={"width": 1280, "height": 900}) as context:
        context.set_default_timeout(SECONDS)
        if acts is not None:
            context.expose_function("acted", lambda kind: acts.update([kind]))
            context.add_init_script(ACTS)
        with without_complaints(context.new_page()) as page:
            sign_in(page, url, name)
            page.goto = page.reload = page.go_back = refused  # type: ignore[method-assign]
            yield page


def at_page(page: Page, url: str, label: str) -> None:
    """Someone who has signed in begins at the address, and chooses a page of the bar."""
    page.goto(url)
    page.get_by_role("navigation").get_by_role("link", name=label, exact=True).click()


def violations(page: Page, rules: str = "{}") -> list[str]:
    page.evaluate(AXE + "; null")
    found = page.evaluate(
        f"axe.run(document, {{resultTypes: ['violations'], ...{rules}}}).then((found) => found.violations)"
    )
    return [f"{each['id']} {[node['html'][:200] for node in each['nodes'][:2]]}" for each in found]


def screen(page: Page, name: str, *, height: int = 780, folder: Path = SCREENS) -> None:
    """The page looks as its kept picture, but for times and fonts."""
    width = (page.viewport_size or {"width": 1280})["width"]
    clip = {"x": 0, "y": 0, "width": width, "height": height}
    now = page.screenshot(animations="disabled", caret="hide", clip=clip)  # type: ignore[arg-type]
    difference = differs(page, now, folder / f"web-{name}.png")
    assert difference < OTHER_FONTS, f"{name} has changed; look, and make it with POSTROOM_SCREENS=1"


def bound(page: Page, folder: Path = PICTURES) -> float:
    """By how much pictures may differ here: a machine with the fonts of the kept ones shows nearly the same."""
    now, kept = page.evaluate(FONTS), folder / "fonts.txt"
    if os.environ.get("POSTROOM_SCREENS"):
        kept.write_text(f"{now}\n")
    return SAME_FONTS if kept.read_text().strip() == now else OTHER_FONTS


def differs(page: Page, now: bytes, kept: Path) -> float:
    """How much a picture differs from the kept one."""
    if os.environ.get("POSTROOM_SCREENS"):
        kept.parent.mkdir(exist_ok=True)
        kept.write_bytes(now)
    kind = {".png": "png", ".jpg": "jpeg"}[kept.suffix]
    texts = [f"data:image/{kind};base64,{b64encode(content).decode()}" for content in (now, kept.read_bytes())]
    with page.context.new_page() as blank:
        difference: float = blank.evaluate(DIFFER, texts)
    return difference
