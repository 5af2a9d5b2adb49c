"""Tables at a terminal: fitted to its width, and paged if longer than a screen."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.\d+Z")
_KEY = re.compile(r"\d{5}\.\d{5,}")
_BETWEEN, _EDGES = 3, 2  # characters that a table needs beside its cells
_LEAST = 6  # characters that a column keeps as long as others have more


def draw(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; every cell is one line."""
    from rich.console import Console

    console = Console()
    with console.capture() as captured:
        console.print(grid(headings, rows, console.width))
    text = captured.get()
    if text.count("\n") >= console.height and (pager := _pager()):
        sys.stdout.flush()
        subprocess.run(pager, input=text.encode(), env={"LESS": "FRX", **os.environ}, check=False)
    else:
        sys.stdout.write(text)


def grid(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Table:
    """A table for a terminal of this width."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    rows = [[_TIME.sub(r"\1 \2", cell) if _TIME.fullmatch(cell) else cell for cell in row] for row in rows]
    shown = _shown(headings, rows, width)
    columns = [[row[at] for row in rows] for at in shown]
    grid = Table(box=SIMPLE_HEAD, header_style="bold cyan", pad_edge=False)
    for at, cells, wide in zip(shown, columns, _widths([headings[at] for at in shown], columns, width), strict=True):
        cut = headings[at] == "message" and not _is_whole(cells)  # a body may be long: postroom show has all of it
        grid.add_column(headings[at], overflow="ellipsis" if cut else "fold", no_wrap=cut, width=wide)
    for row in rows:
        # A body of megabytes is cut before it is measured.
        cells = [row[at][: width if headings[at] == "message" else None] for at in shown]
        grid.add_row(*(Text(cell, style="yellow" if cell == "held" else "") for cell in cells))
    return grid


def _shown(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """The columns to show: without empty ones if the table is too wide."""
    every = list(range(len(headings)))
    longest = [max(len(heading), *(len(row[at]) for row in rows), 0) for at, heading in enumerate(headings)]
    if not rows or sum(longest) + _beside(len(every)) <= width:
        return every
    return [at for at in every if any(row[at] for row in rows)] or every


def _widths(headings: Sequence[str], columns: Sequence[Sequence[str]], width: int) -> list[int]:
    """The column widths: the widest shrink first, columns that people copy from last."""
    widths = [max(len(heading), *map(len, cells), 1) for heading, cells in zip(headings, columns, strict=True)]
    widths = [min(wide, width) for wide in widths]
    whole = [_is_whole(cells) for cells in columns]
    over = sum(widths) + _beside(len(widths)) - width
    for _ in range(over):
        soft = [at for at, wide in enumerate(widths) if not whole[at] and wide > _LEAST]
        widest = max(soft or range(len(widths)), key=widths.__getitem__)
        widths[widest] = max(1, widths[widest] - 1)
    return widths


def _beside(columns: int) -> int:
    return _BETWEEN * (columns - 1) + _EDGES


def _is_whole(cells: Sequence[str]) -> bool:
    """Whether the cells are keys or times, which people copy."""
    filled = [cell for cell in cells if cell]
    return bool(filled) and all(_KEY.fullmatch(cell) or re.fullmatch(r"[\d-]{10} [\d:]{8}", cell) for cell in filled)


def _pager() -> list[str]:
    """The command of $PAGER, else less; empty if it is missing, or if $PAGER is empty or ``cat``."""
    try:
        words = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:
        return []
    return words if words and words[0] != "cat" and shutil.which(words[0]) else []
