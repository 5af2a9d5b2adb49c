"""Make a small site of these pages: python docs/site.py [FOLDER], else build/site.

One page of HTML for each page of Markdown, one style, one script that searches. It is read from a disk as well as
from a server: nothing is fetched, the index of words is a script, and no page needs another machine.
"""

from __future__ import annotations

import html
import itertools
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
LOOKS = DOCS / "looks"

# The order of the navigation; a page that is not named here comes last in its part, by its title.
PARTS = {"": "Postroom", "guide": "Guide", "reference": "Reference", "decisions": "Decisions"}
ORDER = """
    README.md tutorial.md coming-from.md glossary.md architecture.md benchmarks.md
    guide/queues.md guide/rules.md guide/flows.md guide/stations.md guide/procedures.md guide/counters.md
    guide/spheres.md guide/operating.md guide/scaling.md guide/spark.md
    reference/commands.md reference/python.md reference/errors.md reference/limits.md reference/description-language.md
    reference/rules.md reference/flows.md reference/forms.md decisions/README.md
""".split()
WORD = re.compile(r"[A-Za-z0-9_][\w.-]*\w|\w")


@dataclass(frozen=True)
class Section:
    """What stands below one heading: the smallest thing that a search finds."""

    anchor: str
    title: str
    text: str


@dataclass(frozen=True)
class Page:
    """One page of Markdown, read."""

    source: Path
    name: str  # its path below docs
    title: str
    tokens: Sequence[Token]
    sections: tuple[Section, ...]

    @property
    def target(self) -> str:
        """The page's place in the site."""
        folder, _, file = self.name.rpartition("/")
        stem = "index" if file == "README.md" else file.removesuffix(".md")
        return f"{folder}/{stem}.html" if folder else f"{stem}.html"


def read(source: Path, name: str) -> Page:
    tokens = _parser().parse(source.read_text())
    sections = tuple(_sections(tokens))
    return Page(source, name, sections[0].title if sections else name, tokens, sections)


def pages(folder: Path = DOCS) -> list[Page]:
    """Every page of the docs in the order of the navigation."""
    found = {str(file.relative_to(folder).as_posix()): file for file in folder.rglob("*.md")}
    read_pages = [read(file, name) for name, file in found.items()]
    return sorted(read_pages, key=_place)


def _place(page: Page) -> tuple[int, int, str]:
    folder = page.name.rpartition("/")[0]
    part = list(PARTS).index(folder) if folder in PARTS else len(PARTS)
    return (part, ORDER.index(page.name) if page.name in ORDER else len(ORDER), page.name)


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.add_render_rule("fence", _fence)
    parser.add_render_rule("code_block", _indented)
    parser.add_render_rule("heading_open", _heading)
    return parser


# --- headings ---


def slug(title: str) -> str:
    """The anchor of a heading, as the sites that show repositories make it."""
    kept = re.sub(r"[^\w\- ]", "", title.strip().lower())
    return kept.replace(" ", "-")


def _text(token: Token) -> str:
    said = {"text": "", "code_inline": "", "softbreak": " ", "hardbreak": " "}  # and what a break stands for
    return "".join(child.content or said[child.type] for child in token.children or () if child.type in said)


def _sections(tokens: Sequence[Token]) -> Iterator[Section]:
    """Each heading with the text up to the next one. Headings are given their anchors on the way."""
    seen: dict[str, int] = {}
    anchor, title = "", ""
    said: list[str] = []
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            if title:
                yield Section(anchor, title, " ".join(said))
            title, said = _text(tokens[number + 1]), []
            anchor = slug(title)
            seen[anchor] = seen.get(anchor, -1) + 1
            anchor += f"-{seen[anchor]}" if seen[anchor] else ""
            token.attrSet("id", anchor)
        elif token.type == "inline" and tokens[number - 1].type != "heading_open":
            said.append(re.sub(r"\s+", " ", _text(token)))
        elif token.type in ("fence", "code_block"):
            said.append(re.sub(r"\s+", " ", token.content))
    if title:
        yield Section(anchor, title, " ".join(said))


def _heading(self: object, tokens: Sequence[Token], index: int, options: object, env: object) -> str:
    token = tokens[index]
    anchor = str(token.attrGet("id") or "")
    return f'<{token.tag} id="{html.escape(anchor)}"><a class="here" href="#{html.escape(anchor)}">#</a>'


# --- code ---


def _fence(self: object, tokens: Sequence[Token], index: int, options: object, env: object) -> str:
    token = tokens[index]
    language = token.info.strip()
    if language == "console":
        return f'<pre class="console"><code>{_console(token.content)}</code></pre>\n'
    if language == "mermaid":
        return _diagram(token.content)
    return f'<pre><code class="{html.escape(language)}">{_coloured(token.content, language)}</code></pre>\n'


def _indented(self: object, tokens: Sequence[Token], index: int, options: object, env: object) -> str:
    return f"<pre><code>{html.escape(tokens[index].content)}</code></pre>\n"


def _console(text: str) -> str:
    """What is typed stands out from what is answered."""
    lines = []
    for line in text.splitlines():
        if line.startswith(("$ ", "> ")):
            lines.append(f"<i>{html.escape(line[:2])}</i><b>{html.escape(line[2:])}</b>")
        else:
            lines.append(html.escape(line))
    return "\n".join(lines) + "\n"


def _coloured(text: str, language: str) -> str:
    try:
        lexer = get_lexer_by_name({"demaq": "xquery"}.get(language, language))
    except ClassNotFound:
        return html.escape(text)
    return str(highlight(text, lexer, HtmlFormatter(nowrap=True)))


# --- diagrams ---

_NODE = re.compile(r'(\w+)(?:\["([^"]*)"\])?')
_WIDE, _HIGH, _GAP = 190, 46, 24


def _diagram(text: str) -> str:
    """A flowchart of boxes and arrows as SVG, layer by layer; any other diagram stays text."""
    first, *lines = [line.strip() for line in text.splitlines() if line.strip()]
    edges: list[tuple[str, str]] = []
    labels: dict[str, str] = {}
    for line in lines:
        ends = [_NODE.fullmatch(end.strip()) for end in line.split("-->")]
        if not first.startswith("flowchart") or None in ends or len(ends) < 2:
            return f'<pre class="mermaid"><code>{html.escape(text)}</code></pre>\n'
        names = [(end[1], end[2]) for end in ends if end]
        for name, label in names:
            labels[name] = label or labels.get(name, name)
        edges += [(one[0], two[0]) for one, two in itertools.pairwise(names)]
    return _drawn(_layers(list(labels), edges), labels, edges)


def _layers(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Each box one layer below the lowest that points to it. A circle ends where as many rounds as boxes are over."""
    depth = dict.fromkeys(names, 0)
    for _ in names:
        for one, two in edges:
            depth[two] = min(max(depth[two], depth[one] + 1), len(names))
    return [[name for name in names if depth[name] == layer] for layer in sorted(set(depth.values()))]


def _drawn(layers: list[list[str]], labels: dict[str, str], edges: Sequence[tuple[str, str]]) -> str:
    widest = max(map(len, layers)) * (_WIDE + _GAP)
    place = {}
    for row, layer in enumerate(layers):
        left = (widest - len(layer) * (_WIDE + _GAP)) / 2
        for column, name in enumerate(layer):
            place[name] = (left + column * (_WIDE + _GAP) + _GAP / 2, row * (_HIGH + 2 * _GAP) + 2)
    high = len(layers) * (_HIGH + 2 * _GAP)
    parts = [f'<svg class="diagram" viewBox="0 0 {widest:.0f} {high}" role="img" xmlns="http://www.w3.org/2000/svg">']
    parts.append(
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    )
    parts.append('<path d="M0 0L8 4L0 8z"/></marker></defs>')
    for one, two in edges:
        (x, y), (to_x, to_y) = place[one], place[two]
        parts.append(
            f'<path class="way" d="M{x + _WIDE / 2:.0f} {y + _HIGH:.0f}L{to_x + _WIDE / 2:.0f} {to_y - 1:.0f}"/>'
        )
    for name, (x, y) in place.items():
        parts.append(f'<rect x="{x:.0f}" y="{y:.0f}" width="{_WIDE}" height="{_HIGH}" rx="5"/>')
        lines = [html.escape(line) for line in re.split(r"<br ?/?>", labels[name])]
        for number, line in enumerate(lines):
            down = y + _HIGH / 2 + 4 + (number - (len(lines) - 1) / 2) * 15
            kind = "name" if number == 0 else "note"
            parts.append(f'<text class="{kind}" x="{x + _WIDE / 2:.0f}" y="{down:.0f}">{line}</text>')
    return "".join(parts) + "</svg>\n"


# --- links ---


def _relative(page: Page, target: str) -> str:
    return os.path.relpath(target, Path(page.target).parent).replace(os.sep, "/")


def _rewrite(page: Page, by_source: dict[Path, Page]) -> None:
    """Links to pages of Markdown lead to pages of the site; other files of the project are named, not linked."""
    for token in page.tokens:
        for number, child in enumerate(token.children or ()):
            if child.type != "link_open":
                continue
            target, _, anchor = str(child.attrGet("href")).partition("#")
            if not target or "://" in target or target.startswith("mailto:"):
                continue
            file = (page.source.parent / target).resolve()
            found = by_source.get(file) or by_source.get(file / "README.md")
            if found is not None:
                child.attrSet("href", _relative(page, found.target) + (f"#{anchor}" if anchor else ""))
            else:
                _unlink(token.children or [], number)


def _unlink(children: list[Token], number: int) -> None:
    """A file that is not in the site: its name is emphasized, in the place of a link that leads nowhere."""
    for token in children[number:]:
        if token.type in ("link_open", "link_close"):
            closing = token.type == "link_close"
            token.type, token.tag, token.attrs = ("em_close" if closing else "em_open"), "em", {}
            if closing:
                return


# --- the site ---


def navigation(page: Page, all_pages: Sequence[Page]) -> str:
    lines, part = [], None
    for each in all_pages:
        folder = each.name.rpartition("/")[0]
        if folder != part:
            if part is not None:
                lines.append("</ul></details>")
            part = folder
            named = PARTS.get(folder, folder.capitalize())
            is_open = ' open="open"' if folder != "decisions" or page.name.startswith("decisions/") else ""
            lines.append(f"<details{is_open}><summary>{html.escape(named)}</summary><ul>")
        current = ' aria-current="page"' if each is page else ""
        lines.append(f'<li><a href="{_relative(page, each.target)}"{current}>{html.escape(each.title)}</a></li>')
    return "\n".join([*lines, "</ul></details>"])


def rendered(page: Page, all_pages: Sequence[Page]) -> str:
    template = (LOOKS / "page.html").read_text()
    parser = _parser()
    body = parser.renderer.render(list(page.tokens), parser.options, {})
    inner = [section for section in page.sections[1:] if section.anchor]
    toc = "".join(
        f'<li><a href="#{html.escape(each.anchor)}">{html.escape(each.title)}</a></li>' for each in inner[:60]
    )
    slots = {
        "title": html.escape(page.title),
        "root": _relative(page, ".") + "/",
        "navigation": navigation(page, all_pages),
        "contents": f"<ul>{toc}</ul>" if toc else "",
        "body": body,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda slot: slots[slot[1]], template)


def index(all_pages: Sequence[Page]) -> dict[str, object]:
    """Every section with its page, title and text, and for each word the sections that have it."""
    entries: list[list[str]] = []
    words: dict[str, list[int]] = {}
    for page in all_pages:
        for section in page.sections:
            number = len(entries)
            entries.append([f"{page.target}#{section.anchor}", page.title, section.title, section.text])
            for word in sorted(_words(f"{page.title} {section.title} {section.text}")):
                words.setdefault(word, []).append(number)
    return {"sections": entries, "words": dict(sorted(words.items()))}


def _words(text: str) -> set[str]:
    """Lower case, whole, and in parts: queue-held is found by held, too."""
    whole = {word.lower() for word in WORD.findall(text)}
    return {part for word in whole for part in (word, *re.split(r"[-_.]", word)) if 1 < len(part) <= 40}


def build(target: Path, folder: Path = DOCS) -> list[Page]:
    """Write the site into a folder, in the place of what was there."""
    all_pages = pages(folder)
    by_source = {page.source.resolve(): page for page in all_pages}
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for page in all_pages:
        _rewrite(page, by_source)
        place = target / page.target
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(rendered(page, all_pages))
    for file in ("site.css", "search.js", "menu.js"):
        shutil.copy(LOOKS / file, target / file)
    for picture in (*folder.rglob("*.svg"), *folder.rglob("*.png")):
        copied = target / picture.relative_to(folder)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, copied)
    said = json.dumps(index(all_pages), ensure_ascii=False, separators=(",", ":"))
    (target / "words.js").write_text(f"const INDEX = {said};\n")
    return all_pages


if __name__ == "__main__":
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site"
    print(f"{len(build(place))} pages: {place / 'index.html'}")
