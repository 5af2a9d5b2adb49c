"""A table in HTML, as notebooks show it. Everything in it is escaped: messages come from anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_ROWS_MAX = 100  # that a notebook shows; the object has the others


def html_table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[Any]], total: int) -> str:
    """The first rows of a table, and how many there are.

    >>> html_table("<q>", ["a"], [["1 < 2"]], 1).count("&lt;")
    2
    """
    shown = []
    for _, row in zip(range(_ROWS_MAX), rows, strict=False):
        shown.append("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>")
    more = f", the first {len(shown)}" if len(shown) < total else ""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    return (
        f"<table><caption>{escape(caption)} ({total}{more})</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(shown)}</tbody></table>"
    )


def _cell(cell: Any) -> str:
    return "" if cell is None else escape(str(cell))
