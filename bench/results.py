"""Results: what was measured, part by part, as it is kept in a file. The page is written from nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from curves import Curve
from lines import Line


@dataclass
class Result:
    """Of one part. It is written after every line, so that a part that is cut short leaves what it had."""

    date: str
    machine: Mapping[str, str]
    versions: Mapping[str, str]
    quick: bool = False
    seconds: float = 0
    failed: str = ""  # why
    lines: list[Line] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    stages: dict[str, dict[str, float]] = field(default_factory=dict)  # microseconds a message, by what was measured
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Result:
        lines = [Line.of(each) for each in kept["lines"]]
        return cls(**{**kept, "lines": lines, "curves": [Curve.of(each) for each in kept["curves"]]})


Results = dict[str, Result]


def write(file: Path, results: Results) -> None:
    """Whole or not at all: a reader never meets half a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({name: asdict(each) for name, each in results.items()}, indent=1, ensure_ascii=False)
    scratch = file.with_suffix(".part")
    scratch.write_text(text + "\n", encoding="utf-8")
    scratch.replace(file)


def read(file: Path) -> Results:
    return {name: Result.of(kept) for name, kept in json.loads(file.read_text(encoding="utf-8")).items()}
