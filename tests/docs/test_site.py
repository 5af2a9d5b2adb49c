"""The site that `make docs` makes: whole, well formed, with links that lead somewhere and words that are found."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest
from lxml import etree

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("postroom_docs_site", DOCS / "site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(maker: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    assert len(maker.build(place)) == len(list(DOCS.rglob("*.md")))
    return place


@pytest.fixture(scope="module")
def trees(site: Path) -> dict[Path, etree._Element]:
    """Every page, read by a parser that forgives nothing."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    return {file: etree.fromstring(file.read_bytes(), parser) for file in sorted(site.rglob("*.html"))}


@pytest.fixture(scope="module")
def words(site: Path) -> dict[str, list[str]]:
    said = (site / "words.js").read_text()
    index = json.loads(said.removeprefix("const INDEX = ").rstrip().removesuffix(";"))
    return {word: [index["sections"][number][0] for number in numbers] for word, numbers in index["words"].items()}


def test_every_page_is_in_the_navigation_of_every_page(trees: dict[Path, etree._Element]) -> None:
    for file, tree in trees.items():
        linked = {(file.parent / link.get("href")).resolve() for link in tree.iterfind(".//nav//a")}
        assert linked == set(trees), file.name
        assert len(tree.findall('.//nav//a[@aria-current="page"]')) == 1


def test_every_link_and_anchor_leads_somewhere(trees: dict[Path, etree._Element]) -> None:
    anchors = {file: {each.get("id") for each in tree.iter() if each.get("id")} for file, tree in trees.items()}
    checked = 0
    for file, tree in trees.items():
        for link in tree.iterfind(".//a"):
            target, _, anchor = link.get("href").partition("#")
            if "://" in target:
                continue
            place = (file.parent / target).resolve() if target else file
            assert place in anchors, f"{file.name}: {target}"
            assert not anchor or unquote(anchor) in anchors[place], f"{file.name}: {target}#{anchor}"
            checked += 1
    assert checked > 1000


def test_nothing_is_fetched_from_elsewhere(site: Path, trees: dict[Path, etree._Element]) -> None:
    for file, tree in trees.items():
        for each in [*tree.iterfind(".//script"), *tree.iterfind(".//link"), *tree.iterfind(".//img")]:
            target = each.get("src") or each.get("href")
            assert (file.parent / target).is_file(), f"{file.name}: {target}"
    for name in ("site.css", "search.js", "menu.js"):
        assert not re.search(r"https?:|url\((?!#)|@import|fetch\(", (site / name).read_text()), name


def test_pages_keep_what_markdown_says(site: Path) -> None:
    queues = (site / "guide" / "queues.html").read_text()
    assert "<i>$ </i><b>postroom send INP_0001 --body &quot;first&quot;</b>" in queues
    assert 'href="../reference/description-language.html"' in queues
    assert "<table>" in (site / "reference" / "errors.html").read_text()
    for file in site.rglob("*.html"):
        assert ".md" not in re.sub(r"<(code|pre|p|em|b|td|li)\b.*?</\1>", "", file.read_text(), flags=re.DOTALL), file


def test_flowcharts_are_drawn_and_other_diagrams_stay_text(
    maker: ModuleType, trees: dict[Path, etree._Element]
) -> None:
    (house,) = [tree for file, tree in trees.items() if file.name == "architecture.html"]
    drawn = {text.text for text in house.iter("{http://www.w3.org/2000/svg}text")}
    assert {"interfaces/", "store/", "spheres/"} <= drawn
    layers = maker._layers(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")])
    assert layers == [["a"], ["b"], ["c"]]
    assert maker._diagram("sequenceDiagram\n  a->>b: hello\n").startswith('<pre class="mermaid">')


def test_a_page_that_nobody_has_put_in_order_comes_last_in_its_part(maker: ModuleType, tmp_path: Path) -> None:
    shutil.copytree(DOCS / "guide", tmp_path / "docs" / "guide")
    (tmp_path / "docs" / "guide" / "aardvark.md").write_text(
        "# Aardvark\n\n[queues](queues.md), [gone](gone.md), `x`\n"
    )
    (tmp_path / "docs" / "essays").mkdir()
    (tmp_path / "docs" / "essays" / "one.md").write_text("# An essay\n")
    made = [page.name for page in maker.build(tmp_path / "site", tmp_path / "docs")]
    assert made[-2:] == ["guide/aardvark.md", "essays/one.md"]
    page = (tmp_path / "site" / "guide" / "aardvark.html").read_text()
    assert '<a href="queues.html">queues</a>, <em>gone</em>' in page


def test_the_index_has_the_words_of_all_pages(words: dict[str, list[str]]) -> None:
    assert "guide/spheres.html#when-an-owner-dies" in words["heartbeat"]
    assert "reference/errors.html#errors" in words["queue-held"]
    assert set(words["queue-held"]) <= set(words["held"])
    assert "glossary.html#working-set" in words["working"]
    assert "decisions/0012-spark.html" in {place.partition("#")[0] for place in words["spark"]}


def test_anchors_are_those_of_the_headings(maker: ModuleType, tmp_path: Path) -> None:
    assert maker.slug("Where messages come from, and when they go") == "where-messages-come-from-and-when-they-go"
    assert maker.slug("8. Look `inside`") == "8-look-inside"
    file = tmp_path / "page.md"
    file.write_text("# One\n\n## Same\n\ntext of\n`two` lines\n\n## Same\n")
    sections = maker.read(file, "page.md").sections
    assert [each.anchor for each in sections] == ["one", "same", "same-1"]
    assert sections[1].text == "text of two lines"


@pytest.mark.skipif(shutil.which("node") is None, reason="the script is tried where there is something to run it")
def test_the_search_finds_the_best_section_first(site: Path) -> None:
    asked = ["hold", "working set", "heartb", "queue-held", "how do I receive", "toString", ""]
    script = (site / "words.js").read_text() + (site / "search.js").read_text()
    script += (
        f"console.log(JSON.stringify({json.dumps(asked)}.map((words) => search(INDEX, words).map((one) => one[0]))))"
    )
    ran = subprocess.run(["node", "-"], input=script, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    found = dict(zip(asked, json.loads(ran.stdout), strict=True))
    assert set(found["hold"][:2]) == {"glossary.html#hold", "guide/queues.html#hold"}
    assert "glossary.html#working-set" in found["working set"][:3]
    assert "glossary.html#heartbeat" in found["heartb"]
    assert "reference/errors.html#errors" in found["queue-held"]
    assert "guide/queues.html#receive" in found["how do I receive"][:5]
    assert found["toString"] == found[""] == []


@pytest.mark.skipif(shutil.which("node") is None, reason="the script is tried where there is something to run it")
@pytest.mark.parametrize(
    ("text", "asked", "shown"),
    [
        ("A queue on hold takes nothing.", "hold", "A queue on [hold] takes nothing."),
        (f"{'before ' * 40}the heartbeat {'after ' * 40}", "heartb", "[heartb]eat"),
        ("Held is queue-held, and queue.", "queue-held queue", "Held is [queue-held], and [queue]."),
        ("a b c", "", "a b c"),
        ("x" * 500 + " end", "end", "… [end]"),
        ("a " + "x" * 500 + "/end", "end", "… [end]"),
    ],
)
def test_what_is_found_is_shown_around_the_word(site: Path, text: str, asked: str, shown: str) -> None:
    script = (site / "search.js").read_text()
    script += f"console.log(JSON.stringify(excerpt({json.dumps(text)}, {json.dumps(asked)})))"
    ran = subprocess.run(["node", "-"], input=script, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    pieces = "".join(f"[{piece}]" if marked else piece for piece, marked in json.loads(ran.stdout))
    assert shown in pieces
    assert len(pieces) < 180
    for piece in pieces.removeprefix("… ").removesuffix(" …").split():
        assert piece.strip("[],.") in text.replace(",", "").replace(".", "").split() or "[" in piece, "whole words"


def test_a_narrow_screen_has_one_folded_menu_and_results_under_the_search(trees: dict[Path, etree._Element]) -> None:
    for tree in trees.values():
        assert [each.get("id") for each in tree.findall(".//nav/details")] == ["pages"]
        assert [each.get("id") for each in tree.iterfind('.//form[@id="search"]/*')] == ["asked", "found"]
