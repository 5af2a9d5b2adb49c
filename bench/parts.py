"""Parts: what is measured, in this order. A part is a program beside this file and its words in ``prose/``."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent


class Part(NamedTuple):
    name: str
    minutes: float  # its share; what others leave over, it may use
    folder: Path = HERE

    @property
    def program(self) -> Path:
        return self.folder / f"{self.name}.py"

    @property
    def prose(self) -> Path:
        return self.folder / "prose" / f"{self.name}.md"

    @property
    def title(self) -> str:
        return self.name.capitalize()


#: The shares of minutes are for two cores at rest; together they are no more than ``make bench`` may take.
PARTS = (
    Part("queues", 1),
    Part("rules", 5),
    Part("flows", 6),
    Part("streams", 3),
    Part("stations", 3.5),
    Part("procedures", 3),
    Part("spheres", 1.5),
    Part("cluster", 1.5),
    Part("consumers", 4.5),
    Part("serving", 1),
)
MINUTES_MAX = 30
