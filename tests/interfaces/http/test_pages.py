"""Pages for people: every operation, from this server alone."""

from __future__ import annotations

import re
from html import unescape

from tests.interfaces.http.conftest import Served

from postroom.interfaces.http.contract import openapi


def test_every_operation_is_on_a_page_and_nothing_comes_from_elsewhere(here: Served) -> None:
    described = openapi.document()["paths"]
    with here.client("") as client:
        contents = client.get("/docs")
        assert contents.headers["content-type"] == "text/html; charset=utf-8"
        assert "default-src 'none'" in contents.headers["content-security-policy"]
        pages = {tag: client.get(f"/docs/{tag}") for tag in set(re.findall(r"href='docs/([\w-]+)#", contents.text))}
        assert client.get("/docs/nowhere").status_code == 401
    for path, methods in described.items():
        for each in methods.values():
            page = unescape(pages[each["tags"][0]].text)
            assert f"id='{each['operationId']}'" in page
            assert each["summary"] in page
            assert path in unescape(contents.text)
    for answer in (contents, *pages.values()):
        assert answer.status_code == 200
        assert not re.search(r"(src|href)='(https?:)?//|<script|@import|url\(", answer.text)
