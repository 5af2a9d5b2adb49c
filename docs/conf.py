"""The site of these pages, built by Sphinx: ``make docs`` writes it to build/site, and fails on a broken link.

It is read from a disk as well as from a server: nothing is fetched from elsewhere.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from pygments.lexers import TextLexer
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))
import diagrams

project = "Postroom"
extensions = ["myst_parser"]
root_doc = "README"
myst_heading_anchors = 4  # the anchors that the pages link to
exclude_patterns = ["looks"]
html_theme = "furo"
html_title = "Postroom"
html_static_path = ["looks"]
html_css_files = ["diagrams.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False

#: The order of the navigation; other pages of a folder follow by name.
NAVIGATION = {
    "Postroom": "tutorial coming-from coming-from/* glossary architecture internals reliability benchmarks profile",
    "Guide": "guide/tasks guide/troubleshooting guide/queues guide/rules guide/flows guide/stations guide/procedures "
    "guide/counters guide/*",
    "Reference": "reference/commands reference/python reference/errors reference/*",
    "Decisions": "decisions/README decisions/*",
}
_LINK = re.compile(r"\[([^\]\[]*)\]\((\.\./[^)#]*)(?:#[^)]*)?\)")
_DIAGRAM = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def setup(app: Sphinx) -> None:
    for language in ("qdl", "demaq", "flow", "form"):
        app.add_lexer(language, TextLexer)
    app.connect("source-read", _prepare)
    app.connect("build-finished", _begin_at_index)


def _prepare(app: Sphinx, name: str, source: list[str]) -> None:
    """A page as Sphinx reads it: with pictures, without links to files that are not in the site."""
    folder = Path(app.srcdir, name).parent

    def linked(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(folder / match[2]))
        return match[0] if Path(app.srcdir) in target.parents else match[1]

    text = _DIAGRAM.sub(lambda match: f"```{{raw}} html\n{diagrams.drawn(match[1])}\n```", source[0])
    text = _LINK.sub(linked, text)
    source[0] = text + _navigation() if name == root_doc else text


def _navigation() -> str:
    parts = [
        "\n".join(["", "```{toctree}", ":hidden:", ":glob:", f":caption: {caption}", "", *pages.split(), "```", ""])
        for caption, pages in NAVIGATION.items()
    ]
    return "\n".join(["", *parts])


def _begin_at_index(app: Sphinx, failed: Exception | None) -> None:
    if failed is None:
        first = f'<!doctype html><meta http-equiv="refresh" content="0; url={root_doc}.html">\n'
        Path(app.outdir, "index.html").write_text(first)
