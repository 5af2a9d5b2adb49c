"""The pages on rules say all there is: every keyword, type, function, check and code; and their programs load."""

from __future__ import annotations

import re
from pathlib import Path

import postroom
from postroom.rules.compilation.checks import CHECKS
from postroom.rules.compilation.translation import SYSTEM
from postroom.rules.language import functions, operands, prolog
from postroom.rules.language import reader as language

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "postroom" / "rules"
PAGE = (ROOT / "docs" / "reference" / "rules.md").read_text()
GUIDE = (ROOT / "docs" / "guide" / "rules.md").read_text()


def keywords() -> set[str]:
    """Every word that the reader of statements asks for."""
    text = (SOURCE / "language" / "reader.py").read_text()
    asked = re.findall(r"self\._(?:keyword|is)\(([^()]*)\)", text) + re.findall(
        r"^ {12}(\"[a-z]+\"): self\._", text, re.M
    )
    return {word for call in asked for word in re.findall(r'"([a-zA-Z]+)"', call)}


def test_every_keyword_is_in_the_grammar() -> None:
    found = keywords()
    assert {"queue", "system", "priority", "inherited", "value", "errorqueue"} <= found, "the search still works"
    for word in found | {
        *language.KINDS,
        *language.MODES,
        "do",
        "enqueue",
        "into",
        "with",
        "compensate",
        "reset",
        "key",
        "if",
        "then",
    }:
        assert f'"{word}"' in PAGE, word


def test_every_type_is_listed() -> None:
    for name in language.TYPES:
        assert f"`xs:{name}`" in PAGE, name


def test_every_refusal_is_listed() -> None:
    """What the reader of declarations and that of expressions refuse by name, and the rest of the update facility."""
    section = PAGE.partition("\nRefused, each with")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 15, "the search still works"
    named = [words for row in rows for words in re.findall("`([^`]*)`", row.split(" | ")[0])]
    whole = {words if " " in words else f"declare {words}" for words in named} | set(named)
    whole |= {"declare default order"} if "`default order`" in section else set()
    for refused in [*prolog.REFUSED, *operands.REFUSED]:
        assert any(refused in words for words in whole), refused
    source = (SOURCE / "language" / "prolog.py").read_text()
    for word in re.findall(r'Unreadable\(f?"(\w+) is refused', source):
        assert f"`{word}`" in section, word


def test_every_function_is_listed() -> None:
    for name in functions.OURS:
        assert re.search(rf'`{name}\(("name")?\)`', PAGE), name
    for prefix, names in functions._BY_PREFIX.items():
        for name in names:
            assert f"`{prefix}:{name}`" in PAGE or (prefix in ("", "fn") and f"`{name}`" in PAGE), f"{prefix}:{name}"
    for name in functions._OUTSIDE:
        assert f"`{name}`" in PAGE, name
    for name in SYSTEM:
        assert f"`{name}`" in PAGE, name


def test_every_check_and_every_code_is_listed() -> None:
    texts = [file.read_text() for file in SOURCE.rglob("*.py")]
    checks = {check.__name__.replace("_", "-") for check in CHECKS} | {"syntax", "one-module"}
    codes = {code for text in texts for code in re.findall(r"\bPR\d{4}\b", text)} - {"PR0000"}  # cannot happen
    for name in checks | codes:
        assert re.search(rf"^\| `{name}` \|", PAGE, re.M), name


def test_what_is_listed_exists() -> None:
    section = PAGE.partition("## Checks")[2].partition("## Codes")[0]
    rows = set(re.findall(r"^\| `([a-z-]+)` \| ", section, re.M))
    assert rows == {check.__name__.replace("_", "-") for check in CHECKS} | {"syntax", "one-module"}


def test_the_pieces_of_program_in_the_guide_are_one_program_that_loads(sqlite_url: str, tmp_path: Path) -> None:
    pieces = re.findall(r"^```demaq\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    assert len(pieces) > 4
    program = tmp_path / "pieces.demaq"
    program.write_text("\n".join(pieces))
    with postroom.open(sqlite_url) as room:
        room.gateways.add("partner", "http", address="https://partner.example/")
        assert room.load(program).version == 1
