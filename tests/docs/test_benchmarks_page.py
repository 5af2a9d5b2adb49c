"""The page of the benchmarks is what its programs write and has every figure that was asked; its plots are true."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import page
import results
from bounds import BOUNDS, Bound
from curves import Curve, Point, curve
from lines import Line, table
from parts import PARTS, Part
from plots import LABELS, WIDTH, Bar, bars, curves, scale
from results import Result

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
KEPT = results.read(ROOT / "bench" / "results.json")
SVG = "{http://www.w3.org/2000/svg}"


def test_the_page_and_its_plots_are_those_of_the_kept_results(tmp_path: Path) -> None:
    written = page.write_page(KEPT, tmp_path)
    again = "say .venv/bin/python bench/everything.py --from bench/results.json"
    assert written.read_text() == (DOCS / "benchmarks.md").read_text(), again
    plots = {file.name: file.read_text() for file in (tmp_path / "plots").iterdir()}
    assert plots == {file.name: file.read_text() for file in (DOCS / "plots").iterdir()}, again
    assert set(re.findall(r"\]\(plots/([a-z-]+\.svg)\)", written.read_text())) == set(plots)


def test_every_figure_that_was_asked_stands_on_the_page_with_its_verdict() -> None:
    asked_of = r"^\| \[?(\w+)\]?(?:\(#\w+\))? \|"
    text = page.text(KEPT).partition("## What was asked")[2].partition("\n## ")[0]
    rows = re.findall(rf"{asked_of} (.+) \| (.+) \| (.+) \| (.+) \|$", text, re.MULTILINE)
    asked = [(name.capitalize(), each.asked, str(each)) for name, some in BOUNDS.items() for each in some.values()]
    assert [row[:3] for row in rows] == asked
    assert len(asked) == 46
    measured = {name.capitalize() for name in KEPT}
    assert {row[-1] for row in rows if row[0] in measured} <= {"met", "not met"}, "something asked is not measured"
    assert {row[-1] for row in rows if row[0] not in measured} <= {"not measured"}


def test_a_figure_leads_to_its_part_if_that_was_measured() -> None:
    text = page.text({"queues": KEPT["queues"]})
    assert re.findall(r"\]\(#(\w+)\)", text) == ["queues"] * len(BOUNDS["queues"])
    assert "| Rules | a backlog of 50,000" in text


def test_every_bound_belongs_to_a_part_and_every_line_to_a_bound_that_exists() -> None:
    assert set(BOUNDS) <= {part.name for part in PARTS}
    for name, result in KEPT.items():
        assert {line.bound for line in result.lines} - {None} <= set(BOUNDS.get(name, {}))
    assert not any(result.quick for result in KEPT.values()), "figures of a quick run are nobody's"


def test_a_missed_bound_and_the_worst_of_several_lines_are_said() -> None:
    lines = [
        Line("a", 10.0, "/s", 1.2, 1.1, 1.3, "send-peers", "persist-queue", 9.0),
        Line("b", 10.0, "/s", 0.996, 0.9, 1.1, "send-peers", "litequeue", 11.0),
    ]
    text = page.text({"queues": a_result(lines)})
    assert "| > 1 | 1.00 | not met |" in text
    assert "| b | 10 /s | litequeue 11 /s | 1.00 (0.90–1.10) | > 1 | not met |" in text
    assert "0 of 46 figures are met." in text
    assert "NOT MET" in table(lines, BOUNDS["queues"])


def test_a_figure_is_held_against_its_bound_before_it_is_rounded() -> None:
    bound = Bound("", "≥", 0.5)
    assert not bound.met(0.4999)
    assert bound.met(0.5)
    assert not Bound("", "<", 2).met(2)
    assert Bound("", "≤", 1.5).margin(0.75) == 2
    assert bound.margin(0.75) == 1.5


def test_a_line_holds_its_median_between_its_extremes() -> None:
    with pytest.raises(AssertionError):
        Line("a", 1.0, "s", 2.0, 2.1, 2.2)
    with pytest.raises(AssertionError):
        Line("a", 1.0, "miles", 2.0, 1.9, 2.2)


def test_results_survive_their_file(tmp_path: Path) -> None:
    line = Line("a", 1.0, "s", 2.0, 1.0, 3.0, "send-plain", "b", 2.0, "the longest")
    grown = curve("c", "messages stored", "µs", {1_000: [1.0, 5.0, 2.0], 10: [1.0, 1.0, 1.0]})
    assert grown.points == (Point(10, 1.0, 1.0, 1.0), Point(1_000, 2.0, 1.0, 5.0))
    whole = a_result([line])
    whole.curves.append(grown)
    whole.stages["fork"] = {"claim": 1.5}
    results.write(tmp_path / "r.json", {"queues": whole})
    assert results.read(tmp_path / "r.json") == {"queues": whole}


def test_a_part_of_which_nothing_was_asked_has_its_table_and_its_curves(tmp_path: Path) -> None:
    (tmp_path / "prose").mkdir()
    (tmp_path / "prose" / "cluster.md").write_text("Two workers.\n\n{figures}\n\nWhat bounds it.\n")
    part = Part("cluster", 1, tmp_path)
    whole = a_result([Line("with two workers", 1_234.0, "/s", 1_234.0, 1_200.0, 1_300.0)])
    whole.curves.append(curve("a message", "workers", "µs", {1: [9.0], 2: [5.0]}))
    written = page.write_page({"cluster": whole}, tmp_path, [part]).read_text()
    assert "| with two workers | 1,234 /s | | 1,234 (1,200–1,300) | | |" in written
    assert "![Cluster: cost as workers become many](plots/cluster-workers.svg)" in written
    assert "cluster.svg" not in written, "there is nothing to hold it against"
    assert [file.name for file in (tmp_path / "plots").iterdir()] == ["cluster-workers.svg"]


def test_the_words_of_a_part_say_where_its_figures_belong(tmp_path: Path) -> None:
    (tmp_path / "prose").mkdir()
    (tmp_path / "prose" / "cluster.md").write_text("Two workers.\n")
    with pytest.raises(AssertionError, match=r"\{figures\} once"):
        page.text({"cluster": a_result([])}, [Part("cluster", 1, tmp_path)])


def test_stage_times_stand_where_the_words_want_them() -> None:
    whole = a_result([])
    whole.stages = {"fork": {"claim": 1.25, "commit": 2_000.0}, "join": {"commit": 3.0}}
    text = page.text({"rules": whole})
    assert "| | claim | commit |\n| --- | --- | --- |\n| fork | 1.2 | 2,000.0 |\n| join | | 3.0 |" in text


# --- plots ---


@pytest.mark.parametrize("name", sorted(page.plots(KEPT)))
def test_a_plot_is_well_formed_and_told_in_words(name: str) -> None:
    svg = ElementTree.fromstring(page.plots(KEPT)[name])
    assert svg.tag == f"{SVG}svg"
    assert svg.get("role") == "img"
    assert svg.findtext(f"{SVG}title")
    assert svg.findtext(f"{SVG}desc")
    assert "prefers-color-scheme: dark" in (svg.findtext(f"{SVG}style") or "")
    _, _, width, height = map(float, str(svg.get("viewBox")).split())
    for each in svg.iter():
        for key, most in (("x", width), ("x1", width), ("x2", width), ("y", height), ("y1", height), ("y2", height)):
            assert 0 <= float(each.get(key, 0)) <= most, f"{each.tag} is outside"


def test_a_plot_of_bars_has_the_figures_of_the_table() -> None:
    for name, bounds in ((name, some) for name, some in BOUNDS.items() if name in KEPT):
        words = page.plots(KEPT)[f"{name}.svg"]
        bounded = [line for line in KEPT[name].lines if line.bound is not None]
        assert words.count('class="met"') + words.count('class="missed"') == len(bounded)
        for line in bounded:
            bound = bounds[str(line.bound)]
            escaped = str(bound).replace("<", "&lt;").replace(">", "&gt;")
            assert f"({escaped}, {'met' if bound.met(line.result) else 'not met'})" in words


def test_bars_are_as_long_as_their_figures_and_the_bound_stands_at_one() -> None:
    svg = ElementTree.fromstring(
        bars("t", [Bar("a", "", 1.5, 1.0, 2.0, "1.5", "met"), Bar("b < c", "d", 0.5, 0.4, 0.6, "0.5", "missed")])
    )
    long, short = (float(rect.get("width", 0)) for rect in svg.iter(f"{SVG}rect"))
    assert long == pytest.approx(3 * short, rel=0.01)
    (bound,) = (line for line in svg.iter(f"{SVG}line") if line.get("class") == "bound")
    assert float(bound.get("x1", 0)) == pytest.approx(LABELS + 2 * short, abs=0.2)
    whiskers = [line for line in svg.iter(f"{SVG}line") if line.get("class") == "whisker"]
    across = [line for line in whiskers if line.get("y1") == line.get("y2")]
    assert [float(line.get("x2", 0)) - float(line.get("x1", 0)) for line in across] == [
        pytest.approx(2 * short, abs=0.2),
        pytest.approx(0.4 * short, abs=0.2),
    ]
    assert {rect.get("class") for rect in svg.iter(f"{SVG}rect")} == {"met", "missed"}


def test_where_the_scale_is_logarithmic_bars_begin_at_the_bound() -> None:
    rows = [Bar("a", "", 40.0, 30.0, 50.0, "40", "met"), Bar("b", "", 0.8, 0.7, 0.9, "0.8", "missed")]
    svg = ElementTree.fromstring(bars("t", rows))
    (bound,) = (line for line in svg.iter(f"{SVG}line") if line.get("class") == "bound")
    good, bad = svg.iter(f"{SVG}rect")
    assert float(good.get("x", 0)) == float(bound.get("x1", 0))
    assert float(bad.get("x", 0)) + float(bad.get("width", 0)) == pytest.approx(float(bound.get("x1", 0)), abs=0.2)
    assert float(good.get("width", 0)) > float(bad.get("width", 0))


def test_a_wide_span_is_drawn_by_powers_of_ten() -> None:
    x = scale([0.5, 60.0], 0, 100, log=True)
    assert (x.low, x.high) == (0.5, 100)
    assert x.at(0.5) == 0
    assert x.at(100) == 100
    assert x.at(7.0710678) == pytest.approx(50, abs=0.1)
    assert x.ticks() == [0.5, 1, 2, 5, 10, 20, 50, 100]
    straight = scale([30.0, 188.0], 0, 100, log=False)
    assert (straight.low, straight.high) == (0, 200)
    assert straight.ticks() == [0, 50, 100, 150, 200]


def test_a_curve_goes_through_its_points() -> None:
    flat = Curve("flat", "messages stored", "µs", tuple(Point(at, 50.0, 40.0, 60.0) for at in (1e3, 1e6)))
    steep = Curve("steep", "messages stored", "µs", (Point(1e3, 10.0, 10.0, 10.0), Point(1e6, 100.0, 90.0, 100.0)))
    svg = ElementTree.fromstring(curves("t", [flat, steep]))
    (first, last), (low, high) = (
        [tuple(map(float, point.split(","))) for point in str(line.get("points")).split()]
        for line in sorted(svg.iter(f"{SVG}polyline"), key=lambda line: str(line.get("class")))
    )
    assert first[1] == last[1]
    assert high[1] < first[1] < low[1], "what costs more stands higher"
    assert (first[0], low[0]) == (low[0], first[0])
    assert last[0] <= WIDTH
    told = svg.findtext(f"{SVG}desc") or ""
    assert "steep: 10.0 µs at 1,000 messages stored, 100.0 µs at 1,000,000 messages stored" in told


def a_result(lines: list[Line]) -> Result:
    return Result("2026-01-02", {"cores": "2", "memory": "1 GiB", "platform": "a"}, {"python": "3"}, lines=lines)
