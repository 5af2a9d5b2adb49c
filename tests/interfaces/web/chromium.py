"""A real browser: Debian's Chromium, driven by Playwright. It is installed where that is possible."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright
from tests.programs import installed

#: What it is called where it is there already; on Debian the first.
NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium() -> Iterator[Browser]:
    where = next(filter(None, map(shutil.which, NAMES)), None) or installed("chromium", "chromium", required=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=where, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()
