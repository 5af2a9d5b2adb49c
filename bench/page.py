"""The page: ``docs/benchmarks.md`` and its plots, written from kept results and the words in ``prose/``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bounds import BOUNDS, Bound
from curves import Curve
from lines import Line, ratio, verdict
from parts import HERE, PARTS, Part
from plots import Bar, bars, curves
from results import Result, Results

FIGURES, STAGES = "{figures}", "{stages}"  # where a part's words want its tables
_HEAD = ("measure", "Postroom", "against", "result (lowest–highest)", "bound", "")
_ASKED = ("asked of", "figure", "bound", "measured", "")


def write_page(results: Results, docs: Path, parts: Sequence[Part] = PARTS) -> Path:
    """The page and a folder of plots; plots that nothing stands for any more go."""
    folder = docs / "plots"
    folder.mkdir(parents=True, exist_ok=True)
    drawn = plots(results, parts)
    for old in folder.glob("*.svg"):
        if old.name not in drawn:
            old.unlink()
    for name, svg in drawn.items():
        (folder / name).write_text(svg, encoding="utf-8")
    page = docs / "benchmarks.md"
    page.write_text(text(results, parts), encoding="utf-8")
    return page


def text(results: Results, parts: Sequence[Part] = PARTS) -> str:
    sections = [_section(part, results[part.name]) for part in parts if part.name in results]
    intro = (HERE / "prose" / "introduction.md").read_text(encoding="utf-8").strip()
    edges = (HERE / "prose" / "edges.md").read_text(encoding="utf-8").strip()
    return "\n\n".join([intro, _runs(results), _asked(results, parts), *sections, edges]) + "\n"


def plots(results: Results, parts: Sequence[Part] = PARTS) -> dict[str, str]:
    """By the names of their files."""
    drawn = {}
    for part in parts:
        result = results.get(part.name)
        if result is None:
            continue
        if rows := _bars(part, result):
            drawn[f"{part.name}.svg"] = bars(f"{part.title}: figures and their bounds", rows)
        for name, some in _together(part, result.curves).items():
            drawn[name] = curves(f"{part.title}: cost as {some[0].along} become many", some)
    return drawn


# --- the whole ---


def _runs(results: Results) -> str:
    """Where and when; once for all parts that agree on the machine and the versions."""
    seen: dict[str, list[str]] = {}
    for name, each in results.items():
        versions = ", ".join(f"{what} {which}" for what, which in each.versions.items())
        where = f"{each.machine['cores']} cores, {each.machine['memory']}, {each.machine['platform']}; {versions}"
        about = [
            each.date,
            *([f"{each.seconds:.0f} s"] if each.seconds else []),
            *(["small sizes"] if each.quick else []),
        ]
        seen.setdefault(where, []).append(f"{name} ({', '.join(about)})")
    lines = [f"- {', '.join(names)} on {where}." for where, names in seen.items()]
    total = sum(each.seconds for each in results.values()) / 60
    took = f"\n\nTogether that took {total:.0f} minutes." if all(each.seconds for each in results.values()) else ""
    return "Measured:\n\n" + "\n".join(lines) + took


class Judged(NamedTuple):
    part: Part
    bound: Bound
    figure: str
    verdict: str


def judged(results: Results, parts: Sequence[Part] = PARTS) -> list[Judged]:
    """Every figure that was asked, by the one of its lines that is nearest to the bound."""
    found = []
    for part in parts:
        for name, bound in BOUNDS.get(part.name, {}).items():
            lines = [line for line in _lines(results, part) if line.bound == name]
            worst = min(lines, key=lambda line: bound.margin(line.result), default=None)
            said = ("–", "not measured") if worst is None else (_result(worst), verdict(worst, bound))
            found.append(Judged(part, bound, *said))
    return found


def _asked(results: Results, parts: Sequence[Part]) -> str:
    every = judged(results, parts)
    met = sum(each.verdict == "met" for each in every)
    failed = [f"`{name}` failed: {each.failed}." for name, each in results.items() if each.failed]
    rows = [(_title(part, results), bound.asked, str(bound), figure, said) for part, bound, figure, said in every]
    return "\n\n".join([f"## What was asked\n\n{met} of {len(rows)} figures are met.", *failed, _table(_ASKED, rows)])


def _title(part: Part, results: Results) -> str:
    """With a link to its section, if it has one: what was not measured has none."""
    return f"[{part.title}](#{part.name})" if part.name in results else part.title


def _lines(results: Results, part: Part) -> Sequence[Line]:
    return results[part.name].lines if part.name in results else ()


# --- a part ---


def _section(part: Part, result: Result) -> str:
    words = part.prose.read_text(encoding="utf-8").strip()
    assert words.count(FIGURES) == 1, f"{part.prose} has {FIGURES} once, where the tables belong"
    figures = "\n\n".join(_figures(part, result))
    words = words.replace(FIGURES, figures).replace(f"{STAGES}\n\n", _stages(result))
    return f"## {part.title}\n\n{words}"


def _figures(part: Part, result: Result) -> Iterator[str]:
    if result.failed:
        yield f"**This part failed:** {result.failed}. What it had measured until then:"
    bounds = BOUNDS.get(part.name, {})
    if result.lines:
        yield _table(_HEAD, [_row(line, bounds) for line in result.lines])
    for name, alt in _pictures(part, result):
        yield f"![{alt}](plots/{name})"
    if result.notes:
        yield "\n".join(f"- {note}" for note in result.notes)


def _pictures(part: Part, result: Result) -> Iterator[tuple[str, str]]:
    if _bars(part, result):
        yield f"{part.name}.svg", f"{part.title}: how far each figure is from its bound"
    for name, some in _together(part, result.curves).items():
        yield name, f"{part.title}: cost as {some[0].along} become many"


def _row(line: Line, bounds: Mapping[str, Bound]) -> tuple[str, ...]:
    bound = None if line.bound is None else bounds[line.bound]
    against = "" if line.against is None else f"{line.against} {line.shown_other()}".strip()
    measured = line.shown() + (f", {line.remark}" if line.remark else "")
    asked = "" if bound is None else str(bound)
    return (line.measure, measured, against, line.shown_result(), asked, verdict(line, bound))


def _result(line: Line) -> str:
    return ratio(line.result) if line.against is not None else line.shown()


def _stages(result: Result) -> str:
    """Where the time of a message goes, as the engine itself took it."""
    if not result.stages:
        return ""
    names = list(dict.fromkeys(stage for each in result.stages.values() for stage in each))
    rows = [
        (what, *(f"{each[stage]:,.1f}" if stage in each else "" for stage in names))
        for what, each in result.stages.items()
    ]
    return "Stage times of this run, µs a message:\n\n" + _table(("", *names), rows) + "\n\n"


def _bars(part: Part, result: Result) -> list[Bar]:
    """Of the lines that can be held against something."""
    bounds = BOUNDS.get(part.name, {})
    return [_bar(line, bounds) for line in result.lines if line.bound is not None or line.against is not None]


def _bar(line: Line, bounds: Mapping[str, Bound]) -> Bar:
    """A line without a bound is held against its peer: 1 is as good."""
    bound = Bound("", "≥", 1) if line.bound is None else bounds[line.bound]
    low, high = sorted(bound.margin(each) for each in (line.lowest, line.highest))
    kind = "free" if line.bound is None else "met" if bound.met(line.result) else "missed"
    label, against = line.measure.replace("`", ""), "" if line.against is None else f"against {line.against}"
    asked = "no bound" if line.bound is None else f"{bound}, {verdict(line, bound)}"
    return Bar(label, against, bound.margin(line.result), low, high, f"{_result(line)} ({asked})", kind)


def _together(part: Part, some: Sequence[Curve]) -> dict[str, list[Curve]]:
    """Curves along the same axes are in one picture, whose file has this name."""
    axes: dict[tuple[str, str], list[Curve]] = {}
    for each in some:
        axes.setdefault((each.along, each.unit), []).append(each)
    return {f"{part.name}-{along.replace(' ', '-')}.svg": found for (along, _), found in axes.items()}


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(("| " + " | ".join(cells) + " |").replace("  ", " ") for cells in lines)
