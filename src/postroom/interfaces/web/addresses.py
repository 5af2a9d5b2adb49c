"""Addresses of pages, with names escaped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from postroom.errors import RequestInvalid
from postroom.limits import PAGE_FIELDS_MAX

#: Where the pages are, below the address of the server.
ROOT = "/web"


def address(base: str, path: str, names: Mapping[str, Any], query: Mapping[str, Any]) -> str:
    """A path with its names filled in, and the query; parameters that are None are left out."""
    for name, value in names.items():
        path = path.replace("{" + name + "}", quote(str(value), safe=""))
    asked = [(name, str(value)) for name, value in query.items() if value is not None]
    return base + path + ("?" + urlencode(asked) if asked else "")


def pairs(text: bytes, where: str) -> list[tuple[str, str]]:
    """The fields of a query or form, in order."""
    try:
        return parse_qsl(text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=PAGE_FIELDS_MAX)
    except ValueError:
        why = f"it is not percent-encoded UTF-8 of at most {PAGE_FIELDS_MAX} fields"
        raise RequestInvalid(where=where, why=why) from None
