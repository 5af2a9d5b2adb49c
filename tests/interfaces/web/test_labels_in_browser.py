"""On a narrow page a label stays on the line of its field."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page
from tests.interfaces.http.conftest import Served

#: The labels of a row of fields that stand on another line than their field.
APART = """() => [...document.querySelectorAll('.buttons label[for]')].filter((label) => {
  const field = document.getElementById(label.htmlFor);
  if (!label.checkVisibility() || !field.checkVisibility() || label.classList.contains('hidden')) return false;
  const [one, other] = [label.getBoundingClientRect(), field.getBoundingClientRect()];
  return one.bottom <= other.top || other.bottom <= one.top;
}).map((label) => label.textContent)"""


@pytest.mark.parametrize("path", ["/journal", "/procedures?name=settle", "/queues/orders"])
def test_a_label_stays_with_its_field(stage: Served, page: Page, path: str) -> None:
    page.set_viewport_size({"width": 380, "height": 800})
    page.goto(f"{stage.url}/web{path}")
    assert page.locator(".buttons label[for]").count() > 0
    assert page.evaluate(APART) == []
