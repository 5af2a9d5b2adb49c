"""Text fixtures: blocks of lines, each a word and what it says, separated by blank lines; ``#`` begins a remark."""

from __future__ import annotations

from pathlib import Path

FIXTURES = Path(__file__).parent / "fixtures"
Block = list[tuple[str, str]]


def lines(name: str) -> list[str]:
    """The lines of a fixture that say something."""
    text = (FIXTURES / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def blocks(name: str) -> list[Block]:
    text = (FIXTURES / name).read_text(encoding="utf-8")
    found: list[Block] = []
    for part in text.split("\n\n"):
        block: Block = []
        for line in part.splitlines():
            if line.strip() and not line.startswith("#"):
                word, _, rest = line.partition(" ")
                block.append((word, rest))
        if block:
            found.append(block)
    return found


def said(block: Block, word: str) -> str:
    return next(rest for each, rest in block if each == word)
