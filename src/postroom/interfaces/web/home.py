"""The start page: the first page that the user may see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from postroom.interfaces.web.page import Goto, Page
from postroom.interfaces.web.visit import Visit


def show(visit: Visit) -> Mapping[str, Any] | Goto:
    pages = [there for page in visit.others if page.label is not None and (there := visit.address_of(page)) is not None]
    return Goto(pages[0]) if pages else {}


PAGE = Page("/", "home.html", show)
