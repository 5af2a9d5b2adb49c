"""A real browser: Debian's Chromium, driven by Playwright. It is installed where that is possible."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

HOW = "Chromium is missing, so no page was tested in a browser; on Debian: apt-get install chromium"


def executable() -> str:
    """Where Chromium is; installs it as root on Debian, and else says loudly how to get it."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        for words in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
            subprocess.run(["apt-get", "-qq", *words], check=False, capture_output=True, timeout=600)
        found = shutil.which("chromium")
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail(HOW)
        pytest.skip(HOW)
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    where = executable()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=where, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()
