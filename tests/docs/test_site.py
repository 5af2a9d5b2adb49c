"""The site that `make docs` makes: whole, with links that lead somewhere and words that are found, offline."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from lxml import html

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def build(docs: Path, place: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", str(docs), str(place)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built with every warning an error: Sphinx looks for the target of each link and anchor."""
    place = tmp_path_factory.mktemp("site")
    built = build(DOCS, place)
    assert (built.returncode, built.stderr) == (0, "")
    return place


@pytest.fixture
def diagrams(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DOCS))
    import diagrams  # type: ignore[import-not-found]  # a file of the docs

    found: ModuleType = diagrams
    return found


def test_every_page_is_there_and_in_the_navigation(site: Path) -> None:
    pages = {str(file.relative_to(DOCS).with_suffix(".html")) for file in DOCS.rglob("*.md")}
    assert {page for page in pages if not (site / page).is_file()} == set()
    tree = html.fromstring((site / "tutorial.html").read_bytes())
    linked = {link.get("href").partition("#")[0] for link in tree.xpath('//*[@class="sidebar-tree"]//a')}
    assert pages - linked == {"README.html", "tutorial.html"}
    assert "README.html" in (site / "index.html").read_text()


def test_a_link_that_leads_nowhere_fails_the_build(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("conf.py", "diagrams.py"):
        shutil.copy(DOCS / name, docs)
    shutil.copytree(DOCS / "looks", docs / "looks")
    for folder in ("guide", "reference", "decisions"):
        (docs / folder).mkdir()
    (docs / "README.md").write_text("# One\n\n[gone](gone.md), [there](#one), [nowhere](#two), [out](../out.md)\n")
    told = build(docs, tmp_path / "site")
    assert told.returncode == 1
    assert "gone" in told.stderr
    assert "'two'" in told.stderr
    assert "'one'" not in told.stderr
    assert "out.md" not in told.stderr


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    checked = 0
    for file in site.rglob("*.html"):
        tree = html.fromstring(file.read_bytes())
        for target in tree.xpath('//script/@src | //link[@rel!="canonical"]/@href | //img/@src'):
            assert "//" not in target, f"{file.name}: {target}"
            checked += 1
    assert checked > 500
    for style in site.rglob("*.css"):
        assert not re.search(r"@import|url\(['\"]?https?:", style.read_text()), style


def test_the_search_has_the_words_of_all_pages(site: Path) -> None:
    index = (site / "searchindex.js").read_text()
    for word in ("heartbeat", "compensator", "dossier"):
        assert f'"{word}' in index or f"{word}:" in index, word


def test_commands_keep_their_prompts_and_texts_their_words(site: Path) -> None:
    queues = html.fromstring((site / "guide" / "queues.html").read_bytes()).text_content()
    assert '$ postroom send INP_0001 --body "first"' in queues


def test_flowcharts_are_drawn_and_other_diagrams_stay_text(site: Path, diagrams: ModuleType) -> None:
    page = html.fromstring((site / "architecture.html").read_bytes())
    drawn = {text.text for text in page.xpath('//*[@class="diagram"]//*[local-name()="text"]')}
    assert {"interfaces/", "store/", "spheres/"} <= drawn
    assert diagrams._layers(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")]) == [["a"], ["b"], ["c"]]
    assert diagrams.drawn("sequenceDiagram\n  a->>b: <hello>\n").startswith('<pre class="mermaid">')
